"""Journal: the driver that makes records durable. Owns the files and the order; what is written together `GroupCommit` decides.

A future given to `append` is done after the fsync of the frame that holds its record; futures complete in the order of the
calls. After an I/O error nothing is written to that file again (an fsync that failed once may claim success later): all that
waits fails with EREADONLY, and so does everything until `revive`.
What waits is bounded by the caller: each run is in a memtable too.
"""

import asyncio
import errno
import logging
from collections.abc import Callable
from typing import NamedTuple

from bookie.journal import format_v1 as form
from bookie.journal.files import JournalFiles
from bookie.journal.format_v1 import Record
from bookie.journal.group_commit import GroupCommit, WaitUntil, Write
from bookie.journal.mark import JournalMark
from bookie.journal.replay import JournalReplay
from bookie.journal.stats import JournalStats
from bookie.settings import MEGABYTE, BookieSettings
from ports.disk import Disk, File
from ports.logs import line
from wire.bookie_codes import BookieCode, BookieError

FRAME_BYTES_MAX = 4 * MEGABYTE
"""Of the runs that share a frame; a larger run gets a frame of its own."""
log = logging.getLogger("bookie.journal")


class Pending(NamedTuple):
    """A record to write, or (without one) an error to give when all before it is done."""

    record: Record | None
    future: "asyncio.Future[None] | None"
    error: BookieError | None = None


class Journal:
    """Appends records. `replay` first, then `start`."""

    def __init__(
        self, disk: Disk, directory: str, secret: bytes, settings: BookieSettings, on_failed: Callable[[OSError], None]
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._secret = secret
        self._alignment = settings.journal_alignment_size
        self._file_bytes_max = settings.journal_max_size_mb * MEGABYTE
        self._step_bytes = settings.journal_pre_alloc_size_mb * MEGABYTE
        self._files = JournalFiles(disk, directory, secret, settings)
        self._commit: GroupCommit[Pending] = GroupCommit(
            group_bytes=settings.journal_buffered_writes_threshold,
            group_bytes_max=FRAME_BYTES_MAX,
            wait_seconds=settings.journal_max_group_wait_msec / 1000,
        )
        self._on_failed = on_failed
        self._loop = asyncio.get_running_loop()
        self._wake: asyncio.Future[None] | None = None
        self._writer: asyncio.Task[None] | None = None
        self._in_flight: list[Pending] = []
        self._stopping = False
        self._failure: OSError | None = None
        self._file: File | None = None
        self._file_id = 0
        self._key = 0
        self._offset = 0
        self._allocated = 0
        self.durable = JournalMark()
        self.written_bytes = 0
        self.stats = JournalStats()

    def replay(self, mark: JournalMark, *, ended: bool, lost: bool = False) -> JournalReplay:
        """What is after `mark` (`ended`: nothing in the mark's own file; `lost`: it may be gone); then to `start` with it."""
        return JournalReplay(self._disk, self._directory, self._secret, mark, self._alignment, ended=ended, lost=lost)

    def begin_anew(self) -> None:
        """The journal up to here is lost: the mark is at the beginning of the file that is written next."""
        self.durable = JournalMark(self.durable.sequence, self._file_id, self._alignment)

    async def start(self, replay: JournalReplay) -> None:
        """Open the next file and begin to write, after the last frame that was replayed."""
        await replay.make_end_durable()
        self.durable = replay.end
        self._files.adopt(replay.live, replay.spare, replay.next_id)
        try:
            await self._open_next()
        except OSError as error:
            self._fail(error, [])  # a full disk: reads go on, and so may the writer after `revive`
        self._writer = self._loop.create_task(self._write_groups(), name="journal-writer")
        self._writer.add_done_callback(self._on_writer_done)

    def append(self, record: Record, size_bytes: int, future: "asyncio.Future[None] | None") -> None:
        if self._failure is not None:
            self._complete([Pending(record, future, self._refusal(record))], None)
            return
        self._queue(Pending(record, future), size_bytes)

    def refuse(self, future: "asyncio.Future[None]", error: BookieError) -> None:
        """Fail `future`, after everything appended before."""
        self._queue(Pending(None, future, error), 0)

    async def release(self, mark: JournalMark) -> None:
        """Everything up to `mark` is durable elsewhere: files before it may be written again."""
        await self._files.release(mark.file_id)

    def revive(self) -> None:
        """Write again, to a new file. Only sensible when the failure was a full disk."""
        self._failure = None

    @property
    def queue_size(self) -> int:
        """Records that wait to be written."""
        return self._commit.waiting_count

    @property
    def failure(self) -> OSError | None:
        return self._failure

    async def stop(self) -> None:
        """Write what waits, then end. Stopping twice is fine."""
        self._stopping = True
        self._ask()
        if self._writer is not None:
            await asyncio.wait([self._writer])
            self._writer = None
        await self._files.close()
        await self._close_file()

    def _queue(self, item: Pending, size_bytes: int) -> None:
        if self._commit.on_queued(item, size_bytes, self._loop.time()):
            self._ask()

    def _ask(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    async def _write_groups(self) -> None:
        while True:
            began_at, queued_at = self._loop.time(), self._commit.oldest_at
            decision = self._commit.next(began_at)
            if isinstance(decision, Write):
                await self._write(decision.items)
                records = [item.record for item in decision.items]
                has_failed = self._failure is not None
                self.stats.wrote(records, queued_at, began_at, self._loop.time(), has_failed=has_failed)
            elif self._stopping and decision is None:
                return
            else:
                await self._sleep(decision)

    def _on_writer_done(self, writer: "asyncio.Task[None]") -> None:
        """A writer that dies of a bug must not leave its callers waiting for ever."""
        if writer.cancelled() or (error := writer.exception()) is None:
            return
        log.critical(line("journal writer died"), exc_info=error)
        self._fail(OSError(errno.EIO, f"journal writer died: {error!r}"), self._in_flight)

    async def _sleep(self, until: WaitUntil | None) -> None:
        self._wake = self._loop.create_future()
        timer = None if until is None else self._loop.call_at(until.time, self._ask)
        await self._wake
        if timer is not None:
            timer.cancel()

    async def _write(self, items: list[Pending]) -> None:
        records = [item.record for item in items if item.record is not None]
        self._in_flight = items
        try:
            if records:
                await self._write_frame(records)
        except OSError as error:
            self._fail(error, items)
            await self._abandon_file()
            self._commit.on_written()
        else:
            self._commit.on_written()  # before anybody hears of it: what they add comes after this write
            self._complete(items, None)

    async def _write_frame(self, records: list[Record]) -> None:
        sequence = self.durable.sequence + 1
        buffers, size = form.encode_frame(records, self._key, sequence, self._alignment)
        if self._file is None or (self._offset + size > self._file_bytes_max and self._offset > 0):
            await self._open_next()
            buffers, size = form.encode_frame(records, self._key, sequence, self._alignment)
        file, offset = self._file, self._offset
        assert file is not None
        end = offset + size
        if offset == 0:
            end += self._alignment
            header = form.FileHeader(self._alignment, self._file_id, sequence)
            buffers = [form.encode_file_header(header, self._key), *buffers]
        if end > self._allocated:
            self._allocated = max(min(self._allocated + self._step_bytes, self._file_bytes_max), end)
            await file.allocate(self._allocated)
        await file.write(offset, buffers, sync=True)
        self._offset = end
        self.durable = JournalMark(sequence, self._file_id, end)
        self.written_bytes += size
        if end * 2 > self._file_bytes_max:
            self._files.prepare_next()

    async def _open_next(self) -> None:
        await self._close_file()
        self._file_id, file = await self._files.take_next()
        self._file = file
        self._key = form.file_key(self._secret, self._file_id)
        self._offset = 0
        self._allocated = file.size()

    async def _close_file(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            await file.close()

    async def _abandon_file(self) -> None:
        try:
            await self._close_file()
        except OSError as error:
            log.warning(line("journal file not closed", file_id=self._file_id, error=error))

    def _fail(self, error: OSError, items: list[Pending]) -> None:
        log.error(line("journal write failed", directory=self._directory, file_id=f"{self._file_id:016x}", error=error))
        self._failure = error
        self._complete(items, error)
        self._complete(self._commit.drain(), error)
        self._on_failed(error)

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
