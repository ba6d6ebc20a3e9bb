"""JournalStats: how long adds wait for the journal and the journal for the disk, as BookKeeper's JournalStats. Pure.

Measured for each write: all that share it are counted as long as the one among them that waited the longest.
"""

from collections.abc import Sequence

from bookie.journal.format_v1 import Record
from ports.op_stats import OpStats
from wire.run import EntryMix, EntryRun

_RUNS = (EntryRun, EntryMix)


class JournalStats:
    """Of one journal."""

    def __init__(self) -> None:
        self.queued, self.synced, self.added = OpStats(), OpStats(), OpStats()
        """Waiting for the write, the write with its fsync, and both together."""

    def wrote(self, records: Sequence[Record], queued_at: float, began_at: float, ended_at: float, *, has_failed: bool) -> None:
        """One write of what had been queued since `queued_at`."""
        count = 0
        for record in records:
            count += len(record.offsets) - 1 if isinstance(record, _RUNS) else 1
        self.queued.record(began_at - queued_at, count)
        self.synced.record(ended_at - began_at, has_failed=has_failed)
        self.added.record(ended_at - queued_at, count, has_failed=has_failed)
