"""StoredManagedLedger: one topic's log, put together from its parts.

Owns the listeners and the order of the end. `append`, `read`, `ledgers` and `cursor` have the drivers, the factory opens it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from pyroaring import BitMap

from bookkeeper.ledgers import LedgerReader, Quorums
from bookkeeper.write.parts import Part
from metadata.store import Delete, MetadataError, Operation, Versioned
from ports.logs import line
from ports.loop.owner import ask, tell, weakly
from ports.loop.side_by_side import all_tried, take_error, unbroken
from wire.kernels.rows import AppenderRow
from wire.picked_runs import Picked, Picks
from wire.position import Position
from wire.run import HEADER_BYTES_CRC32C, EntryBatch, EntryRun

from .append.append_driver import Appender
from .append.creation_driver import LedgerCreation
from .append.entry_metadata import EntryMetadata
from .append.listeners import AppendListeners, ConfirmedListeners, New, RefusedListener, Taker
from .append.rollover import rollover_limits
from .cache.entry_cache import CachedLog
from .contract import LATEST, LedgerFacts, ManagedCursor, Skipped
from .cursor.cursor_host import HostedCursor
from .cursor.cursors_driver import LedgerCursors
from .errors import ManagedLedgerError, ManagedLedgerFenced, ManagedLedgerTerminated
from .ledgers.deletion_driver import LedgerDeletion
from .ledgers.metadata_driver import LogMetadata
from .ledgers.sequence import LedgerSequence
from .ledgers.trim_driver import Trimming
from .ledgers.trimming import Retention, retention
from .meters import LedgerMeters
from .read.handles import LedgerHandles
from .read.read_driver import LedgerReads
from .read.search import find_first, last_readable
from .surroundings import Surroundings

_log = logging.getLogger(__name__)


class StoredManagedLedger:
    """Satisfies `managed_ledger.contract.ManagedLedger`. `forget` is called once, when it is closed or deleted."""

    header_bytes = HEADER_BYTES_CRC32C

    def __init__(
        self,
        around: Surroundings,
        metadata: LogMetadata,
        forget: Callable[["StoredManagedLedger"], None],
        entry_metadata: EntryMetadata | None = None,
    ) -> None:
        self.name = metadata.name
        self.last_ledger_created_ms = around.clock.now_ms()
        self.sequence: LedgerSequence = metadata.sequence
        self._around = around
        self._metadata = metadata
        self._entry_metadata = entry_metadata
        self._cache = CachedLog(around.cache)
        self._forget = forget
        self._loop = asyncio.get_running_loop()
        self.meters = LedgerMeters(around.meters, self._loop.time())
        self._deletion = LedgerDeletion(metadata, around.ledgers)
        limits = rollover_limits(around.settings)
        self._creation = creation = LedgerCreation(metadata, around.ledgers, self._deletion)
        self._refused = RefusedListener(entry_metadata)
        self._listeners, self._fenced_listeners = (
            ConfirmedListeners(tell(self._keep), tell(self._taken)),
            ConfirmedListeners(),
        )
        stamped = None if entry_metadata is None else entry_metadata.stored
        listeners = AppendListeners(self._listeners, tell(self._began), self._refused.tell, stamped)
        self._appender = Appender(metadata, around.ledgers, creation, limits, around.clock, listeners, self.meters)
        self.reads = LedgerReads(
            self.name,
            self.sequence,
            LedgerHandles(around.ledgers, self._appender.writer_of),
            self._cache,
            around.settings,
            tell(self._lost),
            self.meters,
        )
        self._cursors = LedgerCursors(weakly(self), around, self.name, metadata.path, self.reads.lost.known)
        self._trimming = Trimming(
            metadata,
            self._deletion,
            retention(around.settings),
            around.clock,
            ask(self._slowest_mark),
            tell(self._trimmed),
            ask(self._write_metadata),
        )
        self._closing: asyncio.Task[None] | None = None
        if metadata.terminated is not None:
            self._appender.refuse(ManagedLedgerTerminated(f"{self.name} is terminated"))
        self._deletion.start()

    # what it knows

    @property
    def last_confirmed(self) -> Position:
        return self.sequence.last_confirmed

    @property
    def properties(self) -> Mapping[str, str]:
        return self._metadata.properties

    @property
    def cursors(self) -> Mapping[str, ManagedCursor]:
        return self._cursors.by_name

    @property
    def entry_count(self) -> int:
        return self.sequence.entry_count

    @property
    def size_bytes(self) -> int:
        return self.sequence.size_bytes

    def ledgers(self) -> list[LedgerFacts]:
        return [
            LedgerFacts(span.ledger_id, span.entries, span.size_bytes, span.closed_at_ms, span.is_open)
            for span in self.sequence
        ]

    @property
    def is_terminated(self) -> bool:
        return self._metadata.terminated is not None

    @property
    def skipped(self) -> Skipped:
        return replace(self._around.skipping.of(self.name), entries=self.reads.lost.count)

    def active_from(self) -> Position:
        return self.reads.near_end() or self.sequence.first_position()

    def next_position(self, position: Position) -> Position:
        return self.sequence.next_position(position)

    def previous_position(self, position: Position) -> Position:
        return self.sequence.previous_position(position)

    def first_position(self) -> Position:
        return self.sequence.first_position()

    def count_between(self, first: Position, last: Position) -> int:
        return self.sequence.count_between(first, last)

    # entries

    def append(self, batch: EntryBatch) -> "asyncio.Future[EntryRun]":
        if self._entry_metadata is not None:
            batch = self._entry_metadata.stamped(batch)
        return self._appender.append(batch)

    @property
    def appends(self) -> AppenderRow | None:
        return self._appender if self._entry_metadata is None else None

    def take_part(self, part: Part) -> bool:
        return self._entry_metadata is None and self._appender.take_part(part)

    async def read(self, position: Position, entries_max: int, bytes_max: int) -> EntryRun | None:
        self._listeners.keep_new()
        return await self.reads.read(position, entries_max, bytes_max)

    def read_cached(self, position: Position, entries_max: int, bytes_max: int) -> EntryRun | None:
        self._listeners.keep_new()
        return self.reads.read_cached(position, entries_max, bytes_max)

    async def pick(self, wanted: Picks, bytes_max: int) -> Picked:
        return await self.reads.pick(wanted, bytes_max)  # entries that were read before: none is new

    def pick_cached(self, wanted: Picks, bytes_max: int) -> Picked | None:
        return self.reads.pick_cached(wanted, bytes_max)

    def keep_from(self, reader: object, position: Position | None) -> None:
        self.reads.keep_from(reader, position)

    async def find_first(self, is_at_or_after: Callable[[EntryRun], Sequence[bool]]) -> Position | None:
        return await find_first(self.sequence, self.reads.read, is_at_or_after)

    def on_confirmed(self, listener: Callable[[], None], taker: Taker | None = None) -> Callable[[], None]:
        return self._listeners.add(listener, taker)

    def on_went_back(self, listener: Callable[[str], None]) -> Callable[[], None]:
        return self._cursors.on_went_back(listener)

    def on_fenced(self, listener: Callable[[], None]) -> Callable[[], None]:
        return self._fenced_listeners.add(listener)

    def on_refused(self, listener: Callable[[], None]) -> None:
        self._refused.listener = listener

    async def load_entry_metadata(self) -> None:
        """Go on from the last entry. Before anything is appended; nothing to do without an index."""
        if self._entry_metadata is not None and self._entry_metadata.has_index:
            self._entry_metadata.found(self.name, self.properties, await last_readable(self.sequence, self.reads.read))

    def _keep(self, run: EntryRun) -> None:
        """Keep a run in memory for readers; without a cursor none is expected."""
        if self._cursors.by_name:
            self._cache.insert(run, self._loop.time())

    def _taken(self, run: New, count: int) -> None:
        """Count `count` readers that got the run without reading."""
        self.meters.hit(run.count * count, run.size_bytes * count)

    def _lost(self, ledger_id: int, entry_ids: BitMap) -> None:
        """Skip entries that cannot be read: no cursor waits for them any more."""
        self._cursors.entries_lost(ledger_id, entry_ids)

    def _began(self) -> None:
        """A new ledger: the one before is closed and may go."""
        self.last_ledger_created_ms = self._around.clock.now_ms()
        self._trimming.trim_soon()

    # cursors

    async def open_cursor(
        self, name: str, initial: Position = LATEST, cursor_properties: Mapping[str, str] | None = None
    ) -> ManagedCursor:
        self._check_open()
        return await self._cursors.open(name, initial, cursor_properties or {})

    def open_non_durable_cursor(self, name: str, initial: Position) -> ManagedCursor:
        self._check_open()
        return self._cursors.open_non_durable(name, initial)

    async def load_cursor(self, name: str, node: Versioned) -> None:
        """Load a stored cursor."""
        await self._cursors.load(name, node)

    async def delete_cursor(self, name: str) -> None:
        self._check_open()
        await self._cursors.delete(name)
        self._trimming.trim_soon()

    def went_back(self, cursor: HostedCursor) -> None:
        self._cursors.went_back(cursor)

    def mark_moved(self, old: Position, new: Position) -> None:
        """A cursor went on; where it left a ledger or came to its end, that may go."""
        span = self.sequence.span(new.ledger_id)
        if new.ledger_id != old.ledger_id or (span is not None and not span.is_open and new.entry_id + 1 == span.entries):
            self._trimming.trim_soon()

    def cursor_closed(self, cursor: HostedCursor) -> None:
        self._cursors.closed(cursor)
        if not cursor.durable:
            self._trimming.trim_soon()

    def _slowest_mark(self) -> Position | None:
        return self._cursors.slowest.mark()

    def fenced(self, error: ManagedLedgerFenced) -> None:
        _log.warning(line("managed ledger fenced by another owner", managed_ledger=self.name, error=error))
        self._appender.fail(error)
        self._fenced_listeners.moved()

    # metadata

    async def set_properties(self, properties: Mapping[str, str]) -> None:
        self._check_open()
        await self._write_metadata(properties=properties)

    async def terminate(self) -> Position:
        self._check_open()
        return await unbroken(self._terminate())

    async def _terminate(self) -> Position:
        if self._metadata.terminated is None:
            self._appender.refuse(ManagedLedgerTerminated(f"{self.name} is terminated"))
            await self._appender.close()
            await self._write_metadata(terminated=self.last_confirmed)
        return self._metadata.terminated or self.last_confirmed

    async def _write_metadata(
        self, *, properties: Mapping[str, str] | None = None, terminated: Position | None = None, is_certain: bool = False
    ) -> None:
        try:
            await self._metadata.write(properties=properties, terminated=terminated, is_certain=is_certain)
        except ManagedLedgerFenced as error:
            self.fenced(error)
            raise

    def take_recovered(self, ledger: LedgerReader) -> None:
        """The last ledger, just recovered. When it turned out to be empty the next write of the list lets it go."""
        if ledger.last_entry_id < 0:
            self._metadata.mark_deleting(ledger.ledger_id)
        else:
            self.reads.keep_handle(ledger)

    def set_persistence(self, quorums: Quorums, marks_per_second: float | None) -> None:
        self._creation.quorums = quorums
        self._cursors.limit_marks(marks_per_second)

    def set_retention(self, age_ms: int, size_bytes: int) -> None:
        self._trimming.set_retention(Retention(age_ms, size_bytes))

    async def trim(self, *, despite_retention: bool = False) -> list[int]:
        self._check_open()
        return await self._trimming.trim(despite_retention=despite_retention)

    def _trimmed(self, ledger_ids: Sequence[int]) -> None:
        for ledger_id in ledger_ids:
            self.reads.forget_ledger(ledger_id)
        self._cursors.ledgers_trimmed()

    # the end

    @property
    def is_closing(self) -> bool:
        """Closing or deleting, closed or deleted."""
        return self._closing is not None

    async def ended(self) -> None:
        """Wait for the end that was begun, however it goes."""
        if self._closing is not None:
            await asyncio.wait([self._closing])

    def _check_open(self) -> None:
        if self._closing is not None:
            raise ManagedLedgerError(f"{self.name} is closed")

    async def close(self) -> None:
        """Answer all appends, store the marks, close the ledger. Closing twice is fine."""
        if self._closing is None:
            self._trimming.stop()
            self._appender.refuse(ManagedLedgerError(f"{self.name} is closed"))
            self._closing = self._loop.create_task(self._close())
            self._closing.add_done_callback(take_error)
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        cursors = list(self._cursors.by_name.values())
        failures = await all_tried(chain([self._appender.close()], (cursor.close() for cursor in cursors)))
        await self._end()
        if failures:
            raise failures[0]

    async def _end(self) -> None:
        try:
            await self._trimming.finish()
            await self._deletion.finish()
            await self.reads.close()
        finally:  # or the next open would wait for ever for an end that has been
            self._listeners.clear()
            self._refused.listener = None
            self._fenced_listeners.clear()
            self._forget(self)

    async def delete(self, beside: Callable[[], Awaitable[None]] | None = None) -> None:
        """Delete cursors, ledgers and metadata. After a crash in the middle it is there, empty, and can be deleted again."""
        self._check_open()
        self._trimming.stop()
        self._appender.refuse(ManagedLedgerError(f"{self.name} is deleted"))
        self._closing = self._loop.create_task(self._delete(beside))
        self._closing.add_done_callback(take_error)
        await asyncio.shield(self._closing)

    async def _delete(self, beside: Callable[[], Awaitable[None]] | None) -> None:
        try:
            await self._delete_stored(beside)
        finally:
            await self._end()

    async def _delete_stored(self, beside: Callable[[], Awaitable[None]] | None) -> None:
        try:
            await self._appender.close()
        except ManagedLedgerError as error:
            _log.warning(line("open ledger not closed before the deletion", managed_ledger=self.name, error=error))
            self.sequence.close_open(self._around.clock.now_ms())
        await self._cursors.stop()
        await self._write_metadata(is_certain=True)
        await self._trimming.remove_all()
        if beside is not None:
            await beside()
        await self._cursors.delete_all()
        if not await self._deletion.delete_all():
            raise ManagedLedgerError(f"{self.name}: ledgers {list(self._metadata.deletable)} could not be deleted")
        await self._delete_node()

    async def _delete_node(self) -> None:
        store, path = self._around.store, self._metadata.path
        try:
            children = await store.children(path)
            operations: list[Operation] = [Delete(f"{path}/{child}") for child in children]
            await store.commit([*operations, Delete(path, self._metadata.version)])
        except MetadataError as error:
            raise ManagedLedgerError(f"{self.name}: its metadata could not be deleted: {error}") from error
