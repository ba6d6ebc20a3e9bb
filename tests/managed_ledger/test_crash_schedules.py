"""Generated schedules of appends, acknowledgements, roll-overs, trims, failures, clean ends and crashes on virtual time.

After each restart: every acknowledged append is there once, in order, unless every cursor had consumed it; a
cursor is never ahead of what was acknowledged on it, and never behind what a completed flush had stored; its backlog is exact.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from managed_ledger.contract import EARLIEST, ManagedCursor, ManagedLedgerError
from simulation.world.loop import SimLoop
from simulation.world.rng import stream
from wire.position import Position
from wire.run import EntryRun

from .fake_ledgers import batch, payloads
from .ledger_world import MANY, World, trimming

EXAMPLES = int(os.environ.get("INTERPULSE_EXAMPLES", "150"))
CURSORS = ("a", "b")
BATCH = 3


class Place:
    """Facts of one cursor: acknowledged entries in all, and those that a flush has certainly stored."""

    def __init__(self) -> None:
        self.acknowledged: set[Position] = set()
        self.stored: set[Position] = set()


class Schedule:
    def __init__(self, step_s: float) -> None:
        self.world = World(
            trimming(managed_ledger_max_entries_per_ledger=6, managed_ledger_cursor_max_entries_per_ledger=3), step_s
        )
        self.next_number = 0
        self.confirmed: dict[int, Position] = {}
        self.pending: list[asyncio.Future[EntryRun]] = []
        self.places = {name: Place() for name in CURSORS}

    async def start(self) -> None:
        self.ledger = await self.world.open()
        for name in CURSORS:
            await self.ledger.open_cursor(name, EARLIEST)

    def cursor(self, name: str) -> ManagedCursor:
        return self.ledger.cursors[name]

    # steps

    async def append(self, count: int) -> None:
        texts = [b"%d" % number for number in range(self.next_number, self.next_number + count)]
        numbers = range(self.next_number, self.next_number + count)
        self.next_number += count
        future = self.ledger.append(batch(*texts))
        future.add_done_callback(lambda done: self.on_appended(numbers, done))
        self.pending.append(future)

    def on_appended(self, numbers: range, done: "asyncio.Future[EntryRun]") -> None:
        if done.cancelled() or done.exception() is not None:
            return
        run = done.result()
        assert payloads(run) == [b"%d" % number for number in numbers]
        if self.confirmed:
            assert numbers[0] > max(self.confirmed), "answers come in order"
            assert (run.ledger_id, run.first_entry_id) > max(self.confirmed.values()), "positions grow"
        for place, number in enumerate(numbers):
            self.confirmed[number] = Position(run.ledger_id, run.first_entry_id + place)

    async def acknowledge(self, name: str, picks: list[int]) -> None:
        known = sorted(self.confirmed.values())
        for ledger_id in sorted({position.ledger_id for position in known}):
            chosen = {known[pick % len(known)] for pick in picks} & {p for p in known if p.ledger_id == ledger_id}
            if chosen:
                self.cursor(name).acknowledge_entries(ledger_id, BitMap(position.entry_id for position in chosen))
                self.places[name].acknowledged |= chosen

    async def acknowledge_through(self, name: str, pick: int) -> None:
        known = sorted(self.confirmed.values())
        if known:
            position = known[pick % len(known)]
            self.cursor(name).acknowledge_cumulative(position)
            self.places[name].acknowledged |= {each for each in self.everything() if each <= position}

    async def acknowledge_part(self, name: str, pick: int, left: int) -> None:
        known = sorted(self.confirmed.values())
        if known:
            position = known[pick % len(known)]
            if self.cursor(name).acknowledge_batch_indexes(position, (left,), BATCH):
                self.places[name].acknowledged.add(position)

    def everything(self) -> set[Position]:
        return {Position(span.ledger_id, entry) for span in self.ledger.sequence for entry in range(span.entries)} | set(
            self.confirmed.values()
        )

    async def settle(self) -> None:
        await asyncio.gather(*self.pending, return_exceptions=True)
        self.pending.clear()

    async def flush(self, name: str) -> None:
        acknowledged = set(self.places[name].acknowledged)
        await self.cursor(name).flush()
        self.places[name].stored = acknowledged

    async def trim(self) -> None:
        await self.ledger.trim()

    async def append_with_failure(self, count: int, is_stored: bool, torn: bool) -> None:
        store = self.world.ledger_store
        await self.settle()
        await self.append(count)
        await self.settle()
        store.fail_appends, store.lose_answers, store.torn_entries = 1, is_stored, int(torn)
        for _ in range(3):
            await self.append(count)
        await self.settle()
        store.fail_appends = 0

    async def fail_delete(self) -> None:
        self.world.ledger_store.fail_deletes = 1

    async def crash(self) -> None:
        await self.world.kill()
        await self.come_back()

    async def end(self) -> None:
        acknowledged = {name: set(place.acknowledged) for name, place in self.places.items()}
        await self.ledger.close()
        for name, stored in acknowledged.items():
            self.places[name].stored = stored
        await self.come_back()

    async def come_back(self) -> None:
        for future in self.pending:
            if not future.done():
                future.cancel()
        self.pending.clear()
        self.world.start()
        self.ledger = await self.world.open()
        await self.check_log()
        for name in CURSORS:
            self.check_cursor(name)

    # what must hold

    async def check_log(self) -> None:
        found: dict[int, Position] = {}
        position = EARLIEST
        while True:
            run = await self.ledger.read(position, 4, MANY)
            if run is None:
                break
            for place, text in enumerate(payloads(run)):
                number = int(text)
                assert not found or number > max(found), "in order, each once"
                found[number] = Position(run.ledger_id, run.first_entry_id + place)
            position = Position(run.ledger_id, run.last_entry_id + 1)
        for number, stored_at in self.confirmed.items():
            if number in found:
                assert found[number] == stored_at
            else:
                for cursor in self.places.values():
                    assert stored_at in cursor.acknowledged, f"append {number} at {stored_at} is lost"
        assert len(found) == self.ledger.entry_count
        self.confirmed = found
        self.ledger.sequence.check_invariants()

    def check_cursor(self, name: str) -> None:
        cursor, place = self.cursor(name), self.places[name]
        there = set(self.confirmed.values())
        acknowledged = {position for position in there if cursor.is_acknowledged(position)}
        assert acknowledged <= place.acknowledged, "never ahead"
        assert place.stored & there <= acknowledged, "never behind a flush"
        assert cursor.backlog_entries() == len(there) - len(acknowledged)
        place.acknowledged = place.acknowledged - there | acknowledged


NAME = st.sampled_from(CURSORS)
PICK = st.integers(0, 40)
RECENT = st.integers(-5, -1)
WAIT_MS = st.sampled_from([0, 0, 1, 3, 20])
STEP = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 4)),
    st.tuples(st.just("append_with_failure"), st.integers(1, 4), st.booleans(), st.booleans()),
    st.tuples(st.just("acknowledge"), NAME, st.lists(PICK, min_size=1, max_size=6)),
    st.tuples(st.just("acknowledge"), NAME, st.lists(RECENT, min_size=1, max_size=3)),
    st.tuples(st.just("acknowledge_through"), NAME, PICK | RECENT),
    st.tuples(st.just("acknowledge_part"), NAME, PICK, st.integers(0, 7)),
    st.tuples(st.just("flush"), NAME),
    st.tuples(st.just("trim")),
    st.tuples(st.just("fail_delete")),
    st.tuples(st.just("crash")),
    st.tuples(st.just("end")),
)
STEPS = st.lists(st.tuples(STEP, WAIT_MS), min_size=5, max_size=30)
LAST = [(("settle",), 20), (("crash",), 0), (("end",), 0)]
Steps = list[tuple[tuple[object, ...], int]]


async def play(schedule: Schedule, steps: Steps) -> None:
    await schedule.start()
    await schedule.append(9)
    await schedule.settle()
    for (name, *arguments), wait_ms in [*steps, *LAST]:
        step: Callable[..., Coroutine[Any, Any, None]] = getattr(schedule, str(name))
        try:
            await step(*arguments)
        except ManagedLedgerError:
            await schedule.crash()  # it says so: to be closed and opened again
        await asyncio.sleep(wait_ms / 1000)


def simulate(scenario: Coroutine[Any, Any, None], seed: int) -> None:
    loop = SimLoop(stream(seed, "loop"))
    try:
        loop.run_until_complete(scenario)
    finally:
        loop.finish()


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 1000), st.sampled_from([0.0, 0.001]), STEPS)
def test_nothing_acknowledged_is_lost_and_no_cursor_lies(seed: int, step_s: float, steps: Steps) -> None:
    async def scenario() -> None:
        await play(Schedule(step_s), steps)

    simulate(scenario(), seed)
