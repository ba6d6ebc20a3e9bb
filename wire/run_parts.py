"""Cutting and joining runs, and what holds of a run of entries. Pure. A cut shares its buffer with the whole; a joined run has
a buffer of its own. Each check looks at the ends of a run alone, whatever the number of its entries."""

import struct
from array import array
from bisect import bisect_right
from collections.abc import Sequence

from wire.run import EntryMix, EntryRun

_IDS = struct.Struct(">qq")


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
        assert part.ledger_id == first.ledger_id, "entries of two ledgers are no run"
        assert part.first_entry_id == first.first_entry_id + len(offsets) - 1, "joined entries follow one another"
        begin, end = part.offsets[0], part.offsets[-1]
        shift = offsets[-1] - begin
        if len(part.offsets) == 2:
            offsets.append(end + shift)
        else:
            offsets.extend(map(shift.__add__, part.offsets[1:]))
        buffers.append(memoryview(part.buffer)[begin:end])
    header_bytes = min(part.header_bytes for part in parts)
    return EntryRun(first.ledger_id, first.first_entry_id, b"".join(buffers), offsets, header_bytes)


def is_what_it_says(run: EntryRun) -> bool:
    """The first and the last entry carry the ids that the run gives them."""
    offsets, ledger_id = run.offsets, run.ledger_id
    return (
        offsets[1] - offsets[0] >= run.header_bytes
        and _IDS.unpack_from(run.buffer, offsets[0]) == (ledger_id, run.first_entry_id)
        and _IDS.unpack_from(run.buffer, offsets[-2]) == (ledger_id, run.last_entry_id)
    )


def can_be_stored(entries: EntryRun | EntryMix) -> bool:
    """There are entries, the buffer has them, and the headers of a run's first and last carry the ids that it gives them."""
    offsets = entries.offsets
    if len(offsets) < 2 or not offsets[0] < offsets[-1] <= len(entries.buffer):
        return False
    if isinstance(entries, EntryMix):
        return offsets[0] == 0 and offsets[-1] == len(entries.buffer)
    return entries.ledger_id >= 0 and entries.first_entry_id >= 0 and is_what_it_says(entries)


def answers(run: EntryRun, ledger_id: int, first_entry_id: int, count_max: int) -> bool:
    """Whether a run is what a read asked for: from that entry of the ledger on, some entries and no more than so many."""
    is_from_there = run.ledger_id == ledger_id and run.first_entry_id == first_entry_id
    return is_from_there and 1 <= run.count <= max(1, count_max)
