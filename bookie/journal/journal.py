"""Journal: the driver that makes records durable. Owns the order and the futures of waiting records. `GroupCommit`
decides which records are written together, `Frames` where they go.

A future given to `append` is done after the fsync of the frame that holds its record; futures complete in the order of the
calls. Records appended in one turn of the loop are looked at together, at its end; the disk's promise tells the end of a
write, in the turn in which it is known: neither takes a task. After an I/O error all waiting records fail with EREADONLY, and
so does each append until `revive`; `on_failed` gets the lost records, so that no memtable need keep them.
The caller bounds the waiting records: each run is in a memtable too.
"""

import asyncio
import contextvars
import errno
import logging
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from bookie.journal.files import JournalFiles
from bookie.journal.format_v1 import JournalMark, Record
from bookie.journal.frames import Frames, NoRoomForFrame
from bookie.journal.group_commit import GroupCommit, Write
from bookie.journal.replay import JournalReplay
from bookie.journal.stats import JournalStats
from bookie.settings import MEGABYTE, BookieSettings
from ports.disk.disk import Disk
from ports.disk.kept_room import KeptRoom
from ports.logs import line
from ports.loop.promise import listen
from wire.bookie.codes import BookieCode, BookieError

FRAME_BYTES_MAX = 4 * MEGABYTE
"""Size of the runs that share a frame; a larger run gets a frame of its own."""
LEFT_BYTES_MIN = 64 * 1024
"""A file with so much room left is good enough to go on with."""
log = logging.getLogger("bookie.journal")


Pending: TypeAlias = "tuple[Record | None, asyncio.Future[None] | None, BookieError | None]"
"""A record to write, or (without one) an error to give when all before it is done; and the future of its caller."""


class Journal:
    """Appends records. `replay` first, then `start`."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        secret: bytes,
        settings: BookieSettings,
        on_failed: Callable[[OSError, list[Record]], bool],
    ) -> None:
        """`on_failed` gets the lost records, and returns whether a memtable still has some of them."""
        self._disk = disk
        self._directory = directory
        self._secret = secret
        self._alignment = settings.journal_alignment_size
        self._files = JournalFiles(disk, directory, secret, settings)
        self._frames = Frames(self._files, secret, settings)
        self._commit: GroupCommit[Pending] = GroupCommit(
            group_bytes=settings.journal_buffered_writes_threshold,
            group_bytes_max=FRAME_BYTES_MAX,
            wait_seconds=settings.journal_max_group_wait_msec / 1000,
            waits_at_rest=not settings.journal_flush_when_queue_empty,
        )
        self._on_failed = on_failed
        self._loop = asyncio.get_running_loop()
        self._is_running = self._is_asked = False
        self._context = contextvars.copy_context()
        """The bookie's own: the caller that appends may be gone when it is written."""
        self._writing: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._abandoning: asyncio.Task[None] | None = None
        self._idle: asyncio.Future[None] | None = None
        """Future of a caller that waits for the end of the queued records."""
        self._failure: OSError | None = None
        self.has_lost = False
        """An appended record is not in the journal, though a memtable may have it."""
        self.durable = JournalMark()
        self.written_bytes = 0
        self.stats = JournalStats()

    def replay(self, mark: JournalMark, *, ended: bool, lost: bool = False) -> JournalReplay:
        """Records after `mark` (`ended`: none in the mark's own file; `lost`: it may be gone). Pass the result to `start`."""
        return JournalReplay(self._disk, self._directory, self._secret, mark, self._alignment, ended=ended, lost=lost)

    @property
    def kept(self) -> KeptRoom:
        """Room kept for the next files on a full disk."""
        return self._files.kept

    def begin_anew(self) -> None:
        """The journal up to here is lost: the mark is at the beginning of the file that is written next."""
        self.durable = JournalMark(self.durable.sequence, self._frames.file_id, self._alignment)

    @property
    def beginning(self) -> JournalMark:
        """Before the first frame, in the oldest file that is needed; of no file where there is none."""
        return JournalMark(0, self._files.oldest_id, self._alignment)

    async def start(self, replay: JournalReplay) -> None:
        """Open the next file and begin to write, after the last frame that was replayed."""
        await replay.make_end_durable()
        self.durable = replay.end
        self._files.adopt(replay.live, replay.spare, replay.next_id)
        try:
            await self._frames.open_next()
        except OSError as error:
            self._fail(error, [])  # a full disk: reads go on, and so may writes after `revive`
        self._is_running = True
        self._ask()

    def append(self, record: Record, size_bytes: int, future: "asyncio.Future[None] | None") -> None:
        if self._failure is not None:
            self.has_lost = self._on_failed(self._failure, [record]) or self.has_lost
            self._complete([(record, future, self._refusal(record))], None)
        elif self._commit.on_queued((record, future, None), size_bytes, self._loop.time()) and not self._is_asked:
            self._ask()

    def refuse(self, future: "asyncio.Future[None]", error: BookieError) -> None:
        """Fail `future`, after everything appended before."""
        self._queue((None, future, error), 0)

    async def release(self, mark: JournalMark) -> None:
        """Everything up to `mark` is durable elsewhere: files before it may be written again."""
        await self._files.release(mark.file_id)

    async def revive(self) -> bool:
        """Write again, to the rest of the file or a new one, if there is room. Only sensible after a full disk."""
        if self._abandoning is not None:
            await asyncio.wait([self._abandoning])
        if self._frames.left_bytes < LEFT_BYTES_MIN:
            try:
                await self._frames.open_next()
            except OSError:  # `JournalFiles` has logged the error; the caller asks again
                if self._frames.left_bytes == 0:
                    return False
        self._failure = None
        return True

    async def written(self) -> None:
        """Wait until all appended records are on disk, or lost (`has_lost`)."""
        future = self._loop.create_future()
        self._queue((None, future, None), 0)
        await future

    @property
    def queue_size(self) -> int:
        """Records that wait to be written."""
        return self._commit.waiting_count

    @property
    def failure(self) -> OSError | None:
        return self._failure

    async def stop(self) -> None:
        """Write what waits, then end. Stopping twice is fine."""
        if self._is_running:
            while not self._commit.is_idle:
                self._idle = self._loop.create_future()
                await self._idle
            self._is_running = False
        await self._files.close()
        await self._frames.close()

    # Writing

    def _queue(self, item: Pending, size_bytes: int) -> None:
        if self._commit.on_queued(item, size_bytes, self._loop.time()):
            self._ask()

    def _ask(self) -> None:
        """Look at the queue once it has all records of this turn of the loop."""
        if not self._is_asked:
            self._is_asked = True
            self._loop.call_soon(self._go_on, context=self._context)

    def _go_on(self) -> None:
        self._is_asked = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._is_running:
            return
        now, queued_at = self._loop.time(), self._commit.oldest_at
        decision = self._commit.next(now)
        if isinstance(decision, Write):
            self._write(decision.items, queued_at, now)
        elif decision is not None:
            self._timer = self._loop.call_at(decision.time, self._go_on, context=self._context)
        elif self._idle is not None and self._commit.is_idle and not self._idle.done():
            self._idle.set_result(None)

    def _write(self, items: list[Pending], queued_at: float, began_at: float) -> None:
        records = [record for record, _, _ in items if record is not None]
        if not records:
            self._commit.on_written()
            self._complete(items, None)
            self._ask()
            return
        try:
            self._writing = self._frames.write(records, self.durable.sequence + 1)
        except Exception as error:  # noqa: BLE001  # a bug of ours: callers that wait must not wait for ever
            self._end_file(items, error)
        else:
            listen(self._writing, partial(self._on_written, items, records, queued_at, began_at))

    def _on_written(
        self,
        items: list[Pending],
        records: list[Record],
        queued_at: float,
        began_at: float,
        write: "asyncio.Future[None]",
    ) -> None:
        if write.cancelled():
            return  # the loop ends
        error = write.exception()
        self.stats.wrote(records, queued_at, began_at, self._loop.time(), has_failed=error is not None)
        if error is not None:
            self._end_file(items, error)
            return
        frames = self._frames
        self.durable = JournalMark(self.durable.sequence + 1, frames.file_id, frames.end)
        self.written_bytes += frames.size_bytes
        self._commit.on_written()  # before a caller is notified: entries that it adds then come after this write
        self._complete(items, None)
        self._go_on()

    # When it fails

    def _end_file(self, items: list[Pending], error: BaseException) -> None:
        """Nothing is written before the file is closed. One on which the frame was not begun is as good as before."""
        if isinstance(error, NoRoomForFrame):
            self._fail(error, items)
            self._commit.on_written()
            self._ask()
            return
        if not isinstance(error, OSError):
            log.critical(line("journal writer died"), exc_info=error)
            error = OSError(errno.EIO, f"journal writer died: {error!r}")
        self._fail(error, items)
        self._abandoning = self._loop.create_task(self._abandon_file(), name="journal file abandoned")

    async def _abandon_file(self) -> None:
        await self._frames.abandon()
        self._commit.on_written()
        self._go_on()

    def _fail(self, error: OSError, items: list[Pending]) -> None:
        file_id = f"{self._frames.file_id:016x}"
        log.error(line("journal write failed", directory=self._directory, file_id=file_id, error=error))
        self._failure = error
        items = [*items, *self._commit.drain()]
        self.has_lost = self._on_failed(error, [record for record, _, _ in items if record is not None]) or self.has_lost
        self._complete(items, error)

    def _refusal(self, record: Record) -> BookieError:
        return BookieError(BookieCode.EREADONLY, record.ledger_id, f"journal: {self._failure}")

    def _complete(self, items: list[Pending], failure: OSError | None) -> None:
        for record, future, error in items:
            if future is None or future.done():
                continue
            if failure is not None and record is not None:
                error = self._refusal(record)
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)
