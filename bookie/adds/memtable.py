"""Memtable: the runs that are in the journal but not yet in an entry log, by ledger and first entry. Pure.

It shares the runs' buffers with whoever else holds them, and counts what a run really costs. Entries that came mixed stay as
they came until somebody looks for one or the table is flushed: only then are they copied into runs, each ledger's together.
"""

from collections.abc import Iterator

from bookie.ranges import LedgerRanges
from wire.kernels.mixes import runs_of
from wire.run import EntryMix, EntryRun

RUN_OVERHEAD_BYTES = 320
"""What CPython pays for a run beside its bytes: the object, its buffer's and its array's headers, the two list places."""
OFFSET_BYTES = 4
SORTED_TOGETHER_BYTES = 4 << 20
"""Of mixes: while they are sorted they are in memory twice."""


def cost_bytes(entries: EntryRun | EntryMix) -> int:
    """Cost of a mix until it is sorted; then the cost of its runs counts."""
    offsets = entries.offsets
    return offsets[-1] - offsets[0] + len(offsets) * OFFSET_BYTES + RUN_OVERHEAD_BYTES


class Memtable:
    """Runs of many ledgers."""

    __slots__ = ("_sorted", "_unsorted", "size_bytes")

    def __init__(self) -> None:
        self._sorted: LedgerRanges[EntryRun] = LedgerRanges()
        self._unsorted: list[EntryRun | EntryMix] = []
        """In the order in which they came, as the newest of an entry wins."""
        self.size_bytes = 0

    def __bool__(self) -> bool:
        return bool(self._unsorted or self._sorted)

    def insert(self, entries: EntryRun | EntryMix, size_bytes: int) -> None:
        """Add what costs `size_bytes`."""
        if self._unsorted or isinstance(entries, EntryMix):
            self._unsorted.append(entries)
        else:
            self._sorted.of(entries.ledger_id).insert(entries)
        self.size_bytes += size_bytes

    def find(self, ledger_id: int, entry_id: int) -> EntryRun | None:
        """The run that holds the entry."""
        return self._ranges().find(ledger_id, entry_id)

    def first_after(self, ledger_id: int, entry_id: int) -> int:
        return self._ranges().first_after(ledger_id, entry_id)

    def last_entry_id(self, ledger_id: int) -> int:
        """-1: none."""
        return self._ranges().last_entry_id(ledger_id)

    def ranges_of(self, ledger_id: int) -> list[tuple[int, int]]:
        """First and last entry id of each of a ledger's runs, ascending."""
        return self._ranges().ranges_of(ledger_id)

    def forget(self, ledger_id: int) -> None:
        """Drop a deleted ledger's runs."""
        self._ranges().forget(ledger_id)

    def has_some_of(self, run: EntryRun) -> bool:
        ranges, first = self._ranges(), run.first_entry_id
        return ranges.find(run.ledger_id, first) is not None or ranges.first_after(run.ledger_id, first) <= run.last_entry_id

    def cut(self, run: EntryRun) -> bool:
        """Take out the entries of a run that was inserted. False: not all are here, or some took the place of others."""
        if not self._ranges().of(run.ledger_id).cut(run.first_entry_id, run.last_entry_id):
            return False
        self.size_bytes -= cost_bytes(run)
        return True

    def sorted_ledgers(self) -> Iterator[tuple[int, Iterator[EntryRun]]]:
        """The runs of each ledger, by ledger id: the order of an entry log."""
        return self._ranges().ascending()

    def check_invariants(self) -> None:
        """Check the invariants, for tests and simulations."""
        self._sorted.check_invariants()
        held_bytes = sum(run.size_bytes for _, runs in self._sorted.ascending() for run in runs)
        assert self.size_bytes >= held_bytes + sum(entries.size_bytes for entries in self._unsorted)
        assert not self._unsorted or isinstance(self._unsorted[0], EntryMix), "a run that could be sorted in was not"

    def _ranges(self) -> LedgerRanges[EntryRun]:
        if self._unsorted:
            self._sort()
        return self._sorted

    def _sort(self) -> None:
        unsorted, self._unsorted = self._unsorted, []
        together: list[EntryMix] = []
        size_bytes = 0
        for part in unsorted:
            if isinstance(part, EntryMix):
                together.append(part)
                size_bytes += part.size_bytes
                if size_bytes < SORTED_TOGETHER_BYTES:
                    continue
            self._sort_mixes(together)
            together, size_bytes = [], 0
            if isinstance(part, EntryRun):
                self._sorted.of(part.ledger_id).insert(part)
        self._sort_mixes(together)

    def _sort_mixes(self, mixes: list[EntryMix]) -> None:
        for run in runs_of(mixes) if mixes else ():
            self._sorted.of(run.ledger_id).insert(run)
            self.size_bytes += cost_bytes(run)
        self.size_bytes -= sum(map(cost_bytes, mixes))
