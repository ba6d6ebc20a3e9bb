"""CursorStore: where one durable cursor's state is kept: its node, and the cursor ledger that the node names.

Owns the node's version and the writer of the cursor ledger. As in Apache a mark is an entry (PositionInfo) of the cursor
ledger; that is made at the first mark and holds one before the node names it; a clean close writes the state into the node and
drops the ledger. A ledger that fails or is full is replaced, and deleted after the node names the new one. One write at a time.

A ledger that was let go of but not deleted when a crash came has the cursor's name in its custom metadata (`pulsar/cursor`).
"""

import asyncio
import logging
from array import array
from collections.abc import Mapping

from bookkeeper.ledgers import LedgerError, LedgerFenced, LedgerReader, LedgerStore, LedgerWriter
from metadata.store import MUST_NOT_EXIST, BadVersion, MetadataError, MetadataStore, NoNode, Versioned
from ports.clock import Clock
from ports.logs import line
from wire.compressed_metadata import compressed
from wire.run import HEADER_BYTES_CRC32C, EntryBatch

from .cursor.state import NO_LEDGER, CursorState, decode_node, decode_position, encode_node, encode_position, hole_ranges
from .errors import ManagedLedgerError, ManagedLedgerFenced
from .settings import ManagedLedgerSettings
from .tasks import unbroken

_log = logging.getLogger(__name__)
_READ_BYTES_MAX = 8 << 20


class CursorStore:
    """The stored form of one cursor. `cursor_properties` are stored; `dropped_count`: acknowledgements that did not fit."""

    def __init__(
        self,
        ledger_name: str,
        path: str,
        store: MetadataStore,
        ledgers: LedgerStore,
        settings: ManagedLedgerSettings,
        clock: Clock,
    ) -> None:
        self.path = path
        self.cursor_properties: dict[str, str] = {}
        self.dropped_count = 0
        self._ledger_name = ledger_name
        self._store = store
        self._ledgers = ledgers
        self._settings = settings
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._version = MUST_NOT_EXIST
        self._ledger_id = NO_LEDGER
        self._writer: LedgerWriter | None = None
        self._opened_at = 0.0
        self._turn = asyncio.Lock()

    @property
    def has_ledger(self) -> bool:
        """Whether the state is in a cursor ledger, not in the node."""
        return self._ledger_id != NO_LEDGER

    # beginning

    async def create(self, state: CursorState, cursor_properties: Mapping[str, str]) -> None:
        await unbroken(self._create(state, cursor_properties))

    async def _create(self, state: CursorState, cursor_properties: Mapping[str, str]) -> None:
        async with self._turn:
            self.cursor_properties = dict(cursor_properties)
            await self._put(NO_LEDGER, state)

    async def recover(self, found: Versioned) -> CursorState:
        """What was stored last. Recovering the cursor ledger fences whoever wrote it before."""
        node = decode_node(self.path, found.value)
        self._version = found.stat.version
        self._ledger_id = node.cursors_ledger_id
        self.cursor_properties = dict(node.cursor_properties)
        if node.cursors_ledger_id != NO_LEDGER:
            return await self._last_entry(node.cursors_ledger_id, node.state)
        if node.state is None:
            raise ManagedLedgerError(f"{self.path}: names neither a cursor ledger nor a position")
        return node.state

    async def _last_entry(self, ledger_id: int, otherwise: CursorState | None) -> CursorState:
        try:
            reader = await self._ledgers.open(ledger_id)
            if reader.last_entry_id >= 0:
                return decode_position(self.path, await _payload(reader, reader.last_entry_id))
        except LedgerError as error:
            raise ManagedLedgerError(f"{self.path}: cursor ledger {ledger_id}: {error}") from error
        if otherwise is None:
            raise ManagedLedgerError(f"{self.path}: cursor ledger {ledger_id} is empty")
        _log.warning(line("empty cursor ledger", cursor=self.path, ledger=ledger_id, position=otherwise.mark_delete))
        return otherwise

    # writing

    async def write(self, state: CursorState) -> None:
        """Append it to the cursor ledger, made or replaced where needed."""
        await unbroken(self._write(state))

    async def _write(self, state: CursorState) -> None:
        async with self._turn:
            entry = self._encoded(state)
            if self._writer is None or self._is_full(self._writer):
                await self._switch(entry, state)
                return
            try:
                await self._writer.append(_batch(entry))
            except LedgerFenced as error:
                raise ManagedLedgerFenced(f"{self.path}: {error}") from error
            except LedgerError as error:
                _log.warning(line("cursor ledger failed", cursor=self.path, ledger=self._ledger_id, error=error))
                await self._switch(entry, state)

    async def set_properties(self, properties: Mapping[str, str], state: CursorState) -> None:
        """The subscription's own; `state` is written with them where it is in the node."""
        await unbroken(self._set_properties(properties, state))

    async def _set_properties(self, properties: Mapping[str, str], state: CursorState) -> None:
        async with self._turn:
            old, self.cursor_properties = self.cursor_properties, dict(properties)
            try:
                await self._put(self._ledger_id, state)
            except ManagedLedgerError:
                self.cursor_properties = old
                raise

    async def close(self, state: CursorState) -> None:
        """The last write. Into the node, unless that has too many holes for it."""
        await unbroken(self._close(state))

    async def _close(self, state: CursorState) -> None:
        if hole_ranges(state) > self._settings.managed_ledger_max_unacked_ranges_to_persist_in_metadata_store:
            await self._write(state)
            async with self._turn:
                await self._close_writer()
            return
        async with self._turn:
            old = self._ledger_id
            await self._put(NO_LEDGER, state)
            await self._close_writer()
            await self._delete_ledger(old)

    async def delete(self) -> None:
        await unbroken(self._delete())

    async def _delete(self) -> None:
        async with self._turn:
            try:
                await self._store.delete(self.path, self._version)
            except NoNode:
                _log.warning(line("cursor was gone already", cursor=self.path))
            except BadVersion as error:
                raise ManagedLedgerFenced(f"{self.path}: another owner wrote it: {error}") from error
            except MetadataError as error:
                raise ManagedLedgerError(f"{self.path}: {error}") from error
            await self._close_writer()
            await self._delete_ledger(self._ledger_id)

    # inside a turn

    def _encoded(self, state: CursorState) -> bytes:
        entry, dropped = encode_position(
            state, as_long_array=self._settings.managed_ledger_persist_individual_ack_as_long_array
        )
        if dropped:
            self.dropped_count += dropped
            _log.warning(line("acknowledgements do not fit an entry", cursor=self.path, dropped=dropped))
        return entry

    def _is_full(self, writer: LedgerWriter) -> bool:
        settings = self._settings
        age_s = self._loop.time() - self._opened_at
        return (
            writer.next_entry_id >= settings.managed_ledger_cursor_max_entries_per_ledger
            or age_s >= settings.managed_ledger_cursor_rollover_time_in_seconds
        )

    async def _switch(self, entry: bytes, state: CursorState) -> None:
        """A new ledger with this entry; then the node names it; then the old one goes."""
        old = self._ledger_id
        await self._close_writer()
        custom = {
            "application": b"pulsar",
            "component": b"managed-ledger",
            "pulsar/managed-ledger": self._ledger_name.encode(),
            "pulsar/cursor": self.path.rpartition("/")[2].encode(),
        }
        try:
            writer = await self._ledgers.create(custom)
            await writer.append(_batch(entry))
        except LedgerError as error:
            raise ManagedLedgerError(f"{self.path}: no cursor ledger could be made: {error}") from error
        try:
            await self._put(writer.ledger_id, state)
        except ManagedLedgerFenced:
            await self._delete_ledger(writer.ledger_id)
            raise
        self._writer, self._opened_at = writer, self._loop.time()
        await self._delete_ledger(old)

    async def _put(self, ledger_id: int, state: CursorState) -> None:
        node = encode_node(ledger_id, state, self.cursor_properties, self._clock.now_ms())
        value = compressed(node, self._settings.cursor_info_compression)
        try:
            stat = await self._store.put(self.path, value, self._version)
        except BadVersion as error:
            raise ManagedLedgerFenced(f"{self.path}: another owner wrote it: {error}") from error
        except MetadataError as error:
            raise ManagedLedgerError(f"{self.path}: {error}") from error
        self._version, self._ledger_id = stat.version, ledger_id

    async def _close_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            try:
                await writer.close()
            except LedgerError as error:
                _log.warning(line("cursor ledger not closed", cursor=self.path, ledger=writer.ledger_id, error=error))

    async def _delete_ledger(self, ledger_id: int) -> None:
        if ledger_id == NO_LEDGER:
            return
        try:
            await self._ledgers.delete(ledger_id)
        except LedgerError as error:
            _log.warning(line("cursor ledger not deleted", cursor=self.path, ledger=ledger_id, error=error))


async def _payload(reader: LedgerReader, entry_id: int) -> bytes:
    run = await reader.read(entry_id, 1, _READ_BYTES_MAX)
    return bytes(run.payload(entry_id))


def _batch(payload: bytes) -> EntryBatch:
    buffer = bytearray(HEADER_BYTES_CRC32C) + payload
    return EntryBatch(buffer, array("I", [0, len(buffer)]), HEADER_BYTES_CRC32C, 1)
