"""Cutting and joining runs. Pure. A cut shares its buffer with the whole; a joined run has a buffer of its own."""

from array import array
from bisect import bisect_right
from collections.abc import Sequence

from wire.run import EntryRun


def cut(run: EntryRun, first_entry_id: int, entries_max: int, bytes_max: int) -> EntryRun:
    """Cut from `first_entry_id` on: at least one entry, else within both bounds."""
    offsets = run.offsets
    start = first_entry_id - run.first_entry_id
    stop = min(start + entries_max, len(offsets) - 1)
    if offsets[stop] - offsets[start] > bytes_max:
        stop = bisect_right(offsets, offsets[start] + bytes_max, start, stop + 1) - 1
    return run.entries(first_entry_id, max(stop - start, 1))


def join(parts: Sequence[EntryRun]) -> EntryRun:
    """Runs that follow one another, as one; its `header_bytes` are the fewest of theirs."""
    first = parts[0]
    offsets = array("I", [0])
    buffers = []
    for part in parts:
        begin, end = part.offsets[0], part.offsets[-1]
        shift = offsets[-1] - begin
        if len(part.offsets) == 2:
            offsets.append(end + shift)
        else:
            offsets.extend(map(shift.__add__, part.offsets[1:]))
        buffers.append(memoryview(part.buffer)[begin:end])
    header_bytes = min(part.header_bytes for part in parts)
    return EntryRun(first.ledger_id, first.first_entry_id, b"".join(buffers), offsets, header_bytes)
