"""LogWriter: appends the blocks of a flush to the current entry log and its index, and syncs both.

Nothing here is durable for good before the checkpoint names it. After an error the current log is left as the checkpoint
knows it, and the next flush begins another: an fsync that failed once may claim success later.
"""

from collections.abc import Iterable

from bookie.settings import MEGABYTE
from bookie.storage import block_v1
from bookie.storage.block_v1 import LOG_ALIGNMENT, encode_block, encode_log_header, plan_blocks
from bookie.storage.files_v1 import LogExtent, encode_index
from bookie.storage.span import Span
from ports.disk import Buffer, Disk, File
from wire.run import EntryRun

LANE = "entry-log"
WRITE_BYTES = 2 * MEGABYTE
"""Written at once: in between, the event loop and the disk's other lanes get their turn."""


def log_name(log_id: int) -> str:
    return f"{log_id:08x}.log"


def index_name(log_id: int) -> str:
    return f"{log_id:08x}.index"


class LogWriter:
    """The entry log that is written. One flush at a time."""

    def __init__(self, disk: Disk, directory: str, log_bytes_max: int, *, direct: bool) -> None:
        self._disk = disk
        self._directory = directory
        self._log_bytes_max = log_bytes_max
        self._direct = direct
        self._log_id = 0
        self._log: File | None = None
        self._index: File | None = None
        self._offset = 0
        self._index_bytes = 0
        self.next_log_id = 1

    def resume(self, next_log_id: int, last: LogExtent | None) -> None:
        """Go on after what the checkpoint names; the last log is opened when something is written."""
        self.next_log_id = next_log_id
        if last is not None and last.log_bytes < self._log_bytes_max:
            self._log_id, self._offset, self._index_bytes = last.log_id, last.log_bytes, last.index_bytes

    def take_log_id(self) -> int:
        """The next, which nobody else gets."""
        log_id, self.next_log_id = self.next_log_id, self.next_log_id + 1
        return log_id

    async def write(self, ledgers: Iterable[tuple[int, Iterable[EntryRun]]]) -> tuple[list[LogExtent], list[tuple[int, Span]]]:
        """Sorted runs by ledger: the logs as they are now, and where the entries went. OSError: nothing of it counts."""
        try:
            return await self._write(ledgers)
        except OSError:
            self._log_id = 0
            await self.close()
            raise

    async def close(self) -> None:
        """Closing twice is fine."""
        files, self._log, self._index = (self._log, self._index), None, None
        for file in files:
            if file is not None:
                await file.close()

    async def _write(self, ledgers: Iterable[tuple[int, Iterable[EntryRun]]]) -> tuple[list[LogExtent], list[tuple[int, Span]]]:
        extents: list[LogExtent] = []
        written: list[tuple[int, Span]] = []
        batch: list[tuple[int, Span]] = []
        buffers: list[Buffer] = []
        waiting, start = 0, 0
        for ledger_id, runs in ledgers:
            for together in plan_blocks(runs):
                if self._log_id == 0 or self._log is None:
                    await self._open()
                if not buffers:
                    start = self._offset
                block, size = encode_block(together)
                first, last = together[0], together[-1]
                count = last.last_entry_id - first.first_entry_id + 1
                batch.append((ledger_id, Span(first.first_entry_id, count, self._log_id, self._offset, size)))
                buffers += block
                self._offset += size
                waiting += size
                if waiting >= WRITE_BYTES:
                    rest = _keep_back(buffers, waiting % LOG_ALIGNMENT)
                    await self._log_file().write(start, buffers)
                    start, buffers, waiting = self._offset - len(rest), [rest] if rest else [], len(rest)
                if self._offset >= self._log_bytes_max:
                    extents.append(await self._finish(start, buffers, batch))
                    written += batch
                    buffers, batch, waiting = [], [], 0
                    self._log_id = 0
        if batch:
            extents.append(await self._finish(start, buffers, batch))
        return extents, written + batch

    async def _finish(self, start: int, buffers: list[Buffer], batch: list[tuple[int, Span]]) -> LogExtent:
        """Write the rest, padded; then make log and index durable."""
        padding = -self._offset % LOG_ALIGNMENT
        log, index = self._log_file(), self._index
        assert index is not None
        await log.write(start if buffers else self._offset, [*buffers, bytes(padding)], sync=True)
        self._offset += padding
        record = encode_index(self._log_id, batch)
        await index.write(self._index_bytes, [record], sync=True)
        self._index_bytes += len(record)
        return LogExtent(self._log_id, self._offset, self._index_bytes)

    async def _open(self) -> None:
        await self.close()
        create = self._log_id == 0
        if create:
            self._log_id = self.take_log_id()
            self._offset, self._index_bytes = block_v1.LOG_ALIGNMENT, 0
        log_id = self._log_id
        self._log = await self._disk.open(
            f"{self._directory}/{log_name(log_id)}", create=create, lane=LANE, direct=self._direct
        )
        self._index = await self._disk.open(f"{self._directory}/{index_name(log_id)}", create=create, lane=LANE)
        if create:
            await self._log.write(0, [encode_log_header(log_id)])
            await self._disk.sync_directory(self._directory)

    def _log_file(self) -> File:
        assert self._log is not None
        return self._log


def _keep_back(buffers: list[Buffer], size: int) -> bytes:
    """Take the last `size` bytes away, so that what is written now ends where a page does."""
    parts: list[Buffer] = []
    while size:
        last = buffers.pop()
        if len(last) > size:
            view = memoryview(last)
            buffers.append(view[: len(view) - size])
            last = view[len(view) - size :]
        size -= len(last)
        parts.append(last)
    return b"".join(reversed(parts))
