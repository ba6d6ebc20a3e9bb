"""Cursors of one managed ledger: the pure machine, and for durable ones the throttled writing of changes.

Owns the task of a write; `cursor_saves` knows which cursors are due together. `cursor.acknowledgements` keeps the
acknowledgements, and `cursor.throttle` says when to write. A write that failed is tried again; a fence ends the managed ledger.
"""

import asyncio
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from pyroaring import BitMap

from ports.logs import line
from ports.loop.owner import ask, tell
from wire.kernels.delivery_rows import CursorRow
from wire.position import Position

from ..errors import ManagedLedgerError, ManagedLedgerFenced
from ..ledgers.sequence import NOWHERE
from ..meters import CursorMeters
from ..surroundings import Surroundings
from .acknowledgements import Acknowledgements
from .batch_indexes import Words
from .cursor_host import CursorHost
from .cursor_saves import PlainSave
from .cursor_store import CursorStore
from .holes.hole_stats import HoleStats
from .holes.holes_driver import StoredHoles
from .properties import internal
from .state import CursorState
from .throttle import MarkRate, MarkThrottle

_log = logging.getLogger(__name__)


class MemoryCursor(CursorRow):
    """A `ManagedCursor` that is not stored."""

    __slots__ = ("__weakref__", "_host", "_is_closed", "_properties", "name", "persistent_mark_delete")

    acknowledgements: Acknowledgements
    durable = False

    def __init__(self, host: CursorHost, name: str, acknowledgements: Acknowledgements) -> None:
        self.name = name
        self.persistent_mark_delete = NOWHERE
        self.acknowledgements = acknowledgements
        self._host, self._planned = host, 0  # nothing is ever to be stored
        self._properties: Mapping[str, int] = {}
        self._is_closed = False

    @property
    def mark_delete(self) -> Position:
        return self.acknowledgements.mark_delete

    @property
    def properties(self) -> Mapping[str, int]:
        return self._properties

    @property
    def cursor_properties(self) -> Mapping[str, str]:
        return {}

    def first_unacknowledged(self) -> Position:
        return self.acknowledgements.first_unacknowledged()

    def acknowledge_entries(self, ledger_id: int, entry_ids: BitMap) -> BitMap:
        old = self.acknowledgements.mark_delete
        fresh = self.acknowledgements.acknowledge_entries(ledger_id, entry_ids)
        if fresh:
            self._changed(old)
        return fresh

    def acknowledge_entry(self, ledger_id: int, entry_id: int) -> bool:
        """Mark-delete stays in the open ledger, so that no ledger can be trimmed: the host is not told."""
        return self.acknowledgements.acknowledge_entry(ledger_id, entry_id)

    def acknowledge_batch_indexes(self, position: Position, ack_set: Sequence[int], batch_size: int) -> bool:
        old = self.acknowledgements.mark_delete
        is_whole = self.acknowledgements.acknowledge_batch_indexes(position, ack_set, batch_size)
        self._changed(old)
        return is_whole

    def acknowledge_cumulative(
        self,
        position: Position,
        ack_set: Sequence[int] = (),
        batch_size: int = 0,
        properties: Mapping[str, int] | None = None,
    ) -> None:
        old, version = self.acknowledgements.mark_delete, self.acknowledgements.version
        self.acknowledgements.acknowledge_cumulative(position, ack_set, batch_size)
        if properties is not None and self.acknowledgements.version != version:
            self._properties = dict(properties)
        self._changed(old)

    def is_acknowledged(self, position: Position) -> bool:
        return self.acknowledgements.is_acknowledged(position)

    def is_untouched(self, ledger_id: int, first: int, last: int) -> bool:
        return self.acknowledgements.is_untouched(ledger_id, first, last)

    def acknowledged_in(self, ledger_id: int) -> BitMap:
        return self.acknowledgements.acknowledged_in(ledger_id)

    def is_loaded(self, ledger_id: int, first: int, last: int) -> bool:
        return not self.acknowledgements.missing(ledger_id, first, last)

    async def load_acknowledged(self, ledger_id: int, first: int, last: int) -> None:
        """Everything is in memory."""

    def unacknowledged_batch_indexes(self, position: Position) -> Words | None:
        return self.acknowledgements.batches.get(position)

    def has_batch_indexes(self) -> bool:
        return len(self.acknowledgements.batches) > 0

    def partly_acknowledged_count(self) -> int:
        return len(self.acknowledgements.batches)

    def partly_acknowledged(
        self, first: Position | None = None, last: Position | None = None
    ) -> Iterator[tuple[Position, Words]]:
        return self.acknowledgements.batches.between(first, last)

    def backlog_entries(self) -> int:
        return self.acknowledgements.backlog_entries()

    def hole_stats(self) -> HoleStats:
        holes = self.acknowledgements.holes
        return HoleStats(holes.count, holes.range_count())

    async def reset(self, position: Position) -> None:
        old = self.acknowledgements.mark_delete
        self.acknowledgements.reset(self._host.sequence.mark_before(position))
        self._changed(old)

    async def set_cursor_properties(self, properties: Mapping[str, str]) -> None:
        raise ManagedLedgerError(f"{self.name} is not durable and has no properties")

    async def change_cursor_properties(self, put: Mapping[str, str], removed: Collection[str] = ()) -> None:
        raise ManagedLedgerError(f"{self.name} is not durable and has no properties")

    async def flush(self) -> None: ...
    async def stored(self) -> None:
        """Nothing is promised."""

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._host.cursor_closed(self)

    def ledgers_trimmed(self) -> None:
        old = self.acknowledgements.mark_delete
        self.acknowledgements.ledgers_trimmed()
        self._changed(old)

    def _changed(self, old: Position) -> None:
        new = self.acknowledgements.mark_delete
        if new != old:
            if new < old:
                self._host.went_back(self)
            self._host.mark_moved(old, new)


class DurableCursor(MemoryCursor):
    """A `ManagedCursor` that a CursorStore keeps. `stored_version`: the version that the store has already."""

    __slots__ = (
        "_holes", "_is_stopped", "_loop", "_save", "_saves", "_store", "_throttle", "_turn", "_writing", "_written_mark",
    )  # fmt: skip

    durable = True

    def __init__(
        self,
        host: CursorHost,
        name: str,
        acknowledgements: Acknowledgements,
        store: CursorStore,
        around: Surroundings,
        properties: Mapping[str, int],
        rate: MarkRate,
    ) -> None:
        super().__init__(host, name, acknowledgements)
        self.persistent_mark_delete = self._written_mark = acknowledgements.mark_delete
        self._properties = properties
        self._store = store
        self._holes = StoredHoles(acknowledgements, store, around.holes, around.settings, ask(self._state))
        flush_s = around.settings.managed_ledger_cursor_position_flush_seconds
        self._throttle = MarkThrottle(rate, flush_s, acknowledgements.version)
        self._loop = asyncio.get_running_loop()
        self._saves = around.saves
        self._planned = None  # the key of the next save, by which it can be forgotten
        self._save: PlainSave | None = None
        """Save under way. It begins only while the turn is free, and a task that gets the turn waits for its end."""
        self._writing: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        self._is_stopped = False

    @property
    def cursor_properties(self) -> Mapping[str, str]:
        return self._store.cursor_properties

    @property
    def meters(self) -> CursorMeters:
        return self._store.meters

    @property
    def is_stored(self) -> bool:
        return self._throttle.is_stored(self.acknowledgements.version)

    def hole_stats(self) -> HoleStats:
        return self._holes.stats()

    async def recovered(self) -> None:
        """Load the wanted segments first; mark-delete may move meanwhile without the managed ledger being told."""
        await self._holes.load_wanted()
        self._holes.moved = tell(super()._changed)

    def is_loaded(self, ledger_id: int, first: int, last: int) -> bool:
        return self._holes.is_loaded(ledger_id, first, last)

    async def load_acknowledged(self, ledger_id: int, first: int, last: int) -> None:
        """Returns at once when all is in memory."""
        await self._holes.load(ledger_id, first, last)

    async def set_cursor_properties(self, properties: Mapping[str, str]) -> None:
        async with self._turn:
            await self._plain_save_ended()
            await self._store_properties({**internal(self._store.cursor_properties), **properties})

    async def change_cursor_properties(self, put: Mapping[str, str], removed: Collection[str] = ()) -> None:
        async with self._turn:
            await self._plain_save_ended()
            kept = {key: value for key, value in self._store.cursor_properties.items() if key not in removed}
            await self._store_properties({**kept, **put})

    async def _store_properties(self, properties: Mapping[str, str]) -> None:
        if self._is_closed:
            raise ManagedLedgerError(f"{self.name} is closed")
        if not self._store.has_ledger and not self._holes.fits_node:
            await self._write()
        try:
            await self._store.set_properties(properties, self._whole_state())
            self.persistent_mark_delete = self._written_mark
        except ManagedLedgerFenced as error:
            self._host.fenced(error)
            raise

    async def reset(self, position: Position) -> None:
        self._holes.forget()
        await super().reset(position)
        await self.flush()

    async def flush(self) -> None:
        """Return when all entries acknowledged now are stored; calls meanwhile share the next write."""
        version = self.acknowledgements.version
        async with self._turn:
            await self._plain_save_ended()
            if not self._throttle.is_stored(version) and not self._is_closed:
                await self._write()

    async def stored(self) -> None:
        version = self.acknowledgements.version
        await self.flush()
        if not self._throttle.is_stored(version):
            raise ManagedLedgerError(f"{self.name}: closed before its acknowledgements were stored")

    async def close(self) -> None:
        """Store all changes, in the node; closing twice is fine."""
        if self._is_closed:
            return
        self.stop()
        async with self._turn:
            await self._plain_save_ended()
            try:
                if not self._is_closed:
                    await self._write_last()
            finally:
                self._holes.end()
                await super().close()

    async def _write_last(self) -> None:
        if self.is_stored and self.acknowledgements.holes.pages is not None:
            await self._store.close_ledger()
        elif self._store.has_ledger or not self.is_stored:
            await self._write(closing=True)

    async def delete(self) -> None:
        self.stop()
        async with self._turn:
            await self._plain_save_ended()
            await self._store.delete()
            self._holes.end()
            await super().close()

    def stop(self) -> None:
        """Stop timed saves: only a call writes from now on."""
        self._is_stopped = True
        if self._planned is not None:
            self._saves.forget(self, self._planned)
            self._planned = None

    def acknowledge_entry(self, ledger_id: int, entry_id: int) -> bool:
        if not self.acknowledgements.acknowledge_entry(ledger_id, entry_id):
            return False
        if self._planned is None:
            self._plan()
        return True

    def _changed(self, old: Position) -> None:
        super()._changed(old)
        self._holes.let_go_of_passed()
        self._plan()
        self._holes.load_wanted_soon()

    def _plan(self) -> None:
        if self._is_stopped or self._planned is not None:
            return
        at = self._throttle.changed(self.acknowledgements.version, self._loop.time())
        if at is not None:
            self._planned = self._saves.plan(self, at)

    def begin_save(self) -> PlainSave | None:
        """Begin the save that is due: a plain one, or one in a task."""
        self._planned = None
        writer = None if self._turn.locked() or self.is_stored else self._store.plain_writer
        entry = None if writer is None else self._holes.plain_entry()
        if writer is None or entry is None:
            self._start_writing()
            return None
        self._throttle.write_started(self._loop.time())
        self._save = PlainSave(self, writer, entry, self._written_mark, self.acknowledgements.version)
        return self._save

    def save_ended(self, save: PlainSave, error: BaseException | None) -> None:
        """An append that failed is tried again in a task, which replaces the ledger where it has to."""
        self._save = None
        if error is None:
            self._store.appended(len(save.entry))
            self.persistent_mark_delete = save.mark_delete
            self._throttle.write_ended(save.version)
            self._plan()
        else:
            self._start_writing()
        if save.on_end is not None:
            save.on_end()

    async def _plain_save_ended(self) -> None:
        """Wait until no plain save is under way. The caller has the turn."""
        save = self._save
        if save is not None:
            ended = asyncio.Event()
            save.on_end = ended.set
            await ended.wait()

    def _start_writing(self) -> None:
        self._writing = self._loop.create_task(self._write_in_background())

    async def _write_in_background(self) -> None:
        try:
            async with self._turn:
                await self._plain_save_ended()
                if not self.is_stored and not self._is_stopped:  # a stopped cursor is written by its end, or never again
                    await self._write()
        except ManagedLedgerFenced:
            self.stop()  # the managed ledger has said so
        except ManagedLedgerError as error:
            _log.warning(line("cursor not stored", cursor=self._store.path, error=error))
        finally:
            self._writing = None
            self._throttle.write_ended(None)
        self._plan()

    async def _write(self, *, closing: bool = False) -> None:
        self._throttle.write_started(self._loop.time())
        stored = None
        try:
            stored = await self._holes.save(closing=closing)
            self.persistent_mark_delete = self._written_mark
        except ManagedLedgerFenced as error:
            self._host.fenced(error)
            raise
        finally:
            self._throttle.write_ended(stored)

    def _state(self) -> CursorState:
        """Without holes."""
        machine = self.acknowledgements
        self._written_mark = machine.mark_delete
        return CursorState(machine.mark_delete, {}, machine.batches.items(), self._properties, machine.version)

    def _whole_state(self) -> CursorState:
        """With the holes that are in memory: all of them, while the place is in the node."""
        return replace(self._state(), holes=self.acknowledgements.holes.copy())
