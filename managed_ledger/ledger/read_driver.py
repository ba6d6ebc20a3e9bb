"""LedgerReads: runs from the cache or, when they are not there, from the ledgers, in large pieces for who reads on and on.

Owns the handles of closed ledgers and the reads under way. A read that goes on where another one ended is a catch-up: it
fetches up to READ_AHEAD_BYTES at once and keeps the rest in the cache. Any other fetches what was asked for, and keeps nothing.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from bookkeeper.ledgers import LedgerError, LedgerReader, LedgerStore, LedgerWriter, NoSuchLedger
from managed_ledger.cache.entry_cache import CachedLog
from managed_ledger.cache.places import ReadingPlaces
from managed_ledger.cache.runs import cut
from managed_ledger.errors import ManagedLedgerError
from managed_ledger.tasks import take_error
from wire.position import Position
from wire.run import EntryRun

from .sequence import LedgerSequence

READ_AHEAD_BYTES = 1 << 20
READ_AHEAD_ENTRIES = 1 << 16
HANDLES_MAX = 32
"""Closed ledgers kept open for reading."""


class LedgerReads:
    """Reads of one managed ledger. `writer_of` gives the writer of a ledger that is not closed."""

    def __init__(
        self,
        name: str,
        sequence: LedgerSequence,
        ledgers: LedgerStore,
        cache: CachedLog,
        writer_of: Callable[[int], LedgerWriter | None],
    ) -> None:
        self._name = name
        self._sequence = sequence
        self._ledgers = ledgers
        self._cache = cache
        self._writer_of = writer_of
        self._loop = asyncio.get_running_loop()
        self._handles: OrderedDict[int, asyncio.Future[LedgerReader]] = OrderedDict()
        self._fetches: dict[Position, asyncio.Task[EntryRun]] = {}
        self._places = ReadingPlaces()

    def read_cached(self, position: Position, entries_max: int, bytes_max: int) -> EntryRun | None:
        """Without a task: None when it is not in the cache, or nothing is there to read."""
        found = self._sequence.locate(position)
        if found is None:
            return None
        run = self._cache.get(found.ledger_id, found.entry_id, entries_max, bytes_max, self._loop.time())
        if run is not None:
            self._read_on(position, Position(run.ledger_id, run.last_entry_id + 1))
        return run

    async def read(self, position: Position, entries_max: int, bytes_max: int) -> EntryRun | None:
        while (run := self.read_cached(position, entries_max, bytes_max)) is None:
            found = self._sequence.locate(position)
            if found is None:
                return None
            run = await self._miss(found, entries_max, bytes_max)
            if run is not None:
                self._read_on(position, Position(run.ledger_id, run.last_entry_id + 1))
                break
        return run

    def forget_ledger(self, ledger_id: int) -> None:
        """It is trimmed."""
        self._cache.remove_ledger(ledger_id)
        self._handles.pop(ledger_id, None)

    def keep_handle(self, reader: LedgerReader) -> None:
        """A ledger that was just recovered need not be opened again."""
        handle: asyncio.Future[LedgerReader] = self._loop.create_future()
        handle.set_result(reader)
        self._handles[reader.ledger_id] = handle

    async def close(self) -> None:
        """Reads under way are cancelled."""
        under_way: list[asyncio.Future[Any]] = [*self._handles.values(), *self._fetches.values()]
        for each in under_way:
            each.cancel()
        if under_way:
            await asyncio.wait(under_way)
        self._handles.clear()
        self._cache.close()

    def _read_on(self, old: Position, new: Position) -> None:
        """Note where the reader is now, and let go of what all readers have had.

        Not of what this very read gave: a dispatcher comes back for the part that it could not give away.
        """
        if not self._places.moved(old, new):
            return
        first = self._cache.first_position()
        if first is not None and first < old:
            slowest = self._places.slowest(first)
            if slowest is not None:
                self._cache.remove_before(min(slowest, old))

    async def _miss(self, position: Position, entries_max: int, bytes_max: int) -> EntryRun | None:
        """None: the ledger was trimmed meanwhile."""
        is_catch_up = position in self._places or (position.entry_id == 0 and self._goes_on_from_before(position))
        try:
            if is_catch_up:
                whole = await self._shared_fetch(position)
                return cut(whole, position.entry_id, entries_max, bytes_max)
            return await self._fetch(position, entries_max, bytes_max)
        except LedgerError as error:
            if self._sequence.span(position.ledger_id) is None:
                return None
            raise ManagedLedgerError(f"{self._name}: {position} cannot be read: {error}") from error

    def _goes_on_from_before(self, position: Position) -> bool:
        before = self._sequence.span_before(position.ledger_id)
        return before is not None and Position(before.ledger_id, before.entries) in self._places

    async def _shared_fetch(self, position: Position) -> EntryRun:
        """A large piece, once for all who wait for it, and kept."""
        task = self._fetches.get(position)
        if task is None:
            task = self._fetches[position] = self._loop.create_task(self._read_ahead(position))
            task.add_done_callback(take_error)
            task.add_done_callback(lambda _: self._fetches.pop(position, None))
        return await asyncio.shield(task)

    async def _read_ahead(self, position: Position) -> EntryRun:
        run = await self._fetch(position, READ_AHEAD_ENTRIES, READ_AHEAD_BYTES)
        if self._sequence.span(run.ledger_id) is not None:
            self._cache.insert(run, self._loop.time())
        return run

    async def _fetch(self, position: Position, entries_max: int, bytes_max: int) -> EntryRun:
        span = self._sequence.span(position.ledger_id)
        if span is None:
            raise NoSuchLedger(f"ledger {position.ledger_id} is trimmed")
        count = min(entries_max, span.entries - position.entry_id)
        source = self._writer_of(position.ledger_id) or await self._handle(position.ledger_id)
        return await source.read(position.entry_id, count, bytes_max)

    async def _handle(self, ledger_id: int) -> LedgerReader:
        handle = self._handles.get(ledger_id)
        if handle is None or (handle.done() and (handle.cancelled() or handle.exception() is not None)):
            handle = self._handles[ledger_id] = self._loop.create_task(self._open(ledger_id))
            handle.add_done_callback(take_error)
            if len(self._handles) > HANDLES_MAX:
                self._handles.popitem(last=False)
        else:
            self._handles.move_to_end(ledger_id)
        return await asyncio.shield(handle)

    async def _open(self, ledger_id: int) -> LedgerReader:
        return await self._ledgers.open(ledger_id)
