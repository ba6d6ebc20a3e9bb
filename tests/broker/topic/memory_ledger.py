"""A managed ledger in memory, as plain as can be: what topics are tested on. Failures and delays are ordered by the test."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence

from pyroaring import BitMap

from bookkeeper.ledgers import Quorums
from bookkeeper.write.parts import Part
from managed_ledger.contract import (
    EARLIEST,
    LATEST,
    HoleStats,
    InvalidCursorPosition,
    LedgerFacts,
    ManagedLedgerError,
    ManagedLedgerNotFound,
    ManagedLedgerTerminated,
    Skipped,
    Taker,
)
from tests.broker.topic.plain_entries import PlainEntries, PlainListeners, picked_of
from wire.kernels.entries import seal
from wire.picked_runs import Picked, Picks
from wire.position import Position
from wire.run import EntryBatch, EntryRun


class MemoryCursor(PlainEntries):
    """Every acknowledged entry is listed."""

    def __init__(self, ledger: "MemoryLedger", name: str, durable: bool, properties: Mapping[str, str]) -> None:
        self.name, self.durable, self._ledger = name, durable, ledger
        self.properties: Mapping[str, int] = {}
        self.cursor_properties = properties
        self.mark_delete = self.persistent_mark_delete = Position(-1, -1)
        self.is_closed = False
        self.reset_gate: asyncio.Event | None = None
        self.reset_error: ManagedLedgerError | None = None
        self._acked: set[Position] = set()
        self._batches: dict[Position, list[int]] = {}

    def place(self, position: Position) -> None:
        self._acked.clear()
        self._batches.clear()
        if position == EARLIEST:
            position = self._ledger.first_position()
        elif position > self._ledger.last_confirmed:
            position = self._ledger.end()
        self.mark_delete = self._ledger.previous_position(position)

    def first_unacknowledged(self) -> Position:
        return self._ledger.next_position(self.mark_delete)

    def hole_stats(self) -> HoleStats:
        beyond = {position for position in self._acked if position > self.mark_delete}
        starts = [each for each in beyond if Position(each.ledger_id, each.entry_id - 1) not in beyond]
        return HoleStats(len(beyond), len(starts))

    def acknowledge_entries(self, ledger_id: int, entry_ids: BitMap) -> BitMap:
        positions = [Position(ledger_id, entry) for entry in entry_ids]
        if any(position > self._ledger.last_confirmed for position in positions):
            raise InvalidCursorPosition(f"{positions[-1]} is beyond {self._ledger.last_confirmed}")
        known = [p for p in positions if self._ledger.has(p) and not self.is_acknowledged(p)]
        self._acked.update(known)
        for position in known:
            self._batches.pop(position, None)
        self._advance()
        return BitMap([p.entry_id for p in known])

    def acknowledge_batch_indexes(self, position: Position, ack_set: Sequence[int], batch_size: int) -> bool:
        if position > self._ledger.last_confirmed:
            raise InvalidCursorPosition(str(position))
        if self.is_acknowledged(position):
            return True
        full = (1 << batch_size) - 1
        known = self._batches.get(position) or [(full >> shift) & (2**64 - 1) for shift in range(0, batch_size, 64)]
        words = [a & b for a, b in zip(known, [*ack_set, *[0] * len(known)], strict=False)]
        if any(words):
            self._batches[position] = words
            return False
        self.acknowledge_entries(position.ledger_id, BitMap([position.entry_id]))
        return True

    def acknowledge_cumulative(
        self, position: Position, ack_set: Sequence[int] = (), batch_size: int = 0, properties: Mapping[str, int] | None = None
    ) -> None:
        if position > self._ledger.last_confirmed:
            raise InvalidCursorPosition(str(position))
        if properties is not None and position > self.mark_delete:
            self.properties = dict(properties)
        if any(ack_set):
            self.acknowledge_batch_indexes(position, ack_set, batch_size)
            position = self._ledger.previous_position(position)
        self.mark_delete = max(self.mark_delete, position)
        self._advance()

    def _advance(self) -> None:
        while (after := self._ledger.next_position(self.mark_delete)) in self._acked:
            self.mark_delete = after
        self._acked = {p for p in self._acked if p > self.mark_delete}
        self._batches = {p: words for p, words in self._batches.items() if p > self.mark_delete}

    def is_acknowledged(self, position: Position) -> bool:
        return position <= self.mark_delete or position in self._acked

    def is_loaded(self, ledger_id: int, first: int, last: int) -> bool:
        return True

    async def load_acknowledged(self, ledger_id: int, first: int, last: int) -> None: ...

    def acknowledged_in(self, ledger_id: int) -> BitMap:
        return BitMap([p.entry_id for p in self._acked if p.ledger_id == ledger_id])

    def unacknowledged_batch_indexes(self, position: Position) -> tuple[int, ...] | None:
        return tuple(self._batches[position]) if position in self._batches else None

    def has_batch_indexes(self) -> bool:
        return bool(self._batches)

    def partly_acknowledged_count(self) -> int:
        return len(self._batches)

    def partly_acknowledged(
        self, first: Position | None = None, last: Position | None = None
    ) -> Iterator[tuple[Position, tuple[int, ...]]]:
        every = sorted((position, tuple(words)) for position, words in self._batches.items())
        return (each for each in every if (first is None or first <= each[0]) and (last is None or each[0] <= last))

    def backlog_entries(self) -> int:
        return sum(not self.is_acknowledged(p) for p in self._ledger.positions())

    async def reset(self, position: Position) -> None:
        if self.reset_error is not None:
            raise self.reset_error
        self.place(position)
        self._ledger.went_back_listener(self.name)
        if self.reset_gate is not None:  # moved, and not yet stored
            await self.reset_gate.wait()

    async def set_cursor_properties(self, properties: Mapping[str, str]) -> None:
        self.cursor_properties = properties

    async def change_cursor_properties(self, put: Mapping[str, str], removed: Collection[str] = ()) -> None:
        kept = {key: value for key, value in self.cursor_properties.items() if key not in removed}
        self.cursor_properties = {**kept, **put}

    async def flush(self) -> None: ...

    async def stored(self) -> None: ...

    async def close(self) -> None:
        self.is_closed = True
        if not self.durable:
            del self._ledger.cursors[self.name]


class MemoryLedger(PlainListeners):
    """Appends complete on the next turn of the loop, unless `hold` is set; then by `release`."""

    header_bytes, appends = 36, None

    def __init__(self, name: str = "t/n/persistent/x") -> None:
        self.name = name
        self.properties: Mapping[str, str] = {}
        self.cursors: dict[str, MemoryCursor] = {}
        self.is_terminated = self.is_closed = self.is_deleted = self.hold = False
        self.last_ledger_created_ms = 0
        self.append_error: ManagedLedgerError | None = None
        self.read_error: ManagedLedgerError | None = None
        self.properties_error: ManagedLedgerError | None = None
        self.properties_gate: asyncio.Event | None = None
        self.kept_from: dict[object, Position | None] = {}
        self.is_in_memory = False  # whether `read_cached` gives anything
        self.read_seconds: Callable[[], float] = lambda: 0.0
        self.appended_batches = self.trims = self.trims_despite_retention = 0
        self.retention: tuple[int, int] | None = None
        self.persistence: tuple[Quorums, float | None] | None = None
        self.skipped = Skipped()
        self.closed_at_ms: dict[int, int] = {}
        self._ledger_ids = [3]
        self._runs: dict[int, list[EntryRun]] = {3: []}
        self._held: list[tuple[asyncio.Future[EntryRun], EntryBatch]] = []
        self._listeners: dict[int, Callable[[], None]] = {}
        self.fenced_listeners: list[Callable[[], None]] = []

    # what tests do

    def roll_over(self) -> None:
        self._ledger_ids.append(self._ledger_ids[-1] + 2)
        self._runs[self._ledger_ids[-1]] = []

    def drop_first_ledger(self) -> None:
        del self._runs[self._ledger_ids.pop(0)]

    def release(self, error: ManagedLedgerError | None = None, count: int = 1000) -> None:
        for _ in range(min(count, len(self._held))):
            self._complete(*self._held.pop(0), error)

    def positions(self) -> list[Position]:
        return [Position(run.ledger_id, e) for run in self._all() for e in range(run.first_entry_id, run.last_entry_id + 1)]

    def end(self) -> Position:
        return Position(self._ledger_ids[-1], self._next_entry_id())

    def has(self, position: Position) -> bool:
        return position in self.positions()

    # the contract

    @property
    def last_confirmed(self) -> Position:
        return next(reversed(self.positions()), Position(self._ledger_ids[-1], -1))

    @property
    def entry_count(self) -> int:
        return len(self.positions())

    @property
    def size_bytes(self) -> int:
        return sum(run.payload_bytes for run in self._all())

    def append(self, batch: EntryBatch) -> "asyncio.Future[EntryRun]":
        self.appended_batches += 1
        future: asyncio.Future[EntryRun] = asyncio.get_running_loop().create_future()
        if self.is_terminated:
            future.set_exception(ManagedLedgerTerminated("terminated"))
        elif self.hold:
            self._held.append((future, batch))
        else:
            self._complete(future, batch, self.append_error)
        return future

    def _complete(self, future: "asyncio.Future[EntryRun]", batch: EntryBatch, error: ManagedLedgerError | None) -> None:
        if error is not None:
            future.set_exception(error)
            return
        ledger_id, first = self._ledger_ids[-1], self._next_entry_id()
        seal(batch, ledger_id, first, first - 1, 0)
        run = EntryRun(ledger_id, first, batch.buffer, batch.offsets)
        self._runs[ledger_id].append(run)
        future.set_result(run)
        for listener in self._listeners.values():
            asyncio.get_running_loop().call_soon(listener)

    def take_part(self, part: Part) -> bool:
        return False

    async def read(self, position: Position, entries_max: int, bytes_max: int) -> EntryRun | None:
        await asyncio.sleep(self.read_seconds())
        if self.read_error is not None:
            raise self.read_error
        return self._read(position, entries_max)

    def _read(self, position: Position, entries_max: int) -> EntryRun | None:
        for run in self._all():
            if Position(run.ledger_id, run.last_entry_id) >= position:
                first = max(run.first_entry_id, position.entry_id if run.ledger_id == position.ledger_id else 0)
                return run.entries(first, min(entries_max, run.last_entry_id - first + 1))
        return None

    def read_cached(self, position: Position, entries_max: int, bytes_max: int) -> EntryRun | None:
        return self._read(position, entries_max) if self.is_in_memory else None

    def keep_from(self, reader: object, position: Position | None) -> None:
        self.kept_from[reader] = position

    def pick_cached(self, wanted: Picks, bytes_max: int) -> Picked | None:
        return picked_of(list(self._all()), wanted) if self.is_in_memory else None

    async def pick(self, wanted: Picks, bytes_max: int) -> Picked:
        await asyncio.sleep(self.read_seconds())
        if self.read_error is not None:
            raise self.read_error
        return picked_of(list(self._all()), wanted)

    def on_confirmed(self, listener: Callable[[], None], taker: Taker | None = None) -> Callable[[], None]:
        key = len(self._listeners)
        self._listeners[key] = listener
        return lambda: self._listeners.pop(key, None) and None

    def on_fenced(self, listener: Callable[[], None]) -> Callable[[], None]:
        self.fenced_listeners.append(listener)
        return lambda: self.fenced_listeners.remove(listener) if listener in self.fenced_listeners else None

    def next_position(self, position: Position) -> Position:
        return next((p for p in self.positions() if p > position), self.end())

    def previous_position(self, position: Position) -> Position:
        return next((p for p in reversed(self.positions()) if p < position), Position(self._ledger_ids[0], -1))

    def active_from(self) -> Position:
        return self.first_position()

    def first_position(self) -> Position:
        return next(iter(self.positions()), self.end())

    def count_between(self, first: Position, last: Position) -> int:
        return sum(first <= p <= last for p in self.positions())

    async def find_first(self, is_at_or_after: Callable[[EntryRun], Sequence[bool]]) -> Position | None:
        for run in self._all():
            for index, answer in enumerate(is_at_or_after(run)):
                if answer:
                    return Position(run.ledger_id, run.first_entry_id + index)
        return None

    async def open_cursor(
        self, name: str, initial: Position = LATEST, cursor_properties: Mapping[str, str] | None = None
    ) -> MemoryCursor:
        await asyncio.sleep(0)
        if name not in self.cursors:
            self.cursors[name] = self._cursor(name, initial, True, cursor_properties or {})
        return self.cursors[name]

    def open_non_durable_cursor(self, name: str, initial: Position) -> MemoryCursor:
        if name in self.cursors:
            raise ManagedLedgerError(f"there is a cursor {name}")
        self.cursors[name] = self._cursor(name, initial, False, {})
        return self.cursors[name]

    def _cursor(self, name: str, initial: Position, durable: bool, properties: Mapping[str, str]) -> MemoryCursor:
        cursor = MemoryCursor(self, name, durable, properties)
        cursor.place(initial)
        return cursor

    async def delete_cursor(self, name: str) -> None:
        await asyncio.sleep(0)
        del self.cursors[name]

    async def set_properties(self, properties: Mapping[str, str]) -> None:
        if self.properties_gate is not None:
            await self.properties_gate.wait()
        if self.properties_error is not None:
            raise self.properties_error
        self.properties = dict(properties)

    def ledgers(self) -> list[LedgerFacts]:
        return [self._facts(ledger_id) for ledger_id in self._ledger_ids]

    def _facts(self, ledger_id: int) -> LedgerFacts:
        runs, is_open = self._runs[ledger_id], ledger_id == self._ledger_ids[-1]
        closed_at_ms = 0 if is_open else self.closed_at_ms.get(ledger_id, 1)
        entries, size_bytes = sum(run.count for run in runs), sum(run.payload_bytes for run in runs)
        return LedgerFacts(ledger_id, entries, size_bytes, closed_at_ms, is_open)

    def set_persistence(self, quorums: Quorums, marks_per_second: float | None) -> None:
        self.persistence = (quorums, marks_per_second)

    def set_retention(self, age_ms: int, size_bytes: int) -> None:
        self.retention = (age_ms, size_bytes)

    async def trim(self, *, despite_retention: bool = False) -> Iterable[int]:
        self.trims += 1
        self.trims_despite_retention += despite_retention
        return ()

    async def terminate(self) -> Position:
        if self.properties_error is not None:
            raise self.properties_error
        self.is_terminated = True
        return self.last_confirmed

    async def close(self) -> None:
        self.is_closed = True

    async def delete(self, beside: Callable[[], Awaitable[None]] | None = None) -> None:
        if beside is not None:
            await beside()
        self.is_deleted = True

    def _all(self) -> list[EntryRun]:
        return [run for ledger_id in self._ledger_ids for run in self._runs[ledger_id]]

    def _next_entry_id(self) -> int:
        runs = self._runs[self._ledger_ids[-1]]
        return runs[-1].last_entry_id + 1 if runs else 0


class MemoryLedgers:
    """One ledger for each name."""

    def __init__(self) -> None:
        self.by_name: dict[str, MemoryLedger] = {}

    async def open(self, name: str, *, create: bool = True) -> MemoryLedger:
        if name not in self.by_name and not create:
            raise ManagedLedgerNotFound(name)
        ledger = self.by_name.setdefault(name, MemoryLedger(name))
        ledger.is_closed = False
        return ledger

    @property
    def ledger_store(self) -> None:
        return None

    async def exists(self, name: str) -> bool:
        return name in self.by_name

    async def close(self) -> None: ...
