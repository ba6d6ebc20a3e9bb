"""LogFile: an entry log that is written, block by block, and its index: by the flushes of memtables, and by a compaction.

Blocks go to the disk in large pieces that end where a page does, so that they bypass the page cache (`ports.disk.direct_io`).
Nothing here is durable before `finish`, and nothing for good before a checkpoint names it.
"""

from collections.abc import Sequence

from bookie.settings import MEGABYTE
from bookie.storage.block_v1 import LOG_ALIGNMENT, encode_block, encode_log_header
from bookie.storage.files_v1 import LogExtent, encode_index
from bookie.storage.span import Span
from ports.disk.disk import Buffer, Disk, File
from wire.run import EntryRun

WRITE_BYTES = 2 * MEGABYTE
"""Written at once: in between, the event loop and the disk's other lanes get their turn."""


def log_name(log_id: int) -> str:
    return f"{log_id:08x}.log"


def index_name(log_id: int) -> str:
    return f"{log_id:08x}.index"


def new_log(log_id: int) -> LogExtent:
    """A log without blocks."""
    return LogExtent(log_id, LOG_ALIGNMENT, 0)


class LogFile:
    """`open`, `append` in the order of ledgers and entries, `finish` as often as that is to count; `close` whatever happened.

    `extent`: what of it is good already. After an OSError it must not be written any more.
    """

    def __init__(self, disk: Disk, directory: str, extent: LogExtent, lane: str, *, direct: bool) -> None:
        self._disk, self._directory, self._lane, self._direct = disk, directory, lane, direct
        self.log_id = extent.log_id
        self.size_bytes = extent.log_bytes
        """With what waits to be written."""
        self._index_bytes = extent.index_bytes
        self._buffers: list[Buffer] = []
        self._waiting_bytes = 0
        self._batch: list[tuple[int, Span]] = []
        self._log: File | None = None
        self._index: File | None = None

    @property
    def names(self) -> tuple[str, str]:
        return log_name(self.log_id), index_name(self.log_id)

    async def open(self) -> None:
        """A log without blocks is made; its name is durable when this returns."""
        is_new = not self._index_bytes
        log_path, index_path = (f"{self._directory}/{name}" for name in self.names)
        self._log = await self._disk.open(log_path, create=is_new, lane=self._lane, direct=self._direct)
        self._index = await self._disk.open(index_path, create=is_new, lane=self._lane)
        if is_new:
            await self._log.write(0, [encode_log_header(self.log_id)])
            await self._disk.sync_directory(self._directory)

    async def append(self, runs: Sequence[EntryRun]) -> Span:
        """Runs of one ledger that follow one another, as one block."""
        block, block_bytes = encode_block(runs)
        first, last = runs[0], runs[-1]
        count = last.last_entry_id - first.first_entry_id + 1
        assert count == sum(run.count for run in runs), f"the entries of ledger {first.ledger_id} have a gap"
        assert not self._batch or _end(*self._batch[-1]) < (first.ledger_id, first.first_entry_id), "blocks ascend"
        span = Span(first.first_entry_id, count, self.log_id, self.size_bytes, block_bytes)
        self._batch.append((first.ledger_id, span))
        self._buffers += block
        self.size_bytes += block_bytes
        self._waiting_bytes += block_bytes
        if self._waiting_bytes >= WRITE_BYTES:
            await self._write_pages()
        return span

    async def _write_pages(self) -> None:
        assert self._log is not None
        start = self.size_bytes - self._waiting_bytes
        rest = _keep_back(self._buffers, self._waiting_bytes % LOG_ALIGNMENT)
        await self._log.write(start, self._buffers)
        self._buffers, self._waiting_bytes = [rest] if rest else [], len(rest)

    async def finish(self) -> tuple[LogExtent, list[tuple[int, Span]]]:
        """Everything appended, padded to a page, is durable, and its index: how much there is, and what is new of it."""
        assert self._log is not None
        assert self._index is not None
        start, padding = self.size_bytes - self._waiting_bytes, -self.size_bytes % LOG_ALIGNMENT
        await self._log.write(start, [*self._buffers, bytes(padding)], sync=True)
        self.size_bytes += padding
        self._buffers, self._waiting_bytes = [], 0
        batch, self._batch = self._batch, []
        record = encode_index(self.log_id, batch)
        await self._index.write(self._index_bytes, [record], sync=True)
        self._index_bytes += len(record)
        return LogExtent(self.log_id, self.size_bytes, self._index_bytes), batch

    async def close(self) -> None:
        """Closing twice is fine."""
        files, self._log, self._index = (self._log, self._index), None, None
        for file in files:
            if file is not None:
                await file.close()


def _end(ledger_id: int, span: Span) -> tuple[int, int]:
    return ledger_id, span.last_entry_id


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
