"""Memtable: the runs that are in the journal but not yet in an entry log, by ledger and first entry. Pure.

It shares the buffers of large runs with their other holders, and counts what a run really costs. Small runs and mixes stay as
they came until an entry is looked for or the table is flushed: only then are they copied into runs, each ledger's together.
"""

from collections import deque
from collections.abc import Iterator

from bookie.ranges import LedgerRanges
from wire.kernels.mixes import joined, runs_of
from wire.run import EntryMix, EntryRun

RUN_OVERHEAD_BYTES = 320
"""Memory that CPython needs for a run beside its bytes: the object, headers of its buffer and array, two list places."""
OFFSET_BYTES = 4
SORTED_TOGETHER_BYTES = 2 << 20
"""Bytes of the parts that are sorted together: while that happens they are in memory twice."""
PARTS_AT_ONCE, RUNS_AT_ONCE = 1024, 512
"""Parts that are joined, and runs that find their places, in one step: a millisecond."""
COPIED_RUN_BYTES_MAX = 1 << 10
"""A larger run is not copied to be one with its neighbours: two copies cost more than what it costs beside its bytes."""


def cost_bytes(entries: EntryRun | EntryMix) -> int:
    """Cost of a mix until it is sorted; then the cost of its runs counts."""
    offsets = entries.offsets
    return offsets[-1] - offsets[0] + len(offsets) * OFFSET_BYTES + RUN_OVERHEAD_BYTES


class Memtable:
    """Runs of many ledgers."""

    __slots__ = ("_joined", "_placeless", "_sorted", "_unsorted", "size_bytes")

    def __init__(self) -> None:
        self._sorted: LedgerRanges[EntryRun] = LedgerRanges()
        self._placeless: deque[EntryRun] = deque()
        """Runs that were sorted and have no place in `_sorted` yet; older than `_joined`."""
        self._joined: list[EntryMix] = []
        """Parts that were joined, to be sorted together; older than `_unsorted`."""
        self._unsorted: deque[EntryRun | EntryMix] = deque()
        """Parts in the order in which they came, as the newest of an entry wins."""
        self.size_bytes = 0

    def __bool__(self) -> bool:
        return self.is_unsorted or bool(self._sorted)

    @property
    def is_unsorted(self) -> bool:
        return bool(self._unsorted or self._joined or self._placeless)

    def insert(self, entries: EntryRun | EntryMix, size_bytes: int) -> None:
        """Add what costs `size_bytes`."""
        if isinstance(entries, EntryRun) and _is_large(entries) and not self.is_unsorted:
            self._sorted.of(entries.ledger_id).insert(entries)
        else:
            self._unsorted.append(entries)
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

    def sort_steps(self) -> Iterator[None]:
        """Sorts what came mixed, in steps of one to three milliseconds."""
        while self.is_unsorted:
            if self._placeless:
                self._place()
            elif self._joined and (self._has_joined_enough() or not self._joins_next()):
                self._sort_joined()
            else:
                self._join()
            yield

    def sorted_ledgers(self) -> Iterator[tuple[int, Iterator[EntryRun]]]:
        """The runs of each ledger, by ledger id: the order of an entry log."""
        return self._ranges().ascending()

    def check_invariants(self) -> None:
        """Check the invariants, for tests and simulations."""
        self._sorted.check_invariants()
        held_bytes = sum(run.size_bytes for _, runs in self._sorted.ascending() for run in runs)
        assert self.size_bytes >= held_bytes + sum(
            entries.size_bytes for entries in (*self._placeless, *self._joined, *self._unsorted)
        )

    def _ranges(self) -> LedgerRanges[EntryRun]:
        for _ in self.sort_steps():
            pass
        return self._sorted

    def _has_joined_enough(self) -> bool:
        return sum(mix.size_bytes for mix in self._joined) >= SORTED_TOGETHER_BYTES

    def _joins_next(self) -> bool:
        """Whether there is an unsorted part that is joined with others."""
        return bool(self._unsorted) and not _is_large(self._unsorted[0])

    def _join(self) -> None:
        parts: list[EntryRun | EntryMix] = []
        size_bytes = 0
        while len(parts) < PARTS_AT_ONCE and size_bytes < SORTED_TOGETHER_BYTES and self._joins_next():
            parts.append(self._unsorted.popleft())
            size_bytes += parts[-1].size_bytes
        if not parts:
            large = self._unsorted.popleft()
            assert isinstance(large, EntryRun)
            self._placeless.append(large)
            return
        mix = joined(parts)
        self.size_bytes += cost_bytes(mix) - sum(map(cost_bytes, parts))
        self._joined.append(mix)

    def _sort_joined(self) -> None:
        runs = runs_of(self._joined)
        self.size_bytes += sum(map(cost_bytes, runs)) - sum(map(cost_bytes, self._joined))
        self._placeless.extend(runs)
        self._joined = []

    def _place(self) -> None:
        for _ in range(min(RUNS_AT_ONCE, len(self._placeless))):
            run = self._placeless.popleft()
            self._sorted.of(run.ledger_id).insert(run)


def _is_large(part: EntryRun | EntryMix) -> bool:
    """Whether it is a run that is not copied."""
    return isinstance(part, EntryRun) and part.size_bytes > COPIED_RUN_BYTES_MAX
