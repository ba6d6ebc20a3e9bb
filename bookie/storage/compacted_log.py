"""CompactedLog: the entry log that a compaction writes, block by block. Until a checkpoint names it, it is nothing."""

from collections.abc import Sequence

from bookie.storage.block_v1 import LOG_ALIGNMENT, encode_block, encode_log_header
from bookie.storage.files_v1 import LogExtent, encode_index
from bookie.storage.log_writer import index_name, log_name
from bookie.storage.span import Span
from ports.disk import Disk, File
from wire.run import EntryRun

LANE = "compaction"


class CompactedLog:
    """`open`, `append` in the order of ledgers and entries, `finish`; `close` whatever happened."""

    def __init__(self, disk: Disk, directory: str, log_id: int) -> None:
        self._disk = disk
        self._directory = directory
        self.log_id = log_id
        self._offset = LOG_ALIGNMENT
        self._batch: list[tuple[int, Span]] = []
        self._log: File | None = None

    @property
    def names(self) -> tuple[str, str]:
        return log_name(self.log_id), index_name(self.log_id)

    async def open(self) -> None:
        self._log = await self._disk.open(f"{self._directory}/{log_name(self.log_id)}", create=True, lane=LANE)
        await self._log.write(0, [encode_log_header(self.log_id)])

    async def append(self, runs: Sequence[EntryRun]) -> Span:
        """Runs of one ledger that follow one another, as one block."""
        assert self._log is not None
        buffers, size = encode_block(runs)
        first, last = runs[0], runs[-1]
        count = last.last_entry_id - first.first_entry_id + 1
        span = Span(first.first_entry_id, count, self.log_id, self._offset, size)
        await self._log.write(self._offset, buffers)
        self._offset += size
        self._batch.append((first.ledger_id, span))
        return span

    async def finish(self) -> LogExtent:
        """Log, index and their names are durable when this returns."""
        assert self._log is not None
        padding = -self._offset % LOG_ALIGNMENT
        await self._log.write(self._offset, [bytes(padding)], sync=True)
        record = encode_index(self.log_id, self._batch)
        index = await self._disk.open(f"{self._directory}/{index_name(self.log_id)}", create=True, lane=LANE)
        try:
            await index.write(0, [record], sync=True)
        finally:
            await index.close()
        await self._disk.sync_directory(self._directory)
        return LogExtent(self.log_id, self._offset + padding, len(record))

    async def close(self) -> None:
        """Closing twice is fine."""
        file, self._log = self._log, None
        if file is not None:
            await file.close()
