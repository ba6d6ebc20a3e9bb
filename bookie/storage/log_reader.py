"""LogReader: reads blocks of entry logs, one read per block, through a small cache of blocks and a bounded set of open files.

What cannot be read, or is not the block asked for, is DamagedBlock or OSError: never an answer "there is no such entry".
"""

from collections import OrderedDict

from bookie.storage.block_v1 import (
    BLOCK_HEADER_BYTES,
    LOG_ALIGNMENT,
    DamagedBlock,
    block_size,
    decode_block,
)
from bookie.storage.files_v1 import LogExtent
from bookie.storage.log_writer import log_name
from bookie.storage.span import Span
from ports.disk import Disk, File
from wire.run import EntryRun

LANE = "entry-log-reads"


class LogReader:
    """Reads of all logs. At most `files_max` stay open and `cache_bytes_max` of blocks stay in memory; the oldest go first."""

    def __init__(self, disk: Disk, directory: str, *, files_max: int, cache_bytes_max: int) -> None:
        self._disk = disk
        self._directory = directory
        self._files_max = files_max
        self._cache_bytes_max = cache_bytes_max
        self._files: OrderedDict[int, File] = OrderedDict()
        self._blocks: OrderedDict[tuple[int, int], EntryRun] = OrderedDict()
        self._cached_bytes = 0

    async def read(self, ledger_id: int, span: Span) -> EntryRun:
        """The whole block of the span."""
        place = (span.log_id, span.offset)
        cached = self._blocks.get(place)
        if cached is not None:
            self._blocks.move_to_end(place)
            return cached
        file = await self._file(span.log_id)
        data = await file.read(span.offset, span.size_bytes)
        await self._close_surplus()
        run = decode_block(data)
        if (
            run.ledger_id != ledger_id
            or not run.first_entry_id <= span.first_entry_id <= span.last_entry_id <= run.last_entry_id
        ):
            raise DamagedBlock(f"holds {run.ledger_id}:{run.first_entry_id}..{run.last_entry_id}")
        self._remember(place, run, span.size_bytes)
        return run

    async def scan(self, extent: LogExtent) -> tuple[list[tuple[int, Span]], bool]:
        """All blocks of a log, from their own headers and checksums; and whether that was everything."""
        file = await self._file(extent.log_id)
        found: list[tuple[int, Span]] = []
        offset, whole = LOG_ALIGNMENT, file.size() >= extent.log_bytes
        while offset < extent.log_bytes:
            try:
                size = block_size(await file.read(offset, BLOCK_HEADER_BYTES))
                run = decode_block(await file.read(offset, min(size, extent.log_bytes - offset)), check_data=True)
            except DamagedBlock:
                rest = await file.read(offset, -offset % LOG_ALIGNMENT)
                whole = whole and not any(rest) and bool(offset % LOG_ALIGNMENT)
                offset = (offset // LOG_ALIGNMENT + 1) * LOG_ALIGNMENT  # a flush begins there, or nothing does
                continue
            found.append((run.ledger_id, Span(run.first_entry_id, run.count, extent.log_id, offset, size)))
            offset += size
        return found, whole

    async def forget(self, log_id: int) -> None:
        """The log goes away."""
        for place in [place for place in self._blocks if place[0] == log_id]:
            self._cached_bytes -= len(self._blocks.pop(place).buffer)
        file = self._files.pop(log_id, None)
        if file is not None:
            await file.close()

    async def close(self) -> None:
        for log_id in list(self._files):
            await self.forget(log_id)

    def _remember(self, place: tuple[int, int], run: EntryRun, size_bytes: int) -> None:
        if place in self._blocks:
            return  # two reads of one block were under way
        self._blocks[place] = run
        self._cached_bytes += size_bytes
        while self._cached_bytes > self._cache_bytes_max:
            self._cached_bytes -= len(self._blocks.popitem(last=False)[1].buffer)

    async def _file(self, log_id: int) -> File:
        file = self._files.get(log_id)
        if file is None:
            file = await self._disk.open(f"{self._directory}/{log_name(log_id)}", lane=LANE)
            other = self._files.get(log_id)
            if other is not None:
                await file.close()
                return other
            self._files[log_id] = file
        else:
            self._files.move_to_end(log_id)
        return file

    async def _close_surplus(self) -> None:
        """The files used longest ago; after the read, and not while another one is about to use its file."""
        surplus = [self._files.popitem(last=False)[1] for _ in range(len(self._files) - self._files_max)]
        for file in surplus:
            await file.close()
