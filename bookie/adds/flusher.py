"""Flusher: moves memtables to ledger storage, one at a time, and then lets the journal go.

Owns the two tables: adds go to the active one; when it is full and the other is on disk they swap. A flush that fails is tried
again, with the same table, until it succeeds: the journal holds the entries meanwhile, and the table stays readable.
"""

import asyncio
import errno
import logging
from collections.abc import Callable, Sequence

from bookie.adds.memtable import Memtable
from bookie.journal.format_v1 import JournalMark, Record
from bookie.journal.journal import Journal
from bookie.ledgers import Ledgers
from bookie.storage.storage import Flush, LedgerStorage
from ports.logs import line
from wire.kernels.mixes import runs_of
from wire.run import EntryMix, EntryRun

RETRY_SECONDS_MIN, RETRY_SECONDS_MAX = 1.0, 30.0
PAUSE_SECONDS = 0.002
"""A message needs several turns of the loop from its publish to its receipt: a slice in each of them would be its latency."""
FULL_RETRY_SECONDS_MAX = 2.0
"""On a full disk: a retry costs little, and adds that wait for room shall not wait longer."""
log = logging.getLogger("bookie.adds.flusher")


class Flusher:
    """The memtables and the task that empties them."""

    def __init__(
        self,
        storage: LedgerStorage,
        ledgers: Ledgers,
        journal: Journal,
        *,
        table_bytes_max: int,
        journal_bytes_max: int,
        interval_seconds: float,
        on_flushed: Callable[[OSError | None], None],
    ) -> None:
        self._storage = storage
        self._ledgers = ledgers
        self._journal = journal
        self._table_bytes_max = table_bytes_max
        self._journal_bytes_max = journal_bytes_max
        self._interval_seconds = interval_seconds
        self._on_flushed = on_flushed
        self._job: Flush | None = None
        self._journal_bytes_before = 0
        self._failed_with: int | None = None
        self._wake: asyncio.Future[None] | None = None
        self._idle: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self.active = Memtable()

    @property
    def tables(self) -> tuple[Memtable, ...]:
        """Newest first."""
        return (self.active,) if self._job is None else (self.active, self._job.table)

    @property
    def pending_bytes(self) -> int:
        """Bytes that are in no entry log yet."""
        return sum(table.size_bytes for table in self.tables)

    def has_room(self, size_bytes: int) -> bool:
        """Whether the active table takes so much; swaps when it is full and the other one is free."""
        table = self.active
        full = table.size_bytes + size_bytes > self._table_bytes_max and table.size_bytes > 0
        if not full and self._journal.written_bytes - self._journal_bytes_before < self._journal_bytes_max:
            return True
        if self._job is None:
            self._begin(self._journal.durable)
            return True
        return not full

    def forget_lost(self, records: Sequence[Record]) -> bool:
        """Take records that the journal lost, and that no client was told of, out of the tables; whether some had to stay.

        The newest copy of an entry is looked for first: an older one, which may be durable, is found afterwards.
        """
        has_some = False
        for record in reversed(records):
            for run in [record] if isinstance(record, EntryRun) else runs_of([record]) if isinstance(record, EntryMix) else ():
                table = next((table for table in self.tables if table.has_some_of(run)), None)
                has_some = (table is not None and not table.cut(run)) or has_some
        return has_some

    def start(self) -> None:
        self._task = self._loop.create_task(self._flush_for_ever(), name="bookie-flusher")
        self._task.add_done_callback(self._on_task_done)

    async def flush(self, *, last: bool = False) -> None:
        """Everything that is in a table now is in storage when this returns. OSError when that failed.

        `last`: the journal is stopped, which the checkpoint notes, so that the next start need not look for more.
        """
        while self._job is not None:
            await self._until_idle()
        checkpoint = self._storage.checkpoint
        is_new = self._journal.durable > checkpoint.mark or (last and not checkpoint.journal_ended)
        if self.active or self._ledgers.has_changes() or is_new:
            self._begin(self._journal.durable, journal_ended=last)
            await self._until_idle()

    async def flush_replayed(self, mark: JournalMark) -> None:
        """During replay, before `start`: everything up to `mark` is in the active table."""
        self._job = self._take(mark)
        await self._perform(self._job)

    async def stop(self) -> None:
        """Without a last flush; stopping twice is fine."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    def _begin(self, mark: JournalMark, *, journal_ended: bool = False) -> None:
        self._job = self._take(mark, journal_ended=journal_ended)
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def _take(self, mark: JournalMark, *, journal_ended: bool = False) -> Flush:
        table, self.active = self.active, Memtable()
        self._journal_bytes_before = self._journal.written_bytes
        changed, gone = self._ledgers.take_changes()
        deleted = bool(gone) or any(state.is_deleted for state in changed)
        return Flush(table, mark, changed, gone, journal_ended, deleted)

    async def _flush_for_ever(self) -> None:
        delay = RETRY_SECONDS_MIN
        while True:
            if self._job is None:
                await self._sleep(self._interval_seconds)
                if self._job is None and (self.active or self._ledgers.has_changes()):
                    self._begin(self._journal.durable)
                continue
            try:
                await self._perform(self._job)
            except OSError as error:
                self._log_failure(error)
                self._tell(error)
                await asyncio.sleep(delay)
                is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
                delay = min(2 * delay, FULL_RETRY_SECONDS_MAX if is_full else RETRY_SECONDS_MAX)
            else:
                delay, self._failed_with = RETRY_SECONDS_MIN, None
                self._tell(None)

    def _log_failure(self, error: OSError) -> None:
        """Once for each kind of error, until a flush succeeds."""
        if error.errno != self._failed_with:
            log.error(line("flush failed, and is tried again", error=error, remedy="the journal holds what is not flushed"))
        self._failed_with = error.errno

    def _on_task_done(self, task: "asyncio.Task[None]") -> None:
        """A flusher that dies of a bug must not leave its callers waiting for ever."""
        if task.cancelled() or (error := task.exception()) is None:
            return
        log.critical(line("flusher died"), exc_info=error)
        self._tell(OSError(errno.EIO, f"flusher died: {error!r}"))

    async def _perform(self, job: Flush) -> None:
        await self._storage.flush(job, list(self._ledgers.all()), self._pause)
        self._job = None
        try:
            if job.deleted:
                await self._storage.drop_dead_logs()
            await self._journal.release(self._storage.checkpoint.mark)
        except OSError as error:
            log.warning(line("unneeded files not removed", error=error))

    async def _pause(self) -> None:
        """Leaves the loop to others between two slices of a flush: for one turn where a caller, or the filling table, waits."""
        is_urgent = self._idle is not None or self.active.size_bytes > self._table_bytes_max // 4
        await asyncio.sleep(0 if is_urgent else PAUSE_SECONDS)

    def _tell(self, error: OSError | None) -> None:
        idle, self._idle = self._idle, None
        if idle is not None and not idle.done():
            if error is None:
                idle.set_result(None)
            else:
                idle.set_exception(error)
        self._on_flushed(error)

    async def _until_idle(self) -> None:
        if self._idle is None:
            self._idle = self._loop.create_future()
        await asyncio.shield(self._idle)

    async def _sleep(self, seconds: float) -> None:
        self._wake = self._loop.create_future()
        timer = self._loop.call_later(seconds, self._begin_nothing)
        await self._wake
        timer.cancel()

    def _begin_nothing(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)
