"""Compactor: runs the two phases over a topic's log, and puts the new compacted ledger in the old one's place.

The order is the promise. A new ledger is named in the cursor's own properties before anything is written to it, and is whole
and closed before the cursor names it as the compacted one; that is stored with the horizon in one write. The old ledger
is deleted after that, and leftovers of an interrupted run by the next one (`tidy`). A crash leaves the old or the new.

The cursor keeps entries that are not compacted yet; a second cursor in memory keeps them too until the new horizon is stored,
since a log is trimmed by cursors in memory, not by their stored state. Not covered, as for every ledger (docs/adr/0012): a
crash between the making of a ledger and its first mention. A run that is cancelled there ends when the ledger is named, or
deleted.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from bookkeeper.ledgers import LedgerError, LedgerStore, LedgerWriter
from managed_ledger.contract import EARLIEST, ManagedCursor, ManagedLedger, ManagedLedgerError
from managed_ledger.cursor.properties import COMPACTING
from ports.logs import line
from wire.generated.pulsar_api_pb2 import MessageIdData
from wire.position import Position
from wire.run import EntryRun

from .compacted_topic import LEDGER_PROPERTY, CompactedTopic
from .keys import KeyTable
from .sifting import Kept, Newest, Portion

_log = logging.getLogger(__name__)

_KEEPER = "__compaction'"
"""No encoded name has an apostrophe in it."""
_READ_ENTRIES = 5000
_READ_BYTES = 1 << 20
_APPENDS_MAX = 8
"""Batches on their way to the ledger at once."""


class CompactionMeter(Protocol):
    """Notified of the bytes that a phase read, the bytes written, and the seconds until they were stored."""

    def read(self, size_bytes: int) -> None: ...
    def wrote(self, size_bytes: int) -> None: ...
    def stored(self, seconds: float, entries: int) -> None: ...


@dataclass(frozen=True, slots=True)
class Compacted:
    """Result of a compaction. `ledger_id` None: there was nothing new."""

    ledger_id: int | None
    horizon: Position | None
    messages_gone: int = 0
    keys: int = 0
    table_bytes: int = 0


@dataclass(frozen=True, slots=True)
class CompactionSource:
    """Topic to compact. `sifted` gives the entries of a run to leave out (aborted transactions); `end` where to stop."""

    name: str
    partition: int
    log: ManagedLedger
    end: Callable[[], Position]
    sifted: Callable[[EntryRun], Portion]


class Compactor:
    """Compactor of one topic."""

    def __init__(
        self,
        source: CompactionSource,
        ledgers: LedgerStore,
        compacted: CompactedTopic,
        meter: CompactionMeter,
        *,
        retains_null_key: bool,
    ) -> None:
        self._source = source
        self._name, self._log = source.name, source.log
        self._ledgers = ledgers
        self._compacted = compacted
        self._retains_null_key = retains_null_key
        self._meter = meter

    async def run(self, cursor: ManagedCursor) -> Compacted:
        """LedgerError, ManagedLedgerError, ValueError: nothing has changed, or (never in part) everything has."""
        await self.tidy(cursor)
        horizon, end = self._compacted.horizon, self._source.end()
        if end.entry_id < 0 or (horizon is not None and end <= horizon) or end < self._log.first_position():
            return Compacted(None, horizon)
        if horizon is None and cursor.mark_delete >= end:
            await cursor.reset(EARLIEST)  # an operator moved it
        old = self._compacted.ledger_id
        newest = Newest(KeyTable(), self._retains_null_key)
        async for portion in self._portions(end):
            newest.note(portion)
        writer = await self._named_ledger(cursor, old, end)
        try:
            await self._write(writer, newest, end)
            await writer.close()
        except (LedgerError, ManagedLedgerError, ValueError):
            await self._forget(writer.ledger_id)
            raise
        await self._switch(cursor, horizon, end, writer.ledger_id)
        await self.tidy(cursor)
        table = newest.table
        return Compacted(writer.ledger_id, end, table.messages_gone, table.keys, table.size_bytes)

    async def _named_ledger(self, cursor: ManagedCursor, old: int | None, end: Position) -> LedgerWriter:
        naming = asyncio.get_running_loop().create_task(self._name_ledger(cursor, old, end))
        try:
            return await asyncio.shield(naming)
        except asyncio.CancelledError:
            await asyncio.wait([naming])
            if not naming.cancelled():
                naming.exception()  # it has deleted the ledger then
            raise

    async def _name_ledger(self, cursor: ManagedCursor, old: int | None, end: Position) -> LedgerWriter:
        writer = await self._ledgers.create(self._custom_metadata(end))
        try:
            await self._set_under_way(cursor, [writer.ledger_id] if old is None else [old, writer.ledger_id])
        except ManagedLedgerError:
            await self._forget(writer.ledger_id)
            raise
        return writer

    async def tidy(self, cursor: ManagedCursor) -> None:
        """Deletes the leftovers of earlier runs. LedgerError, ManagedLedgerError: the next run tries again."""
        left = cursor.cursor_properties.get(COMPACTING)
        if left is None:
            return
        await cursor.stored()  # or it would not be certain which one counts
        current = cursor.properties.get(LEDGER_PROPERTY)
        for ledger_id in map(int, left.split(",")):
            if ledger_id != current:
                await self._ledgers.delete(ledger_id)
                _log.info(line("compacted ledger deleted", topic=self._name, ledger=ledger_id))
        await self._set_under_way(cursor, [])

    async def _portions(self, end: Position) -> AsyncIterator[Portion]:
        """Yields the compacted entries, then the log from the horizon on through `end`."""
        horizon, compacted, log = self._compacted.horizon, await self._compacted.ledger(), self._log
        if compacted is not None:
            async for run in compacted.all():
                self._meter.read(run.payload_bytes)
                yield Portion.whole(run)
        position = log.first_position() if horizon is None else log.next_position(horizon)
        while position <= end:
            found = await log.read(position, _READ_ENTRIES, _READ_BYTES)
            if found is None or (found.ledger_id, found.first_entry_id) > end:
                return
            run = found
            if run.ledger_id == end.ledger_id and run.last_entry_id > end.entry_id:
                run = run.entries(run.first_entry_id, end.entry_id - run.first_entry_id + 1)
            self._meter.read(run.payload_bytes)
            yield self._source.sifted(run)
            await asyncio.sleep(0)  # entries in memory come without a wait, and other tasks have to run too
            position = log.next_position(Position(run.ledger_id, run.last_entry_id))

    async def _write(self, writer: LedgerWriter, newest: Newest, end: Position) -> None:
        kept = Kept(newest, self._source.partition, self._log.header_bytes)
        under_way: deque[asyncio.Future[EntryRun]] = deque()
        try:
            async for portion in self._portions(end):
                batch = kept.of(portion)
                if not batch.count:
                    continue
                self._meter.wrote(batch.payload_bytes)
                append = writer.append(batch)
                append.add_done_callback(partial(self._stored, asyncio.get_running_loop().time(), batch.count))
                under_way.append(append)
                if len(under_way) >= _APPENDS_MAX:
                    await under_way.popleft()
            while under_way:
                await under_way.popleft()
        finally:
            for append in under_way:
                append.add_done_callback(_take_error)

    def _stored(self, began: float, entries: int, append: "asyncio.Future[EntryRun]") -> None:
        if not append.cancelled() and append.exception() is None:
            self._meter.stored(append.get_loop().time() - began, entries)

    async def _switch(self, cursor: ManagedCursor, horizon: Position | None, end: Position, ledger_id: int) -> None:
        start = EARLIEST if horizon is None else self._log.next_position(horizon)
        keeper = self._log.open_non_durable_cursor(_KEEPER, start)
        cursor.acknowledge_cumulative(end, properties={LEDGER_PROPERTY: ledger_id})
        await cursor.stored()  # when this fails the keeper stays, until the log is opened anew
        await keeper.close()

    async def _set_under_way(self, cursor: ManagedCursor, ledger_ids: list[int]) -> None:
        named = {COMPACTING: ",".join(map(str, ledger_ids))} if ledger_ids else {}
        await cursor.change_cursor_properties(named, () if ledger_ids else (COMPACTING,))

    async def _forget(self, ledger_id: int) -> None:
        try:
            await self._ledgers.delete(ledger_id)
        except LedgerError as error:
            _log.warning(line("compacted ledger not deleted yet", topic=self._name, ledger=ledger_id, error=error))

    def _custom_metadata(self, end: Position) -> Mapping[str, bytes]:
        """Apache: LedgerMetadataUtils.buildMetadataForCompactedLedger."""
        last = MessageIdData(ledger_id=end.ledger_id, entry_id=end.entry_id)
        if self._source.partition >= 0:
            last.partition = self._source.partition
        return {
            "application": b"pulsar",
            "component": b"compacted-ledger",
            "pulsar/compactedTopic": self._name.encode(),
            "pulsar/compactedTo": last.SerializeToString(),
        }


def _take_error(append: "asyncio.Future[EntryRun]") -> None:
    if not append.cancelled():
        append.exception()
