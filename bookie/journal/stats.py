"""JournalStats: how long adds wait for the journal and the journal for the disk, as BookKeeper's JournalStats. Pure.

Measured for each write: all adds that share it are counted with the longest wait among them. Writes are counted when the
statistics are read, or WRITES_MAX at a time (`ports.metrics.op_stats` says why).
"""

from collections.abc import Sequence
from typing import NamedTuple

from bookie.journal.format_v1 import Record
from ports.metrics.op_stats import OpStats
from wire.run import EntryMix, EntryRun

WRITES_MAX = 64
_RUNS = (EntryRun, EntryMix)


class StatsOfWrites(NamedTuple):
    """Waiting for the write, the write with its fsync, and both together."""

    queued: OpStats
    synced: OpStats
    added: OpStats


class JournalStats:
    """Statistics of one journal."""

    def __init__(self) -> None:
        self._counted = StatsOfWrites(OpStats(), OpStats(), OpStats())
        self._writes: list[tuple[int, float, float, float, bool]] = []
        """Writes that are not counted yet."""

    @property
    def queued(self) -> OpStats:
        return self._count().queued

    @property
    def synced(self) -> OpStats:
        return self._count().synced

    @property
    def added(self) -> OpStats:
        return self._count().added

    def wrote(self, records: Sequence[Record], queued_at: float, began_at: float, ended_at: float, *, has_failed: bool) -> None:
        """One write of the records queued since `queued_at`."""
        count = 0
        for record in records:
            count += len(record.offsets) - 1 if isinstance(record, _RUNS) else 1
        writes = self._writes
        writes.append((count, queued_at, began_at, ended_at, has_failed))
        if len(writes) >= WRITES_MAX:
            self._count()

    def _count(self) -> StatsOfWrites:
        writes, self._writes = self._writes, []
        queued, synced, added = self._counted
        for count, queued_at, began_at, ended_at, has_failed in writes:
            queued.record(began_at - queued_at, count)
            synced.record(ended_at - began_at, has_failed=has_failed)
            added.record(ended_at - queued_at, count, has_failed=has_failed)
        return self._counted
