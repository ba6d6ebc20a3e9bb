"""LedgerCursors: the cursors of one managed ledger by name: made, loaded, deleted, one at a time.

Owns the map. A cursor counts (nothing is trimmed below it) from the moment it is asked for; it is handed out when it is stored.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from pyroaring import BitMap

from metadata.store import Versioned
from ports.ends import ENDS
from ports.loop.side_by_side import all_tried, unbroken
from ports.loop.slices import do_in_slices, in_slices
from wire.position import Position

from ..errors import ManagedLedgerError, ManagedLedgerFenced
from ..surroundings import Surroundings
from .acknowledgements import Acknowledgements
from .cursor_driver import DurableCursor, MemoryCursor
from .cursor_host import CursorHost, HostedCursor
from .cursor_store import CursorStore
from .slowest_cursor import SlowestCursor
from .state import CursorState
from .throttle import MarkRate


class LedgerCursors:
    """`path` is the node of the managed ledger, whose children are the durable cursors. `lost` gives the unreadable
    entries of each ledger."""

    def __init__(
        self,
        host: CursorHost,
        around: Surroundings,
        ledger_name: str,
        path: str,
        lost: Callable[[], Iterable[tuple[int, BitMap]]] = tuple,
    ) -> None:
        self.by_name: dict[str, MemoryCursor] = {}
        self.slowest = SlowestCursor(self.by_name)
        self._host = host
        self._around = around
        self._ledger_name = ledger_name
        self._path = path
        self._lost = lost
        self._turn = asyncio.Lock()
        self._is_ending = False
        self._hears_went_back: Callable[[str], None] | None = None
        self._rate = MarkRate(around.settings.managed_ledger_default_mark_delete_rate_limit)

    def limit_marks(self, per_second: float | None) -> None:
        """Limit the saves of all cursors, later ones too; None: as the settings say."""
        default = self._around.settings.managed_ledger_default_mark_delete_rate_limit
        self._rate.limit(default if per_second is None else per_second)

    def durable(self) -> list[DurableCursor]:
        return [cursor for cursor in self.by_name.values() if isinstance(cursor, DurableCursor)]

    def ledgers_trimmed(self) -> None:
        """Moves cursors out of ledgers that are gone: the first at once, the rest in slices. Until a cursor's turn has come,
        its mark is before the first ledger, where nothing is left to acknowledge."""
        if self._is_ending:
            return
        self._do_to_each(lambda cursor: cursor.ledgers_trimmed())

    def entries_lost(self, ledger_id: int, entry_ids: BitMap) -> None:
        """Acknowledges unreadable entries on all cursors: on the first at once, on the rest in slices."""
        self._do_to_each(lambda cursor: cursor.acknowledge_entries(ledger_id, entry_ids))

    def _do_to_each(self, work: Callable[[MemoryCursor], object]) -> None:
        """Leaves out cursors that have ended when their turn comes, and all once they are about to be deleted."""

        def done(cursor: MemoryCursor) -> None:
            if not self._is_ending and self.by_name.get(cursor.name) is cursor:
                work(cursor)

        do_in_slices((partial(done, cursor) for cursor in list(self.by_name.values())), lambda: None)

    async def stop(self) -> None:
        """All are about to be deleted: none is written any more because the entries go."""
        self._is_ending = True
        async for cursor in in_slices(self.durable()):
            cursor.stop()

    def on_went_back(self, listener: Callable[[str], None]) -> Callable[[], None]:
        def end() -> None:
            self._hears_went_back = None

        self._hears_went_back = listener
        return end

    def went_back(self, cursor: HostedCursor) -> None:
        self.slowest.noted(cursor.name)
        if self._hears_went_back is not None:
            self._hears_went_back(cursor.name)
        self._pass_lost(cursor)

    def _pass_lost(self, cursor: HostedCursor) -> None:
        """Acknowledges lost entries: no read asks for them a second time, so that the cursor would stay before them."""
        for ledger_id, entry_ids in self._lost():
            cursor.acknowledge_entries(ledger_id, entry_ids)

    async def load(self, name: str, node: Versioned) -> None:
        store = self._store(name)
        await self._add(name, await store.recover(node), store).recovered()

    async def open(self, name: str, initial: Position, cursor_properties: Mapping[str, str]) -> DurableCursor:
        return await unbroken(self._open(name, initial, cursor_properties))

    async def _open(self, name: str, initial: Position, cursor_properties: Mapping[str, str]) -> DurableCursor:
        async with self._turn:
            found = self.by_name.get(name)
            if found is None:
                return await self._create(name, initial, cursor_properties)
            if not isinstance(found, DurableCursor):
                raise ManagedLedgerError(f"{self._ledger_name}: cursor {name} is not durable")
            return found

    def open_non_durable(self, name: str, initial: Position) -> MemoryCursor:
        if name in self.by_name:
            raise ManagedLedgerError(f"{self._ledger_name}: there is a cursor {name} already")
        sequence = self._host.sequence
        cursor = MemoryCursor(self._host, name, Acknowledgements(sequence, sequence.mark_before(initial)))
        self.by_name[name] = cursor
        self.slowest.noted(name)
        self._pass_lost(cursor)
        return cursor

    async def delete(self, name: str) -> None:
        await unbroken(self._delete(name))

    async def _delete(self, name: str) -> None:
        async with self._turn:
            cursor = self.by_name.get(name)
            if cursor is None:
                raise ManagedLedgerError(f"{self._ledger_name}: there is no cursor {name}")
            if isinstance(cursor, DurableCursor):
                await cursor.delete()
            else:
                await cursor.close()

    async def delete_all(self) -> None:
        """Some at a time, however many there are."""
        failures = await all_tried(cursor.delete() for cursor in self.durable())
        if failures:
            raise failures[0]

    def closed(self, cursor: HostedCursor) -> None:
        if self.by_name.get(cursor.name) is cursor:
            del self.by_name[cursor.name]
            self.slowest.left()
            ENDS.ended(cursor)

    async def _create(self, name: str, initial: Position, cursor_properties: Mapping[str, str]) -> DurableCursor:
        state = CursorState(self._host.sequence.mark_before(initial))
        store = self._store(name)
        cursor = self._add(name, state, store)
        try:
            await store.create(state, cursor_properties)
            await cursor.recovered()
            self._pass_lost(cursor)
        except BaseException as error:
            self.closed(cursor)
            if isinstance(error, ManagedLedgerFenced):
                self._host.fenced(error)
            raise
        return cursor

    def _store(self, name: str) -> CursorStore:
        around = self._around
        path = f"{self._path}/{name}"
        return CursorStore(
            self._ledger_name, path, around.store, around.ledgers, around.settings, around.clock, around.skipping
        )

    def _add(self, name: str, state: CursorState, store: CursorStore) -> DurableCursor:
        machine = Acknowledgements(self._host.sequence, state.mark_delete)
        machine.restore(state.holes, state.batches, state.segments)
        around = self._around
        cursor = DurableCursor(self._host, name, machine, store, around, state.properties, self._rate)
        self.by_name[name] = cursor
        self.slowest.noted(name)
        return cursor
