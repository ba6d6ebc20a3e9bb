"""A run that is handed out as it is confirmed leads where reading it leads: `take_newest` against events, by schedules."""

from array import array
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from broker.dispatchers.contract import (
    AcknowledgeMarkers,
    ConsumerAdded,
    ConsumerId,
    ConsumerRemoved,
    Deliver,
    EntriesAcknowledged,
    EntriesAvailable,
    EntriesRead,
    Event,
    KeySharedPolicy,
    NothingToRead,
    PermitsAdded,
    Read,
    ReadFailed,
    RedeliveryRequested,
    TimerFired,
    WritabilityChanged,
)
from broker.dispatchers.key_shared import KeySharedDispatcher
from broker.dispatchers.machine import Machine
from broker.dispatchers.settings import DispatcherSettings
from broker.dispatchers.shared import SharedDispatcher
from broker.dispatchers.single_active import SingleActiveDispatcher
from wire.position import Position
from wire.run import FLAG_CHUNK, FLAG_MARKER, EntryRun, RunMetadata

LEDGER = 7
Given = tuple[ConsumerId, int, int, int | None]
"""Consumer, first entry, number of entries, consumer epoch."""


class Side:
    """One dispatcher on a log of its own, with a driver in miniature; `takes` runs as they come, or reads them."""

    def __init__(self, machine: Machine, *, takes: bool) -> None:
        self.machine, self._takes = machine, takes
        self.runs: list[tuple[EntryRun, RunMetadata]] = []
        self.acknowledged = BitMap()
        self.given: list[Given] = []
        self.taken = 0
        self.fails_next = False

    def publish(self, counts: list[int], flags: int) -> None:
        first = sum(len(metadata.message_counts) for _, metadata in self.runs)
        run = EntryRun(LEDGER, first, b"", array("I", bytes(4 * len(counts) + 4)))
        metadata = RunMetadata(array("I", counts), array("B", [flags] * len(counts)), flags, sum(counts))
        self.runs.append((run, metadata))
        consumer = self.machine.take_newest(run, metadata) if self._takes else None
        if consumer is None:
            self.feed(EntriesAvailable())
        else:
            self.taken += 1
            self.given.append((consumer, first, len(counts), self.machine.consumer_epoch))

    def feed(self, event: Event) -> None:
        events = [event]
        while events:
            for effect in self.machine.handle(events.pop(0), 0):
                if isinstance(effect, Read):
                    events.append(self._answer(effect))
                elif isinstance(effect, Deliver):
                    ids = [effect.run.first_entry_id + index for index in effect.indexes]
                    self.given += [(effect.consumer, each, 1, effect.consumer_epoch) for each in ids]
                elif isinstance(effect, AcknowledgeMarkers):
                    self.acknowledged |= effect.entry_ids
                    events.append(EntriesAcknowledged(LEDGER, effect.entry_ids))

    def _answer(self, read: Read) -> Event:
        if self.fails_next:
            self.fails_next = False
            return ReadFailed(read.read_id)
        place = 0 if read.position is None else read.position.entry_id
        while place in self.acknowledged and read.position is None:
            place += 1
        for run, metadata in self.runs:
            if place <= run.last_entry_id:
                part = run.entries(place, run.last_entry_id - place + 1)
                counts = metadata.message_counts[place - run.first_entry_id :]
                flags = metadata.flags[place - run.first_entry_id :]
                told = RunMetadata(counts, flags, metadata.any_flags, sum(counts))
                is_last = run is self.runs[-1][0]
                hashes = array("I", bytes(4 * part.count))
                return EntriesRead(
                    read.read_id, part, told, Position(LEDGER, -1), self.acknowledged, {}, hashes, is_last=is_last
                )
        return NothingToRead(read.read_id)

    def singly(self) -> list[Given]:
        return [(who, first + at, 1, epoch) for who, first, count, epoch in self.given for at in range(count)]


def make(kind: str) -> Machine:
    known = DispatcherSettings(max_unacked_messages_per_consumer=12, max_unacked_messages_per_subscription=20)
    if kind == "shared":
        return SharedDispatcher(known)
    if kind == "key_shared":
        return KeySharedDispatcher(known)
    return SingleActiveDispatcher(known, is_failover=kind == "failover")


def step(rng: Random, sides: tuple[Side, Side], consumers: list[int]) -> None:
    """The same for both."""
    choice = rng.random()
    if choice < 0.45:
        counts = [rng.choice((1, 1, 1, 3)) for _ in range(rng.choice((1, 1, 1, 2, 4)))]
        flags = rng.choice((0, 0, 0, 0, 0, FLAG_MARKER))
        for side in sides:
            side.publish(counts, flags)
        return
    consumer = ConsumerId(rng.choice(consumers)) if consumers else ConsumerId(0)
    if choice < 0.75:
        event = change_of_consumers(rng, consumers, consumer)
    elif choice < 0.95:
        event = acknowledged(rng, sides, consumer)
    else:
        event = rng.choice((TimerFired(), RedeliveryRequested(consumer, None, None)))
    for side in sides:
        side.feed(event)


def change_of_consumers(rng: Random, consumers: list[int], consumer: ConsumerId) -> Event:
    choice = rng.random()
    if choice < 0.5:
        return PermitsAdded(consumer, rng.randint(1, 10))
    if choice < 0.6:
        return WritabilityChanged(consumer, rng.random() < 0.7)
    if choice < 0.75 and consumers:
        consumers.remove(consumer)
        return ConsumerRemoved(consumer)
    joined = ConsumerId(max(consumers, default=0) + 1)
    consumers.append(joined)
    return ConsumerAdded(joined, f"c{joined}", rng.choice((0, 0, 1)), rng.choice((None, 3)), True, KeySharedPolicy())


def acknowledged(rng: Random, sides: tuple[Side, Side], consumer: ConsumerId) -> Event:
    ids = BitMap({first for _, first, _, _ in sides[0].singly() if rng.random() < 0.5})
    for side in sides:
        side.acknowledged |= ids
    return EntriesAcknowledged(LEDGER, ids, consumer)


def run_schedule(kind: str, rng: Random, steps: int) -> Side:
    reading, taking = Side(make(kind), takes=False), Side(make(kind), takes=True)
    consumers: list[int] = []
    for _ in range(steps):
        step(rng, (reading, taking), consumers)
        for side in (reading, taking):
            side.machine.check_invariants()
        assert taking.singly() == reading.singly()
        assert taking.machine.state() == reading.machine.state()
        for consumer in consumers:
            key = ConsumerId(consumer)
            assert taking.machine.consumer_state(key) == reading.machine.consumer_state(key)
    return taking


KINDS = ("shared", "failover", "exclusive", "key_shared")


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(rng=st.randoms(use_true_random=False), steps=st.integers(0, 40))
def test_taking_the_newest_run_is_reading_it(kind: str, rng: Random, steps: int) -> None:
    run_schedule(kind, rng, steps)


@pytest.mark.parametrize("kind", ["shared", "failover", "exclusive"])
def test_newest_runs_are_taken_in_many_schedules(kind: str) -> None:
    assert sum(run_schedule(kind, Random(seed), 40).taken for seed in range(300)) > 150


def waiting(kind: str) -> Side:
    """One consumer with permits, at the end of the log."""
    side = Side(make(kind), takes=True)
    side.feed(ConsumerAdded(ConsumerId(1), "one", 0, None, True, KeySharedPolicy()))
    side.feed(PermitsAdded(ConsumerId(1), 10))
    side.publish([1], 0)
    return side


@pytest.mark.parametrize("kind", ["shared", "failover"])
@pytest.mark.parametrize("flags", [FLAG_MARKER, FLAG_CHUNK])
def test_entries_that_are_looked_at_singly_are_read(kind: str, flags: int) -> None:
    side = waiting(kind)
    side.publish([1], 0)
    assert side.taken == 1
    side.publish([1], flags)
    assert side.taken == 1


@pytest.mark.parametrize("kind", ["shared", "failover"])
def test_nothing_is_taken_without_permits(kind: str) -> None:
    side = waiting(kind)
    side.publish([9], 0)
    side.publish([1], 0)
    assert side.taken == 1
    assert [first for _, first, _, _ in side.singly()] == [0, 1]


@pytest.mark.parametrize("kind", ["shared", "failover"])
def test_nothing_is_taken_while_a_read_that_failed_waits(kind: str) -> None:
    side = waiting(kind)
    side.fails_next = True
    side.feed(EntriesAvailable())
    side.publish([1], 0)
    assert side.taken == 0
