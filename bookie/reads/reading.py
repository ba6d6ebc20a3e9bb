"""Reading: one run out of memtables and spans, the newest of each entry. Pure but for the slices it hands on."""

import struct
from array import array
from bisect import bisect_right
from collections.abc import Sequence

from bookie.adds.memtable import Memtable
from bookie.ranges import NO_ENTRY
from wire.run import EntryRun
from wire.run_parts import join

GATHER_BYTES = 1 << 20
"""A run smaller than this is put together with those that follow it: a reader pays per run."""
_LAST_ADD_CONFIRMED = struct.Struct(">q")
LAST_ADD_CONFIRMED_OFFSET = 16


class Gathering:
    """Runs of one ledger that follow one another, within both bounds and GATHER_BYTES; the first run whatever its size."""

    __slots__ = ("_bytes_left", "_count_left", "_runs")

    def __init__(self, run: EntryRun, count_max: int, bytes_max: int) -> None:
        self._runs = [run]
        self._count_left = count_max - run.count
        self._bytes_left = min(bytes_max, GATHER_BYTES) - run.size_bytes

    @property
    def wants_more(self) -> bool:
        return self._count_left > 0 and self._bytes_left > 0

    @property
    def rest(self) -> tuple[int, int, int]:
        """First entry of the next run, and its bounds: entries and bytes."""
        return self._runs[-1].last_entry_id + 1, self._count_left, self._bytes_left

    def take(self, following: EntryRun | None) -> bool:
        """Whether there is a run that fits; it is part of the whole then."""
        if following is None or following.size_bytes > self._bytes_left:
            return False
        self._runs.append(following)
        self._count_left -= following.count
        self._bytes_left -= following.size_bytes
        return True

    def whole(self) -> EntryRun:
        """One run of all; a copy where there are several."""
        return self._runs[0] if len(self._runs) == 1 else join(self._runs)


def slice_run(run: EntryRun, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
    """Slice of at least one entry; at most `count_max`, and `bytes_max` unless the first alone is larger."""
    start = first_entry_id - run.first_entry_id
    return run.entries(first_entry_id, stop_within(run.offsets, start, count_max, bytes_max) - start)


def stop_within(offsets: "array[int]", start: int, count_max: int, bytes_max: int) -> int:
    """The index after the last entry that is within the bounds, from the entry at `start` on, which always is."""
    stop = min(start + max(1, count_max), len(offsets) - 1)
    if offsets[stop] - offsets[start] > bytes_max:
        stop = max(start + 1, bisect_right(offsets, offsets[start] + bytes_max, start + 1, stop + 1) - 1)
    return stop


def read_tables(
    tables: Sequence[Memtable], ledger_id: int, first_entry_id: int, count_max: int, bytes_max: int
) -> EntryRun | None:
    """Run from the newest table that has the first entry; None: no table has it."""
    run = _newest(tables, ledger_id, first_entry_id, count_max, bytes_max)
    if run is None:
        return None
    gathering = Gathering(run, count_max, bytes_max)
    while gathering.wants_more and gathering.take(_newest(tables, ledger_id, *gathering.rest)):
        pass
    return gathering.whole()


def _newest(tables: Sequence[Memtable], ledger_id: int, entry_id: int, count_max: int, bytes_max: int) -> EntryRun | None:
    for place, table in enumerate(tables):
        run = table.find(ledger_id, entry_id)
        if run is not None:
            ahead = first_newer(tables[:place], ledger_id, entry_id)
            return slice_run(run, entry_id, min(count_max, ahead - entry_id), bytes_max)
    return None


def pick_tables(
    tables: Sequence[Memtable], wanted: Sequence[tuple[int, Sequence[int]]], bytes_max: int
) -> tuple[list[EntryRun], list[tuple[int, int]]]:
    """Entries of these ledgers that are in a table, a run each, within `bytes_max` in all; and those that are
    in none."""
    found: list[EntryRun] = []
    others: list[tuple[int, int]] = []
    for ledger_id, entry_ids in wanted:
        for entry_id in entry_ids:
            run = read_tables(tables, ledger_id, entry_id, 1, 1)
            if run is None:
                others.append((ledger_id, entry_id))
            elif run.size_bytes <= bytes_max:
                found.append(run)
                bytes_max -= run.size_bytes
    return found, others


def first_newer(tables: Sequence[Memtable], ledger_id: int, entry_id: int) -> int:
    """The first entry after `entry_id` that one of these newer tables holds."""
    return min((table.first_after(ledger_id, entry_id) for table in tables), default=NO_ENTRY)


def last_add_confirmed(run: EntryRun) -> int:
    """Last add confirmed in the header of the run's last entry."""
    confirmed: int = _LAST_ADD_CONFIRMED.unpack_from(run.buffer, run.offsets[-2] + LAST_ADD_CONFIRMED_OFFSET)[0]
    return confirmed
