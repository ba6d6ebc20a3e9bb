"""LogReader: reads the wanted entries of entry logs' blocks and no more, through a bounded set of open files.

Remembers the tables of the blocks read lately, so that the next part of a block, or any single entry, is one read of just that.
A block that is not known is read from its beginning: table and entries at once where the entries asked for come first.
A block that cannot be read, or is another one, raises DamagedBlock or OSError: never an answer "there is no such entry".
"""

from array import array
from collections import OrderedDict
from collections.abc import Sequence

from bookie.reads.reading import stop_within
from bookie.storage.block_v1 import (
    BLOCK_HEADER_BYTES,
    EXTENT_BYTES,
    LOG_ALIGNMENT,
    BlockTable,
    DamagedBlock,
    block_size,
    decode_block,
    decode_table,
    entry_count,
    entry_extent,
    head_size,
    offsets_at,
)
from bookie.storage.files_v1 import LogExtent
from bookie.storage.log_file import log_name
from bookie.storage.read_ahead import ReadAhead
from bookie.storage.span import Span
from ports.disk.disk import Disk, File
from wire.run import Buffer, EntryRun
from wire.run_parts import is_what_it_says

LANE = "entry-log-reads"
TABLE_BYTES_FOR_ONE_MAX = 8192
"""Largest table that is read for a single entry; of a larger one only the offsets are read, if they lead to the entry."""
TABLE_OVERHEAD_BYTES = 320
"""Memory that CPython needs for a table beside its offsets."""


class LogReader:
    """Reads of all logs. At most `files_max` stay open and `tables_bytes_max` of tables in memory; the oldest go first."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        *,
        files_max: int,
        tables_bytes_max: int,
        direct: bool,
        ahead: ReadAhead | None = None,
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._direct = direct
        self._files_max = files_max
        self._tables_bytes_max = tables_bytes_max
        self._files: OrderedDict[int, File] = OrderedDict()
        self._tables: OrderedDict[tuple[int, int], BlockTable] = OrderedDict()
        self._tables_bytes = 0
        self._ahead = ahead or ReadAhead(0, 0, 0)

    @property
    def ahead(self) -> ReadAhead:
        return self._ahead

    async def read(self, ledger_id: int, span: Span, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
        """Read from an entry of the span on: at least that one, else within both bounds."""
        file = await self._file(span.log_id)
        place = (span.log_id, span.offset)
        table = self._known(place)
        head: Buffer = b""
        goes_on = self._ahead.goes_on(ledger_id, first_entry_id)
        if table is None and count_max == 1 and not goes_on and head_size(span.count) > TABLE_BYTES_FOR_ONE_MAX:
            alone = await self.pick([(ledger_id, span, first_entry_id)], span.size_bytes)
            if alone and is_what_it_says(alone[0]):
                self._ahead.was_read(ledger_id, first_entry_id)
                return alone[0]
        if table is None:
            wanted = self._ahead.widened(count_max, bytes_max) if goes_on else (count_max, bytes_max)
            head = await self._read_head(file, span, first_entry_id, *wanted)
            table = self._learned(ledger_id, span, head)
            if goes_on:
                self._ahead.keep(place, 0, head)
        start = first_entry_id - table.first_entry_id
        stop = stop_within(table.offsets, start, min(count_max, span.last_entry_id + 1 - first_entry_id), bytes_max)
        offsets = table.offsets[start : stop + 1]
        if offsets[-1] > len(head):
            head, offsets = await self._read_entries(file, place, table, start, stop, goes_on=goes_on)
        self._ahead.was_read(ledger_id, first_entry_id + len(offsets) - 2)
        await self._close_surplus()
        return EntryRun(ledger_id, first_entry_id, head, offsets, table.header_bytes)

    async def pick(self, wanted: Sequence[tuple[int, Span, int]], bytes_max: int) -> list[EntryRun]:
        """Single entries (ledger, span, entry), as far as they are where the blocks' offsets say, within `bytes_max`. OSError.

        Neither a block's checksum nor whole tables are read for one entry: its ids and digest tell whether an entry is the
        wanted one; any other is left out, for `read` to find and to judge.
        """
        found: list[EntryRun] = []
        by_log: dict[int, list[tuple[int, Span, int]]] = {}
        for each in wanted:
            by_log.setdefault(each[1].log_id, []).append(each)
        for log_id, theirs in by_log.items():
            file = await self._file(log_id)
            chosen: list[tuple[int, int]] = []
            places: list[tuple[int, int]] = []
            for (ledger_id, span, entry_id), (begin, end) in zip(theirs, await self._extents(file, theirs), strict=True):
                if BLOCK_HEADER_BYTES < begin < end <= span.size_bytes and end - begin <= bytes_max:
                    chosen.append((ledger_id, entry_id))
                    places.append((span.offset + begin, end - begin))
                    bytes_max -= end - begin
            for (ledger_id, entry_id), (_, size), data in zip(chosen, places, await file.read_all(places), strict=True):
                if len(data) == size:
                    found.append(EntryRun(ledger_id, entry_id, data, array("I", (0, size))))
        await self._close_surplus()
        return found

    async def _extents(self, file: File, wanted: Sequence[tuple[int, Span, int]]) -> list[tuple[int, int]]:
        """Begin and end of these entries in their blocks; (0, 0): unavailable."""
        tables = [self._tables.get((span.log_id, span.offset)) for _, span, _ in wanted]
        asked = [
            (span.offset + offsets_at(entry_id - span.first_entry_id), EXTENT_BYTES)
            for (_, span, entry_id), table in zip(wanted, tables, strict=True)
            if table is None
        ]
        answers = iter(await file.read_all(asked) if asked else ())
        found: list[tuple[int, int]] = []
        for (_, _, entry_id), table in zip(wanted, tables, strict=True):
            if table is None:
                offsets = next(answers)
                found.append(entry_extent(offsets) if len(offsets) == EXTENT_BYTES else (0, 0))
            else:
                index = entry_id - table.first_entry_id
                found.append((table.offsets[index], table.offsets[index + 1]))
        return found

    async def tables(self, ledger_id: int, spans: Sequence[Span]) -> list[BlockTable | None]:
        """Tables of the spans' blocks; unknown ones are read together, log by log. None: unreadable."""
        found = [self._known((span.log_id, span.offset)) for span in spans]
        unknown: dict[int, list[int]] = {}
        for index, table in enumerate(found):
            if table is None:
                unknown.setdefault(spans[index].log_id, []).append(index)
        for log_id, indexes in unknown.items():
            try:
                file = await self._file(log_id)
                heads = await file.read_all([(spans[index].offset, head_size(spans[index].count)) for index in indexes])
            except OSError:
                continue
            for index, head in zip(indexes, heads, strict=True):
                found[index] = await self._table_of(file, ledger_id, spans[index], head)
        await self._close_surplus()
        return found

    async def _table_of(self, file: File, ledger_id: int, span: Span, head: Buffer) -> BlockTable | None:
        try:
            return self._learned(ledger_id, span, await _whole_head(file, span, head))
        except (OSError, DamagedBlock):
            return None

    def _known(self, place: tuple[int, int]) -> BlockTable | None:
        """Known table of the block there, which counts as used now."""
        table = self._tables.get(place)
        if table is not None:
            self._tables.move_to_end(place)
        return table

    def _learned(self, ledger_id: int, span: Span, head: Buffer) -> BlockTable:
        """The table in the first bytes of the span's block. DamagedBlock."""
        table = decode_table(head)
        _check(table, ledger_id, span)
        self._remember((span.log_id, span.offset), table)
        return table

    async def _read_entries(
        self, file: File, place: tuple[int, int], table: BlockTable, start: int, stop: int, *, goes_on: bool
    ) -> tuple[Buffer, "array[int]"]:
        """The entries from `start` to `stop` of a block and their offsets in what was read, perhaps with others after them."""
        offsets = table.offsets[start : stop + 1]
        piece = self._ahead.find(place, offsets[0], offsets[-1])
        if piece is None:
            end = self._ahead.stop(table.offsets, start, stop) if goes_on else stop
            size = table.offsets[end] - offsets[0]
            data = await file.read_piece(place[1] + offsets[0], size)
            if len(data) != size:
                raise DamagedBlock(f"ends after {len(data)} of {size} bytes")
            piece = (offsets[0], data)
            if end > stop:
                self._ahead.keep(place, *piece)
        begin, data = piece
        return data, array("I", map((-begin).__add__, offsets))

    async def _read_head(self, file: File, span: Span, first_entry_id: int, count_max: int, bytes_max: int) -> Buffer:
        """The table of a block, and the entries too where they are the first."""
        wanted = head_size(span.count)
        if first_entry_id == span.first_entry_id:
            wanted += min(bytes_max, span.size_bytes * count_max // span.count)
        return await _whole_head(file, span, await file.read_piece(span.offset, min(wanted, span.size_bytes)))

    async def read_checked(self, ledger_id: int, span: Span, *, check_data: bool = True) -> EntryRun:
        """The span's entries, after a look at the checksum of their whole block. OSError or DamagedBlock."""
        file = await self._file(span.log_id)
        block = await file.read(span.offset, span.size_bytes)
        await self._close_surplus()
        run = decode_block(block, check_data=check_data)
        _check(BlockTable(run.ledger_id, run.first_entry_id, run.offsets, run.header_bytes), ledger_id, span)
        return run if run.count == span.count else run.entries(span.first_entry_id, span.count)

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
        self._ahead.forget(log_id)
        for place in [place for place in self._tables if place[0] == log_id]:
            self._tables_bytes -= _table_bytes(self._tables.pop(place))
        file = self._files.pop(log_id, None)
        if file is not None:
            await file.close()

    async def close(self) -> None:
        for log_id in list(self._files):
            await self.forget(log_id)

    def _remember(self, place: tuple[int, int], table: BlockTable) -> None:
        if place in self._tables:
            return  # two reads of one block were under way
        self._tables[place] = table
        self._tables_bytes += _table_bytes(table)
        while self._tables_bytes > self._tables_bytes_max:
            self._tables_bytes -= _table_bytes(self._tables.popitem(last=False)[1])

    async def _file(self, log_id: int) -> File:
        file = self._files.get(log_id)
        if file is None:
            file = await self._disk.open(f"{self._directory}/{log_name(log_id)}", lane=LANE, direct=self._direct)
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


async def _whole_head(file: File, span: Span, head: Buffer) -> Buffer:
    """The first bytes of the span's block, with all of its table. OSError or DamagedBlock."""
    if block_size(head) != span.size_bytes:
        raise DamagedBlock(f"{block_size(head)} bytes instead of {span.size_bytes}")
    needed = head_size(entry_count(head))
    return head if len(head) >= needed else await file.read_piece(span.offset, needed)  # the span is a part of its block


def _check(table: BlockTable, ledger_id: int, span: Span) -> None:
    if (
        table.ledger_id != ledger_id
        or not table.first_entry_id <= span.first_entry_id <= span.last_entry_id <= table.last_entry_id
    ):
        raise DamagedBlock(f"holds {table.ledger_id}:{table.first_entry_id}..{table.last_entry_id}")


def _table_bytes(table: BlockTable) -> int:
    return TABLE_OVERHEAD_BYTES + 4 * len(table.offsets)
