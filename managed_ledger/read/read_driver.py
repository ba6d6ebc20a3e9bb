"""LedgerReads: runs from the cache or, when they are not there, from the ledgers, in large pieces for readers that go on.

A read that goes on where another one ended is a catch-up: it fetches a piece of PIECE_BYTES, once for all readers that wait for
it, and keeps it in the cache; and while a reader goes through one piece the next is fetched, so that it does not wait for the
disk. Any other read fetches the wanted entries, and keeps nothing. Fetched bytes are bounded over all managed ledgers: those on
their way by `ReadsInFlight`, those that wait for their reader by its share of the cache; without room there a catch-up fetches
the wanted entries alone, too.
Owns the reads under way. Entries that all readers near the end have read go from the cache at once.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from pyroaring import BitMap

from bookkeeper.ledgers import (
    EntryLost,
    LedgerError,
    LedgerReader,
    NoSuchLedger,
    ScatteredReads,
)
from managed_ledger.cache.entry_cache import CachedLog
from managed_ledger.cache.pieces import Pieces
from managed_ledger.cache.places import ReadingPlaces
from managed_ledger.errors import ManagedLedgerError
from managed_ledger.meters import LedgerMeters
from managed_ledger.settings import ManagedLedgerSettings
from ports.loop.side_by_side import take_error
from wire.picked_runs import Picked, Picks, picked_runs
from wire.position import Position
from wire.run import EntryRun
from wire.run_parts import answers, cut

from ..ledgers.sequence import LedgerSequence
from .handles import LedgerHandles
from .lost_entries import LostEntries
from .picked_reads import pick

PIECE_BYTES = 2 << 20
PIECE_ENTRIES = 1 << 16
_GONE = Position(-1, -1)
"""Answer for a ledger that is trimmed: no position to go on at."""


class LedgerReads:
    """Reads of one managed ledger. `lost` is notified of entries that were skipped because they cannot be read any more."""

    def __init__(
        self,
        name: str,
        sequence: LedgerSequence,
        handles: LedgerHandles,
        cache: CachedLog,
        settings: ManagedLedgerSettings,
        lost: Callable[[int, BitMap], None],
        meters: LedgerMeters,
    ) -> None:
        self._name = name
        self._meters = meters
        self._sequence = sequence
        self._cache = cache
        self._in_flight = cache.shared.in_flight
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._ledgers, self._handles = handles.ledgers, handles
        self._fetches: dict[Position, asyncio.Task[EntryRun]] = {}
        self._places = ReadingPlaces()
        self._kept_from: dict[object, Position] = {}
        """First entry that each reader will ask for again."""
        self._pieces = Pieces(cache.shared.age_s_max)
        self.lost = LostEntries(name, lost)

    def read_cached(self, position: Position, entries_max: int, bytes_max: int) -> EntryRun | None:
        """Without a task: None when it is not in the cache, or nothing is there to read."""
        found = self._sequence.locate(position)
        return None if found is None else self._cached(position, found, entries_max, bytes_max)

    def pick_cached(self, wanted: Picks, bytes_max: int) -> Picked | None:
        """See `managed_ledger.contract.ManagedLedger.pick_cached`."""
        runs, size, now = list[EntryRun](), 0, self._loop.time()
        for ledger_id, entry_ids in wanted:
            parts = None if self._sequence.span(ledger_id) is None else self._cache.holding(ledger_id, entry_ids, now)
            if parts is None:
                return None
            size += len(entry_ids) * max(part.size_bytes // part.count for part in parts)
            if size > bytes_max:
                return None
            runs.extend(picked_runs(parts, entry_ids))
        for run in runs:
            self._meters.hit(run.count, run.size_bytes)
        return Picked(runs)

    def keep_from(self, reader: object, position: Position | None) -> None:
        """See `managed_ledger.contract.ManagedLedger.keep_from`."""
        if position is None:
            self._kept_from.pop(reader, None)
        else:
            self._kept_from[reader] = position

    async def read(self, position: Position, entries_max: int, bytes_max: int) -> EntryRun | None:
        """See `managed_ledger.contract.ManagedLedger.read`."""
        try:
            place = position
            while (found := self._sequence.locate(place)) is not None:
                place = self.lost.after(found)
                if place != found:
                    continue
                run = self._cached(position, found, entries_max, bytes_max)
                if run is not None:
                    assert answers(run, found.ledger_id, found.entry_id, entries_max), "the cache gave other entries"
                    return run
                try:
                    run = await self._miss(found, entries_max, bytes_max)
                except LedgerError as error:
                    place = self._after(found, error)
                    continue
                assert answers(run, found.ledger_id, found.entry_id, entries_max), "a ledger gave other entries"
                self._meters.missed(run.count, run.size_bytes)
                self._read_on(position, Position(run.ledger_id, run.last_entry_id + 1))
                return run
            return None
        finally:
            self.lost.tell()

    async def pick(self, wanted: Picks, bytes_max: int) -> Picked:
        """See `managed_ledger.contract.ManagedLedger.pick`."""
        there, gone, entry_bytes = list[tuple[int, BitMap]](), list[tuple[int, BitMap]](), list[int]()
        for ledger_id, entry_ids in wanted:
            span = self._sequence.span(ledger_id)
            known = BitMap() if span is None else entry_ids & BitMap(range(span.entries))
            if span is not None and known:
                there.append((ledger_id, known))
                entry_bytes.append(span.size_bytes // max(span.entries, 1))
            if len(known) < len(entry_ids):
                gone.append((ledger_id, entry_ids - known))
        try:
            picked = await pick(there, entry_bytes, bytes_max, self._fetch_some, self._fetch_all)
        finally:
            self.lost.tell()
        for run in picked.runs:
            self._meters.missed(run.count, run.size_bytes)
        return Picked(picked.runs, [*gone, *picked.gone])

    async def _fetch_all(self, places: Sequence[Position], bytes_max: int) -> Sequence[EntryRun]:
        """Fetch all, where ledgers can be read so; lost, unopenable and damaged ones are left to `_fetch_some`."""
        found, wanted = list[EntryRun](), dict[int, list[int]]()
        for ledger_id, entry_id in places:
            run = self._cache.peek(ledger_id, entry_id, 1)
            if run is not None:
                found.append(run)
            elif self.lost.after(Position(ledger_id, entry_id)).entry_id == entry_id:
                wanted.setdefault(ledger_id, []).append(entry_id)
        if not wanted or not isinstance(self._ledgers, ScatteredReads):
            return found
        sources = await self._handles.sources(wanted)
        size = min(bytes_max, PIECE_BYTES)
        await self._take_room(size)
        try:
            found += await self._ledgers.pick([(source, wanted[each]) for each, source in sources.items()], size)
        finally:
            self._in_flight.give_back(size)
        return found

    async def _fetch_some(self, position: Position, entries_max: int) -> EntryRun | Position:
        place = self.lost.after(position)
        if place != position or self._sequence.span(position.ledger_id) is None:
            return place if place != position else _GONE
        run = self._cache.peek(position.ledger_id, position.entry_id, entries_max)
        try:
            return run or await self._fetch(position, entries_max, PIECE_BYTES)
        except LedgerError as error:
            place = self._after(position, error)
            return place if place != position else _GONE

    def forget_ledger(self, ledger_id: int) -> None:
        """Forget a trimmed ledger."""
        self._cache.remove_ledger(ledger_id)
        self._handles.forget(ledger_id)
        self.lost.forget_ledger(ledger_id)

    def keep_handle(self, reader: LedgerReader) -> None:
        """A ledger that was just recovered need not be opened again."""
        self._handles.keep(reader)

    async def close(self) -> None:
        """Reads under way are cancelled."""
        under_way: list[asyncio.Future[Any]] = [*self._handles.take_all(), *self._fetches.values()]
        for each in under_way:
            each.cancel()
        if under_way:
            await asyncio.wait(under_way)
        self._cache.close()

    # where readers are

    def _cached(self, position: Position, found: Position, entries_max: int, bytes_max: int) -> EntryRun | None:
        run = self._cache.get(found.ledger_id, found.entry_id, entries_max, bytes_max, self._loop.time())
        if run is not None:
            self._meters.hit(run.count, run.size_bytes)
            self._read_on(position, Position(run.ledger_id, run.last_entry_id + 1))
            end = self._pieces.entered_ahead(found)
            if end is not None:
                self._entered(found, end)
        return run

    def _read_on(self, old: Position, new: Position) -> None:
        """Note where the reader is now, and release the entries that all readers have had.

        Not those that this very read gave: a dispatcher comes back for the part that it could not give away. A reader that is
        far behind holds nothing that is near the end (Apache: an inactive cursor; managedLedgerCursorBackloggedThreshold).
        """
        if not self._places.moved(old, new):
            return
        first = self._cache.first_position()
        if first is None or first >= old:
            return
        near_end = self.near_end()
        start = first if near_end is None or old < near_end else max(first, near_end)
        slowest = self._places.slowest(start)
        if slowest is not None:
            self._cache.remove_before(min(slowest, old, *self._kept_from.values()), start)

    def near_end(self) -> Position | None:
        """Readers from here on are active: new entries are cached for them. None: all are."""
        sequence = self._sequence
        index = sequence.end_index - self._settings.managed_ledger_cursor_backlogged_threshold
        return sequence.position_at(index) if index > sequence.first_index else None

    def _entered(self, begin: Position, end: Position) -> None:
        """A reader goes through the piece from `begin` to `end` now."""
        following = self._sequence.locate(end)
        is_fast = self._pieces.entered(begin, following or end, self._loop.time())
        if is_fast and following is not None and following not in self._fetches and following not in self._cache:
            self._look_ahead(following)

    # from the ledgers

    async def _miss(self, position: Position, entries_max: int, bytes_max: int) -> EntryRun:
        """LedgerError."""
        if position in self._places or (position.entry_id == 0 and self._goes_on_from_before(position)):
            task = self._fetches.get(position) or self._begin_piece(position)
            if task is not None:
                whole = await asyncio.shield(task)
                self._entered(position, Position(whole.ledger_id, whole.last_entry_id + 1))
                return cut(whole, position.entry_id, entries_max, bytes_max)
        return await self._fetch(position, entries_max, bytes_max)

    def _goes_on_from_before(self, position: Position) -> bool:
        before = self._sequence.span_before(position.ledger_id)
        return before is not None and Position(before.ledger_id, before.entries) in self._places

    def _look_ahead(self, position: Position) -> None:
        """Fetch the piece that a reader will want next, unless other reads wait already."""
        if not self._in_flight.waiting:
            task = self._begin_piece(position)
            if task is not None:
                task.add_done_callback(self._fetched_ahead)

    def _fetched_ahead(self, task: "asyncio.Task[EntryRun]") -> None:
        if not task.cancelled() and task.exception() is None:
            run = task.result()
            begin = Position(run.ledger_id, run.first_entry_id)
            self._pieces.fetched_ahead(begin, Position(run.ledger_id, run.last_entry_id + 1))

    def _begin_piece(self, position: Position) -> "asyncio.Task[EntryRun] | None":
        """None: there is no room for it."""
        shared = self._cache.shared
        if not shared.has_room_ahead(PIECE_BYTES):
            return None
        shared.ahead_bytes += PIECE_BYTES  # promised
        task = self._fetches[position] = self._loop.create_task(self._fetch(position, PIECE_ENTRIES, PIECE_BYTES))
        task.add_done_callback(lambda done: self._piece_came(position, done))
        return task

    def _piece_came(self, position: Position, task: "asyncio.Task[EntryRun]") -> None:
        del self._fetches[position]
        self._cache.shared.ahead_bytes -= PIECE_BYTES
        take_error(task)
        if not task.cancelled() and task.exception() is None and self._sequence.span(position.ledger_id) is not None:
            self._cache.insert(task.result(), self._loop.time(), is_ahead=True)

    async def _fetch(self, position: Position, entries_max: int, bytes_max: int) -> EntryRun:
        span = self._sequence.span(position.ledger_id)
        if span is None:
            raise NoSuchLedger(f"ledger {position.ledger_id} is trimmed")
        count = min(entries_max, span.entries - position.entry_id)
        size = min(bytes_max, count * (span.size_bytes // max(span.entries, 1) + 1))
        await self._take_room(size)
        try:
            source = await self._handles.source(position.ledger_id)
            return await source.read(position.entry_id, count, bytes_max)
        finally:
            self._in_flight.give_back(size)

    async def _take_room(self, size: int) -> None:
        """Wait until so much may be read. ManagedLedgerError: too many wait, or it took too long."""
        if self._in_flight.try_take(size):
            return
        granted: asyncio.Future[None] = self._loop.create_future()
        waiting = self._in_flight.wait(size, lambda: granted.set_result(None))
        if waiting is None:
            raise ManagedLedgerError(f"{self._name}: {self._in_flight.waiting} reads wait already ({_REMEDY})")
        try:
            async with asyncio.timeout(self._settings.managed_ledger_max_reads_in_flight_permits_acquire_timeout_millis / 1000):
                await asyncio.shield(granted)
        except BaseException as error:
            if granted.done():
                self._in_flight.give_back(size)
            else:
                self._in_flight.leave(waiting)
            if isinstance(error, TimeoutError):
                raise ManagedLedgerError(f"{self._name}: a read waited too long for others ({_REMEDY})") from error
            raise

    # what cannot be read

    def _after(self, position: Position, error: LedgerError) -> Position:
        """Position after an entry that could not be read. ManagedLedgerError, unless it is lost and to be skipped."""
        span = self._sequence.span(position.ledger_id)
        if span is None:
            return position  # trimmed meanwhile
        if not self._settings.auto_skip_non_recoverable_data or not isinstance(error, EntryLost | NoSuchLedger):
            raise ManagedLedgerError(f"{self._name}: {position} cannot be read: {error}") from error
        end = position.entry_id + 1 if isinstance(error, EntryLost) else span.entries
        self.lost.add(position.ledger_id, position.entry_id, end, str(error))
        return Position(position.ledger_id, end)


_REMEDY = "managedLedgerMaxReadsInFlightSizeInMB bounds them"
