"""Memtable: the runs that are in the journal but not yet in an entry log, by ledger and first entry. Pure.

It shares the runs' buffers with whoever else holds them and never copies. Its bytes count what a run really costs.
"""

from collections.abc import Iterator

from bookie.ranges import LedgerRanges, Ranges
from wire.run import EntryRun

RUN_OVERHEAD_BYTES = 320
"""What CPython pays for a run beside its bytes: the object, its buffer's and its array's headers, the two list places."""
OFFSET_BYTES = 4


def cost_bytes(run: EntryRun) -> int:
    offsets = run.offsets
    return offsets[-1] - offsets[0] + len(offsets) * OFFSET_BYTES + RUN_OVERHEAD_BYTES


class Memtable(LedgerRanges[EntryRun]):
    """Runs of many ledgers."""

    __slots__ = ("size_bytes",)

    def __init__(self) -> None:
        super().__init__()
        self.size_bytes = 0

    def __bool__(self) -> bool:
        return bool(self._ledgers)

    def insert(self, run: EntryRun, size_bytes: int) -> None:
        """Add a run whose cost is `size_bytes`."""
        self._of(run.ledger_id).insert(run)
        self.size_bytes += size_bytes

    def sorted_ledgers(self) -> Iterator[tuple[int, Ranges[EntryRun]]]:
        """The runs of each ledger, by ledger id: the order of an entry log."""
        for ledger_id in sorted(self._ledgers):
            ranges = self._ledgers.get(ledger_id)
            if ranges is not None:
                yield ledger_id, ranges
