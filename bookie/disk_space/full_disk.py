"""FullDisk: actions of a bookie after a look at its disks: begin again, keep room. `Health` says which adds are refused."""

from bookie.disk_space.health import JOURNAL, Health
from bookie.journal.journal import Journal
from bookie.storage.storage import LedgerStorage
from ports.disk.kept_room import NO_ROOM


class FullDisk:
    """The full disks of one bookie."""

    def __init__(self, health: Health, journal: Journal, storage: LedgerStorage) -> None:
        self._health, self._journal, self._storage = health, journal, storage

    async def on_checked(self) -> None:
        """The disks were looked at. A journal that found no space may find some now; after any other error only a restart
        helps."""
        failure = self._journal.failure
        if failure is not None and failure.errno in NO_ROOM:
            await self._journal.revive()
        if JOURNAL in self._health.reasons and self._journal.failure is None:
            await self._storage.name_journal(self._journal.beginning)  # before anything is added
            self._health.turn_writable(JOURNAL)
        if not self._health.publish_refusal:
            for kept in (self._journal.kept, self._storage.kept):
                await kept.keep()

    async def drop_dead_logs(self, error: OSError) -> None:
        """The flush that would tell that ledgers are deleted failed with `error`: where that was for want of room, the logs go
        first that hold nothing else. Should the bookie end before the next flush, it knows ledgers without entries, whose
        metadata is gone, and collects them again. OSError."""
        if error.errno not in NO_ROOM:
            raise error
        await self._storage.drop_dead_logs()
