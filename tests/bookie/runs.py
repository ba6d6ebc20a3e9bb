"""Sealed runs for the tests of the bookie."""

from array import array
from collections.abc import Sequence
from itertools import accumulate, zip_longest

from wire.kernels.entries import seal
from wire.run import HEADER_BYTES_CRC32C, EntryBatch, EntryMix, EntryRun

KEY = b"\x01" * 20
PATTERN = bytes(range(251))


def sealed(ledger_id: int, first_entry_id: int, count: int = 1, size: int = 10, fill: int = 0) -> EntryRun:
    """`count` entries of `size` payload bytes each; `fill` makes them differ from others of the same place."""
    width = size + HEADER_BYTES_CRC32C
    offsets = array("I", range(0, width * count + 1, width))
    start = (fill + first_entry_id) % 251
    payload = (PATTERN * (size // 251 + 2))[start : start + size]
    batch = EntryBatch(bytearray((b"\0" * HEADER_BYTES_CRC32C + payload) * count), offsets, HEADER_BYTES_CRC32C, count)
    seal(batch, ledger_id, first_entry_id, first_entry_id - 1, first_entry_id * size)
    return EntryRun(ledger_id, first_entry_id, batch.buffer, batch.offsets)


def mixed(runs: Sequence[EntryRun]) -> EntryMix:
    """The first entry of each run, then the second of each ..."""
    entries = [list(entries_of(run).values()) for run in runs]
    together = [entry for row in zip_longest(*entries) for entry in row if entry is not None]
    return EntryMix(b"".join(together), array("I", accumulate(map(len, together), initial=0)))


def entries_of(run: EntryRun) -> dict[int, bytes]:
    """Entry id to sealed bytes."""
    data = bytes(run.buffer)
    return {run.first_entry_id + index: data[run.offsets[index] : run.offsets[index + 1]] for index in range(run.count)}
