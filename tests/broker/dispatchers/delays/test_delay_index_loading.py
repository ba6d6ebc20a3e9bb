"""Dispatchers that take in what was stored of delayed messages: schedules with restarts at any moment, and single cases.

Parts are stored at any time, some of them are lost, some are there twice; after a restart they come back piece by piece while
everything else goes on. The judge is that of `test_delayed_dispatch`: none early, none out twice, none lost.
"""

from array import array
from random import Random

import pytest
from pyroaring import BitMap

from broker.dispatchers.contract import (
    ConsumerId,
    DelaysChanged,
    EntriesAvailable,
    IndexFound,
    IndexLoaded,
    IndexLoading,
    PermitsAdded,
)
from broker.dispatchers.delays.delay_buckets import START
from broker.dispatchers.settings import DispatcherSettings
from tests.broker.dispatchers.delays.test_delayed_dispatch import KINDS, START_MS, Wait, delayed, step
from wire.kernels.delayed_index import by_ledger
from wire.position import Position

SOON_MS, FAR_MS = 5_000, 3_600_000


class Restarted(Wait):
    """With parts that were stored. They outlive the machine."""

    def __init__(self, make: object, *, is_strict: bool = True) -> None:
        super().__init__(make, is_strict=is_strict)
        self.parts: list[list[tuple[int, int, int]]] = []
        self._make = make
        self._unread: list[tuple[int, int, int]] = []
        self.is_loading = False
        self._end: Position | None = None

    def store(self, start: Position = START) -> None:
        """Stores the entries that wait from there on, as far as the dispatcher has read."""
        reached = self.machine.state().read_position
        if reached is None or start >= reached:
            return
        part = self.machine.delays.part(start, reached)
        self.parts.append([fact for items in part.sift() for fact in zip(*part.facts(items), strict=True)])

    def restart(self) -> None:
        self.machine = self._make(DispatcherSettings(dispatcher_read_failure_backoff_initial_time_in_ms=0))  # type: ignore[operator]
        self.out.clear()
        self.read = self.wake_ms = None
        self._unread = [fact for part in self.parts for fact in part]
        self._end = None
        self.handle(DelaysChanged(True, self.tick_ms, self.is_strict))
        if self._unread:
            self.is_loading = True
            self.handle(IndexLoading())

    def load_some(self, count: int) -> None:
        facts, self._unread = self._unread[:count], self._unread[count:]
        arrays = array("q"), array("Q"), array("I")
        for fact in facts:
            for values, value in zip(arrays, fact, strict=True):
                values.append(value)
        found, acknowledged = {}, {}
        for ledger_id, (entry_ids, times) in by_ledger(*arrays).items():
            found[ledger_id] = BitMap(entry_ids), entry_ids, times
            acknowledged[ledger_id] = BitMap(each.entry_id for each in self.log.acked if each.ledger_id == ledger_id)
        for _, ledger_id, entry_id in facts:
            after = Position(ledger_id, entry_id + 1)
            self._end = after if self._end is None else max(after, self._end)
        self.handle(IndexFound(found, acknowledged, self.wall_ms))

    def load(self) -> None:
        """Loads the rest of the index."""
        if not self.is_loading:
            return
        while self._unread:
            self.load_some(50)
        self.end_loading()

    def end_loading(self) -> None:
        self.is_loading = False
        end = self._end
        if end is not None and end <= self.log.mark_delete():
            end = None
        left: dict[int, BitMap] = {}
        for entry in self.log.entries:
            if end is not None and entry.position < end and entry.position not in self.log.acked:
                left.setdefault(entry.position.ledger_id, BitMap()).add(entry.position.entry_id)
        self.handle(IndexLoaded(list(left.items()), end))


def restart_or_load(wait: Restarted, rng: Random, consumers: list[ConsumerId]) -> None:
    chance = rng.random()
    if wait.is_loading:
        if chance < 0.6:
            wait.load_some(rng.randint(1, 6))
        elif chance < 0.7:
            wait.load()
    elif chance < 0.15:
        wait.store()
    elif chance < 0.2:
        wait.store(rng.choice(wait.log.entries).position if wait.log.entries else START)
    elif chance < 0.3:
        if wait.parts and rng.random() < 0.3:
            wait.parts.remove(rng.choice(wait.parts))
        consumers.clear()
        wait.restart()


@pytest.mark.parametrize("make", KINDS)
def test_schedules_with_restarts_lose_nothing_repeat_nothing_and_are_never_early(make: object) -> None:
    for seed in range(200):
        rng = Random(seed)
        wait = Restarted(make, is_strict=rng.random() < 0.7)
        hashes = [rng.getrandbits(31) for _ in range(4)]
        consumers: list[ConsumerId] = []
        for _ in range(rng.randint(10, 50)):
            step(wait, rng, consumers, hashes)
            restart_or_load(wait, rng, consumers)
        wait.load()
        for consumer in consumers:
            wait.leave(consumer)
        wait.join(1000, 100_000)
        wait.answer_reads()
        wait.wait(5_000_000)
        unacked = {entry.position for entry in wait.log.unacked()}
        assert unacked == wait.out.keys(), f"seed {seed}"
        assert delayed(wait) == 0, f"seed {seed}"


def stored_and_restarted(make: object, count: int, *, soon: int = 0) -> tuple[Restarted, list[Position]]:
    """Stores `count` messages, the first `soon` of them due soon, and restarts; no consumer has come back yet."""
    wait = Restarted(make)
    wait.join(1)
    positions = [wait.publish(START_MS + (SOON_MS if number < soon else FAR_MS)) for number in range(count)]
    wait.handle(EntriesAvailable())
    wait.answer_reads(100)
    wait.store()
    wait.restart()
    wait.reads = 0
    return wait, positions


@pytest.mark.parametrize("make", KINDS)
def test_stored_delayed_entries_are_not_read_from_the_log(make: object) -> None:
    wait, positions = stored_and_restarted(make, 300, soon=2)
    wait.join(1)
    wait.answer_reads()
    assert wait.reads == 0, "nothing is read before all is loaded"
    wait.load()
    last = wait.publish()
    wait.handle(EntriesAvailable())
    wait.answer_reads()
    assert list(wait.out) == [last]
    assert wait.reads <= 2
    assert delayed(wait) == 300
    wait.wait(SOON_MS + 1000)
    assert sorted(wait.out) == [*positions[:2], last]
    assert wait.reads <= 4


def test_shared_gets_what_is_late_before_all_is_loaded_and_no_second_time() -> None:
    """The same part is there twice: killed when two had been put together, and neither had been deleted."""
    wait, positions = stored_and_restarted(KINDS[0], 60, soon=20)
    wait.parts *= 2
    wait.wall_ms += SOON_MS + 1000
    wait.restart()
    wait.join(1)
    wait.load_some(30)
    wait.wait(10)
    assert sorted(wait.out) == positions[:20]
    wait.acknowledge(positions[0])
    wait.load()
    wait.wait(1000)
    assert sorted(wait.out) == positions[1:20]
    assert len(wait.deliveries) == 20


def test_key_shared_gets_nothing_before_all_is_loaded() -> None:
    """The older one of two messages of a key may not have been stored."""
    wait, positions = stored_and_restarted(KINDS[1], 20, soon=20)
    wait.parts[0] = [fact for fact in wait.parts[0] if fact[2] != positions[0].entry_id]
    wait.wall_ms += SOON_MS + 1000
    wait.restart()
    wait.join(1)
    wait.load_some(10)
    wait.wait(10)
    assert not wait.out
    wait.load()
    wait.wait(10)
    assert [position for position, _ in wait.deliveries] == positions


@pytest.mark.parametrize("make", KINDS)
def test_unacknowledged_entries_delivered_before_a_store_come_again_after_a_restart(make: object) -> None:
    wait = Restarted(make)
    wait.join(1)
    given = [wait.publish() for _ in range(3)]
    for _ in range(50):
        wait.publish(START_MS + FAR_MS)
    wait.handle(EntriesAvailable())
    wait.answer_reads(100)
    wait.acknowledge(given[1])
    wait.store()
    wait.restart()
    wait.load()
    wait.join(1)
    wait.answer_reads()
    assert sorted(wait.out) == [given[0], given[2]]
    assert delayed(wait) == 50


@pytest.mark.parametrize("make", KINDS)
def test_markers_among_what_is_looked_at_again_are_acknowledged(make: object) -> None:
    wait = Restarted(make)
    wait.join(1)
    wait.log.publish(1, 5, is_marker=True)
    marker = wait.log.entries[-1].position
    wait.times[marker] = -1
    wait.publish(START_MS + FAR_MS)
    wait.handle(EntriesAvailable())
    wait.answer_reads()
    wait.store()
    wait.restart()
    wait.join(1)
    wait.load()
    wait.markers.clear()
    wait.answer_reads()
    assert wait.markers == [marker]


@pytest.mark.parametrize("make", KINDS)
def test_all_entries_come_when_delays_are_switched_off_during_loading(make: object) -> None:
    wait, positions = stored_and_restarted(make, 20)
    wait.load_some(10)
    wait.times = dict.fromkeys(wait.times, -1)
    wait.handle(DelaysChanged(False, 1000, True))
    wait.join(1)
    wait.load()
    wait.answer_reads()
    assert sorted(wait.out) == positions


@pytest.mark.parametrize("make", KINDS)
def test_entries_acknowledged_during_loading_are_not_delivered(make: object) -> None:
    wait, positions = stored_and_restarted(make, 20)
    consumer = wait.join(1)
    wait.load_some(10)
    wait.skip_to(positions[4])
    wait.acknowledge(positions[15])
    wait.load()
    assert delayed(wait) == 14
    wait.handle(PermitsAdded(consumer, 100))
    wait.wait(FAR_MS + 1000)
    assert sorted(wait.out) == [*positions[5:15], *positions[16:]]
