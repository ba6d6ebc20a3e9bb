"""CursorStore: the place of one durable cursor's state: its node, and the cursor ledger that the node names.

Owns the node's version and the writer of the cursor ledger. As in Apache a mark is an entry (PositionInfo) of the cursor
ledger; that is made at the first mark and holds one before the node names it; a clean close writes the state into the node and
drops the ledger. A ledger that fails or is full is replaced, and deleted after the node names the new one. One write at a time.
A state that does not fit Apache's entry is written as segments with a marker (docs/cursor-segments.md); the caller decides.

A ledger that was dropped but not deleted before a crash has the cursor's name in its custom metadata (`pulsar/cursor`).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

from bookkeeper.ledgers import LedgerError, LedgerFenced, LedgerReader, LedgerStore, LedgerWriter
from metadata.store import MUST_NOT_EXIST, BadVersion, MetadataError, MetadataStore, NoNode, StoreFull, Versioned
from ports.clock import Clock
from ports.logs import line
from ports.loop.side_by_side import unbroken
from wire.compressed_metadata import compressed

from ..errors import BrokenMetadata, ManagedLedgerError, ManagedLedgerFenced, MetadataFull, NonRecoverableLedger
from ..ledgers.sequence import NOWHERE
from ..meters import CursorMeters
from ..settings import ManagedLedgerSettings
from ..skipping import CURSOR_ENTRIES_MAX, Skipping, remedy
from . import cursor_ledger
from .cursor_ledger import CopyFailed, SegmentRead, append_entries, append_save, read_segment, recover_state
from .holes.segment_save import SavePlan, Segment
from .properties import bucket_ledgers
from .recovery import Recovered
from .state import NO_LEDGER, CursorState, decode_node, encode_node, encode_position, hole_ranges

PROPERTIES_IN_NODE_MAX = 1000
"""Deduplication keeps one for each producer; a node of ZooKeeper's holds 1 MB."""

_log = logging.getLogger(__name__)


class CursorLedgerFailed(ManagedLedgerError):
    """The cursor ledger cannot be appended to; a new one can be begun."""


class CursorStore:
    """The stored form of one cursor. `cursor_properties` are stored; `saved_bytes`: payload of the last write to the ledger."""

    def __init__(
        self,
        ledger_name: str,
        path: str,
        store: MetadataStore,
        ledgers: LedgerStore,
        settings: ManagedLedgerSettings,
        clock: Clock,
        skipping: Skipping,
    ) -> None:
        self.path = path
        self.cursor_properties: dict[str, str] = {}
        self.saved_bytes = self.saved_entries = 0
        self.meters = CursorMeters()
        self.ledger_switched_ms = clock.now_ms()
        self._ledger_name = ledger_name
        self._store = store
        self._ledgers = ledgers
        self._settings = settings
        self._clock = clock
        self._skipping = skipping
        self._loop = asyncio.get_running_loop()
        self._version = MUST_NOT_EXIST
        self._ledger_id = NO_LEDGER
        self._writer: LedgerWriter | None = None
        self._is_in_node = False
        """The state is in the node because not enough bookies take entries."""
        self._source: LedgerReader | LedgerWriter | None = None
        """The ledger that the node names, for reading."""
        self._opened_at = 0.0
        self._turn = asyncio.Lock()

    @property
    def has_ledger(self) -> bool:
        """Whether the state is in a cursor ledger, not in the node."""
        return self._ledger_id != NO_LEDGER

    @property
    def ledger_id(self) -> int:
        """The ledger that the node names."""
        return self._ledger_id

    @property
    def ledger_last_entry_id(self) -> int:
        """-1 where this process does not write it (yet)."""
        return -1 if self._writer is None else self._writer.last_add_confirmed

    # beginning

    async def create(self, state: CursorState, cursor_properties: Mapping[str, str]) -> None:
        await unbroken(self._create(state, cursor_properties))

    async def _create(self, state: CursorState, cursor_properties: Mapping[str, str]) -> None:
        async with self._turn:
            self.cursor_properties = dict(cursor_properties)
            await self._put(NO_LEDGER, state)

    async def recover(self, found: Versioned) -> CursorState:
        """Recover the state that was stored last. Recovery of the cursor ledger fences its earlier writer."""
        self._version = found.stat.version
        try:
            node = decode_node(self.path, found.value)
            if node.state is None and node.cursors_ledger_id == NO_LEDGER:
                raise BrokenMetadata(f"{self.path}: names neither a cursor ledger nor a position")
        except BrokenMetadata as error:
            if not self._skipping.skips_cursor_node(self.path, error):
                raise
            return CursorState(NOWHERE)
        self._ledger_id = node.cursors_ledger_id
        self.cursor_properties = dict(node.cursor_properties)
        if node.cursors_ledger_id != NO_LEDGER:
            return await self._last_entry(node.cursors_ledger_id, node.state)
        assert node.state is not None
        return node.state

    async def _last_entry(self, ledger_id: int, otherwise: CursorState | None) -> CursorState:
        try:
            reader = await self._ledgers.open(ledger_id)
            found = await self._recovered(reader)
            if found is None and (otherwise is None or reader.last_entry_id >= 0):
                raise BrokenMetadata("it is empty" if reader.last_entry_id < 0 else "none of its entries is a state")
        except (LedgerError, BrokenMetadata) as error:
            if self._skipping.skips_cursor_ledger(self.path, ledger_id, error):
                return otherwise or CursorState(NOWHERE)
            raise NonRecoverableLedger(f"{self.path}: cursor ledger {ledger_id}: {error}; {remedy(error)}") from error
        self._source = reader
        if found is not None:
            if found.passed:
                _log.info(line("cursor save without marker skipped", cursor=self.path, ledger=ledger_id, entries=found.passed))
            return found.state
        assert otherwise is not None
        _log.warning(line("empty cursor ledger", cursor=self.path, ledger=ledger_id, position=otherwise.mark_delete))
        return otherwise

    async def _recovered(self, reader: LedgerReader) -> Recovered | None:
        """State in the last entries; where these are skipped, in the ones before them."""
        last = reader.last_entry_id
        for end in range(last, max(last - CURSOR_ENTRIES_MAX, -1), -1):
            try:
                return await recover_state(self.path, reader, end)
            except (LedgerError, BrokenMetadata) as error:
                if not self._skipping.skips_cursor_entry(self.path, reader.ledger_id, end, error):
                    raise
        return None

    async def read_segment(self, segment: Segment) -> SegmentRead:
        """Contents of a segment's entry and addition. A ledger that is replaced meanwhile does not matter."""
        while True:
            source = self._source
            found = await read_segment(self.path, source, segment)
            if not found.errors or source is self._source:
                return found

    def go_without(self, segment: Segment, found: SegmentRead) -> None:
        """NonRecoverableLedger when it could not be read whole and is not to be skipped."""
        if not found.errors or self._skipping.skips_cursor_segment(self.path, self._ledger_id, segment.start, found.errors):
            return
        entry_id, error = found.errors[0]
        place = f"the segment at {segment.start} in entry {entry_id} of cursor ledger {self._ledger_id}"
        raise NonRecoverableLedger(f"{self.path}: {place} cannot be read: {error}; {remedy(error)}") from error

    # writing

    @property
    def plain_writer(self) -> LedgerWriter | None:
        """Writer to which a state in Apache's format is just appended; None: that takes more than an append."""
        writer = self._writer
        return None if writer is None or self._turn.locked() or self._is_full(writer, 0) else writer

    def appended(self, size_bytes: int) -> None:
        """One entry was, to `plain_writer`."""
        self.meters.ledger.succeeded += 1
        self.meters.ledger_bytes += size_bytes
        self.saved_bytes, self.saved_entries = size_bytes, 1

    async def write(self, state: CursorState) -> None:
        """Append it to the cursor ledger, in Apache's format; the ledger is made or replaced where needed."""
        await unbroken(self._write(state))

    async def _write(self, state: CursorState) -> None:
        async with self._turn:
            entry = self.encoded(state)
            if self._writer is None or self._is_full(self._writer, 0):
                await self._switch(entry, state)
                return
            try:
                await self._append(self._writer, [entry])
            except LedgerFenced as error:
                raise ManagedLedgerFenced(f"{self.path}: {error}") from error
            except LedgerError as error:
                _log.warning(line("cursor ledger failed", cursor=self.path, ledger=self._ledger_id, error=error))
                await self._switch(entry, state)

    def must_begin(self, segments: int) -> bool:
        """Whether the next save of segments, of which so many are live, has to be of all of them, into a new ledger."""
        return self._writer is None or self._is_full(self._writer, 2 * segments)

    async def write_segments(self, plan: SavePlan, stored: Callable[[Sequence[int]], None], *, begin: bool) -> None:
        """Append a save; `begin`: to a new ledger, which then replaces the old one. `stored` is called when it counts.

        CursorLedgerFailed: try again with a plan of everything, and `begin`. CopyFailed: a segment that is not resident cannot
        be read; load it, which says why, or goes without.
        """
        await unbroken(self._write_segments(plan, stored, begin))

    async def _write_segments(self, plan: SavePlan, stored: Callable[[Sequence[int]], None], begin: bool) -> None:
        async with self._turn:
            if begin:
                await self._begin_ledger(lambda writer: self._append_save(writer, plan), plan.state, stored)
                return
            assert self._writer is not None, "without a writer every save begins a ledger"
            try:
                stored(await self._append_save(self._writer, plan))
            except LedgerFenced as error:
                raise ManagedLedgerFenced(f"{self.path}: {error}") from error
            except LedgerError as error:
                _log.warning(line("cursor ledger failed", cursor=self.path, ledger=self._ledger_id, error=error))
                raise CursorLedgerFailed(f"{self.path}: cursor ledger {self._ledger_id}: {error}") from error

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
        """The last write. Into the node, unless that has too many holes or properties for it."""
        await unbroken(self._close(state))

    async def _close(self, state: CursorState) -> None:
        try:
            await self._write_last(state)
        except ManagedLedgerError:  # as where another owner has the cursor
            await self.close_ledger()
            raise

    async def _write_last(self, state: CursorState) -> None:
        if not self._fits_node(state):
            await self._write(state)
            await self.close_ledger()
            return
        async with self._turn:
            old = self._ledger_id
            await self._put(NO_LEDGER, state)
            await self._close_writer()
            await self._delete_ledger(old)

    async def close_ledger(self) -> None:
        """The state stays in it."""
        async with self._turn:
            await self._close_writer()

    async def delete(self) -> None:
        await unbroken(self._delete())

    async def _delete(self) -> None:
        async with self._turn:
            for ledger_id in bucket_ledgers(self.cursor_properties).values():
                await self._delete_ledger(ledger_id)  # before the node, which alone names them
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

    def encoded(self, state: CursorState) -> bytes:
        """The entry of the cursor ledger."""
        entry, dropped = encode_position(
            state, as_long_array=self._settings.managed_ledger_persist_individual_ack_as_long_array
        )
        if dropped:
            raise ManagedLedgerError(f"{self.path}: {dropped} acknowledgements do not fit an entry and would be lost")
        return entry

    def _is_full(self, writer: LedgerWriter, entries_more: int) -> bool:
        settings = self._settings
        age_s = self._loop.time() - self._opened_at
        return (
            writer.next_entry_id >= settings.managed_ledger_cursor_max_entries_per_ledger + entries_more
            or age_s >= settings.managed_ledger_cursor_rollover_time_in_seconds
        )

    async def _append(self, writer: LedgerWriter, entries: Sequence[bytes]) -> list[int]:
        with self.meters.ledger.one():
            entry_ids = await append_entries(writer, entries)
        self.saved_bytes, self.saved_entries = sum(map(len, entries)), len(entries)
        self.meters.ledger_bytes += self.saved_bytes
        return entry_ids

    async def _append_save(self, writer: LedgerWriter, plan: SavePlan) -> list[int]:
        with self.meters.ledger.one():
            entry_ids, self.saved_bytes = await append_save(self.path, writer, plan, self._source)
        self.saved_entries = len(entry_ids) + 1
        self.meters.ledger_bytes += self.saved_bytes
        return entry_ids

    async def _switch(self, entry: bytes, state: CursorState) -> None:
        try:
            await self._begin_ledger(lambda writer: self._append(writer, [entry]), state, lambda _: None)
        except ManagedLedgerFenced:
            raise
        except ManagedLedgerError as error:
            await self._write_into_node(state, error)

    async def _write_into_node(self, state: CursorState, error: ManagedLedgerError) -> None:
        """No bookie takes entries, as when disks are full: what fits the node goes there (ManagedCursorImpl, after a write that
        failed), and the next save tries a ledger again."""
        if not self._fits_node(state):
            raise error
        old = self._ledger_id
        await self._put(NO_LEDGER, state)
        if not self._is_in_node:
            _log.warning(line("cursor stored in its node until bookies take entries", cursor=self.path, reason=error))
        self._is_in_node = True
        await self._delete_ledger(old)

    def _fits_node(self, state: CursorState) -> bool:
        ranges_max = self._settings.managed_ledger_max_unacked_ranges_to_persist_in_metadata_store
        return hole_ranges(state) <= ranges_max and len(state.properties) <= PROPERTIES_IN_NODE_MAX

    async def _begin_ledger(
        self,
        fill: Callable[[LedgerWriter], Awaitable[list[int]]],
        state: CursorState,
        stored: Callable[[Sequence[int]], None],
    ) -> None:
        """A new ledger with what `fill` writes; then the node names it; then the old one goes."""
        old = self._ledger_id
        await self._close_writer()
        writer = await self._new_ledger()
        try:
            entry_ids = await fill(writer)
        except (LedgerError, ManagedLedgerError) as error:
            await self._delete_ledger(writer.ledger_id)
            if isinstance(error, CopyFailed):
                raise
            raise ManagedLedgerError(f"{self.path}: no cursor ledger could be made: {error}") from error
        try:
            await self._put(writer.ledger_id, state)
        except (ManagedLedgerFenced, MetadataFull):
            await self._delete_ledger(writer.ledger_id)
            raise
        self._writer, self._opened_at, self._is_in_node = writer, self._loop.time(), False
        self._source = writer
        self.ledger_switched_ms = self._clock.now_ms()
        stored(entry_ids)
        await self._delete_ledger(old)

    async def _new_ledger(self) -> LedgerWriter:
        custom = {
            "application": b"pulsar",
            "component": b"managed-ledger",
            "pulsar/managed-ledger": self._ledger_name.encode(),
            "pulsar/cursor": self.path.rpartition("/")[2].encode(),
        }
        try:
            return await self._ledgers.create(custom)
        except LedgerError as error:
            raise ManagedLedgerError(f"{self.path}: no cursor ledger could be made: {error}") from error

    async def _put(self, ledger_id: int, state: CursorState) -> None:
        node = encode_node(ledger_id, state, self.cursor_properties, self._clock.now_ms())
        value = compressed(node, self._settings.cursor_info_compression)
        try:
            with self.meters.node.one():
                stat = await self._store.put(self.path, value, self._version)
        except BadVersion as error:
            raise ManagedLedgerFenced(f"{self.path}: another owner wrote it: {error}") from error
        except MetadataError as error:
            raise (MetadataFull if isinstance(error, StoreFull) else ManagedLedgerError)(f"{self.path}: {error}") from error
        self._version, self._ledger_id = stat.version, ledger_id

    async def _close_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            await cursor_ledger.close_writer(self.path, writer)

    async def _delete_ledger(self, ledger_id: int) -> None:
        if ledger_id != NO_LEDGER:
            await cursor_ledger.delete_ledger(self.path, self._ledgers, ledger_id)
