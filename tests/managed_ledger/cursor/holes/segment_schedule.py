"""Cursors with segments through their drivers, many calls at once, beside naive sets; crashes and failed writes at any time.

Two cursors share a hole cache of a few hundred bytes, so that each load evicts what the other one needs. Loads, saves,
roll-overs and resets under way go on when the next step comes.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from pyroaring import BitMap

from managed_ledger.contract import EARLIEST
from managed_ledger.cursor.cursor_driver import DurableCursor
from managed_ledger.errors import ManagedLedgerError
from simulation.world.loop import SimLoop
from simulation.world.rng import stream
from wire.position import Position

from ...ledger_world import World, append_each, small
from .segment_model import tiny

ENTRIES = 60
STEP_S = 0.001
CALL_S_MAX = 30.0
"""Virtual time of thousands of writes: a call that takes longer goes round in circles."""
NAMES = ("a", "b")


@dataclass(slots=True)
class Epoch:
    """Between two resets: what was acknowledged, and what of that is stored for certain."""

    acknowledged: set[Position]
    stored: set[Position] = field(default_factory=set)


class Place:
    """One cursor. After a crash it is in one of the `epochs`; the last one is the present."""

    def __init__(self) -> None:
        self.epochs = [Epoch(set())]

    @property
    def now(self) -> Epoch:
        return self.epochs[-1]

    def is_stored(self, epoch: Epoch, acknowledged: set[Position]) -> None:
        if epoch in self.epochs:
            del self.epochs[: self.epochs.index(epoch)]
            epoch.stored |= acknowledged

    def allows(self, found: set[Position]) -> bool:
        return any(epoch.stored <= found <= epoch.acknowledged for epoch in self.epochs)


class Schedule:
    """One seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.cache_bytes = self.rng.choice([0, 0, 100, 300, 1 << 20])
        self.world = World(
            small(
                managed_ledger_max_entries_per_ledger=self.rng.choice([10, ENTRIES]),
                managed_ledger_max_unacked_ranges_to_persist=3,
                managed_ledger_max_unacked_ranges_to_persist_in_metadata_store=1,
                managed_ledger_default_mark_delete_rate_limit=self.rng.choice([0.001, 100.0]),
                managed_ledger_cursor_position_flush_seconds=5000,
                managed_ledger_cursor_max_entries_per_ledger=self.rng.choice([2, 2, 30, 50_000]),
                managed_ledger_cursor_rollover_time_in_seconds=self.rng.choice([1, 14_400]),
            ),
            STEP_S,
        )
        self.places = {name: Place() for name in NAMES}
        self.calls: dict[asyncio.Task[None], None] = {}
        self.has_failed = False

    async def play(self, steps: int) -> None:
        ledger = await self.world.open()
        for name in NAMES:
            await ledger.open_cursor(name, EARLIEST)
        self.positions = await append_each(ledger, ENTRIES)
        self.take(ledger.cursors)
        kinds = ["acknowledge"] * 6 + ["acknowledge_through", "reset", "fail_append", "crash", "wait_for_all"]
        kinds += ["load"] * 4 + ["store"] * 5 + ["wait"] * 8
        for name in NAMES[: self.rng.randint(0, len(NAMES))]:
            await self.begin_with_many(name)
        for _ in range(steps):
            await getattr(self, self.rng.choice(kinds))()
        await self.wait_for_all()
        await self.crash()

    async def begin_with_many(self, name: str) -> None:
        self.cursors[name].acknowledge_entries(self.positions[0].ledger_id, BitMap(range(1, 10, 2)))
        for position in self.positions[11::2]:
            self.cursors[name].acknowledge_entries(position.ledger_id, BitMap([position.entry_id]))
        self.places[name].now.acknowledged |= set(self.positions[1::2])
        await self.stored(self.cursors[name], self.places[name])

    def take(self, cursors: Any) -> None:
        self.cursors: dict[str, DurableCursor] = dict(cursors)
        self.world.ledgers._around.holes._bytes_max = self.cache_bytes

    def call(self, work: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> None:
        """Several calls are under way at once; one that fails because a write failed is no more than that."""
        task = asyncio.get_running_loop().create_task(self.within_time(work, *arguments))
        self.calls[task] = None
        task.add_done_callback(lambda done: self.calls.pop(done, None))

    async def within_time(self, work: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> None:
        try:
            await asyncio.wait_for(work(*arguments), CALL_S_MAX)
        except ManagedLedgerError:
            if not self.has_failed:
                raise

    # steps

    def some(self) -> tuple[str, DurableCursor, Place]:
        name = self.rng.choice(NAMES)
        return name, self.cursors[name], self.places[name]

    async def acknowledge(self) -> None:
        _, cursor, place = self.some()
        if self.rng.random() < 0.3:
            first = self.rng.randrange(ENTRIES)
            chosen = self.positions[first :: self.rng.choice([1, 2, 2, 3])]
        else:
            chosen = self.rng.sample(self.positions, self.rng.randint(1, 5))
        for ledger_id in sorted({position.ledger_id for position in chosen}):
            cursor.acknowledge_entries(ledger_id, BitMap([p.entry_id for p in chosen if p.ledger_id == ledger_id]))
        place.now.acknowledged |= set(chosen)
        self.check(cursor, place)

    async def acknowledge_through(self) -> None:
        _, cursor, place = self.some()
        at = self.rng.randrange(ENTRIES // 2)
        cursor.acknowledge_cumulative(self.positions[at])
        place.now.acknowledged |= set(self.positions[: at + 1])

    async def load(self) -> None:
        _, cursor, place = self.some()
        position, last = self.rng.choice(self.positions), self.rng.choice([3, 9, ENTRIES - 1])
        self.call(self.loaded, cursor, place, position, last)

    async def loaded(self, cursor: DurableCursor, place: Place, first: Position, last: int) -> None:
        await cursor.load_acknowledged(first.ledger_id, first.entry_id, last)
        if cursor not in self.cursors.values():
            return
        for position in self.positions:
            if position.ledger_id == first.ledger_id and first.entry_id <= position.entry_id <= last:
                assert cursor.is_acknowledged(position) == (position in place.now.acknowledged), position

    async def store(self) -> None:
        _, cursor, place = self.some()
        self.call(self.stored, cursor, place)

    async def stored(self, cursor: DurableCursor, place: Place) -> None:
        epoch, acknowledged = place.now, set(place.now.acknowledged)
        await cursor.stored()
        place.is_stored(epoch, acknowledged)

    async def reset(self) -> None:
        _, cursor, place = self.some()
        self.call(self.was_reset, cursor, place, self.rng.randrange(ENTRIES))

    async def was_reset(self, cursor: DurableCursor, place: Place, at: int) -> None:
        epoch = Epoch(set(self.positions[:at]))
        place.epochs.append(epoch)
        await cursor.reset(self.positions[at])
        place.is_stored(epoch, set(self.positions[:at]))

    async def fail_append(self) -> None:
        """Fail the next append; a cursor then begins a new ledger."""
        self.world.ledger_store.fail_appends = 1
        self.world.ledger_store.torn_entries = self.rng.choice([0, 1])
        self.has_failed = True

    async def wait(self) -> None:
        self.world.shared.step_s = self.rng.choice([1, 1, 1, 5]) * STEP_S
        await asyncio.sleep(self.rng.choice([0, 1, 3, 10, 30, 30, 2000]) * STEP_S / 2)

    async def wait_for_all(self) -> None:
        if self.calls:
            await asyncio.wait(list(self.calls))
        for name in NAMES:
            self.check(self.cursors[name], self.places[name])

    async def crash(self) -> None:
        self.world.ledger_store.fail_appends = 0
        await self.world.kill()
        for task in list(self.calls):
            task.cancel()
        self.cursors, self.has_failed = {}, False
        self.world.start()
        self.take((await self.world.open()).cursors)
        for name, place in self.places.items():
            found = await self.everything(self.cursors[name])
            assert place.allows(found), f"{name}: {sorted(found)} is neither of {place.epochs}"
            place.epochs = [Epoch(set(found), set(found))]

    # what must hold

    async def everything(self, cursor: DurableCursor) -> set[Position]:
        found = set()
        for position in self.positions:
            await cursor.load_acknowledged(position.ledger_id, position.entry_id, position.entry_id)
            if cursor.is_acknowledged(position):
                found.add(position)
        cursor.acknowledgements.check_invariants()
        assert cursor.backlog_entries() == len(self.positions) - len(found)
        return found

    def check(self, cursor: DurableCursor, place: Place) -> None:
        cursor.acknowledgements.check_invariants()
        self.check_cache(cursor)
        for position in self.positions:
            if cursor.is_acknowledged(position):
                assert position in place.now.acknowledged, f"{position} was never acknowledged"
            elif cursor.is_loaded(position.ledger_id, position.entry_id, position.entry_id):
                assert position not in place.now.acknowledged, f"{position} is forgotten"

    def check_cache(self, cursor: DurableCursor) -> None:
        """Check that the cache counts the resident part of the existing segments."""
        pages, cache = cursor.acknowledgements.holes.pages, self.world.ledgers._around.holes
        assert cache.size_bytes == sum(cache._used.values())
        for owner, start in cache._used:
            segment = pages.segment(start) if pages is not None and owner is pages else None
            assert owner is not pages or (segment is not None and segment.is_resident), f"{start} is still counted"


def play(seed: int, steps: int = 40) -> None:
    async def whole() -> None:
        await Schedule(seed).play(steps)

    loop = SimLoop(stream(seed, "loop"))
    try:
        with tiny():
            loop.run_until_complete(whole())
    finally:
        loop.finish()
