"""Deliveries and acknowledgements of the kernel lead to the same state as the dispatcher's own, by the same schedules."""

from array import array
from collections import deque
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from bookkeeper.write.parts import NOT_TAKEN, Part
from broker.dispatchers.contract import (
    ConsumerAdded,
    ConsumerId,
    ConsumerRemoved,
    EntriesAcknowledged,
    EntriesAvailable,
    Event,
    RedeliveryRequested,
    TimerFired,
)
from broker.dispatchers.machine import Machine
from broker.topic.statistics.rates import DeliveryCounters
from managed_ledger.cursor.acknowledgements import Acknowledgements
from managed_ledger.ledgers.sequence import LedgerSequence
from tests.broker.dispatchers.test_newest_runs import LEDGER, Side, change_of_consumers, make
from wire.generated.pulsar_api_pb2 import MessageMetadata
from wire.kernels.delivery_rows import (
    ConsumerHandleRow,
    ConsumerRow,
    CursorRow,
    DriverRow,
    SubscriptionRow,
    SubscriptionsRow,
)
from wire.kernels.newest import hand_out
from wire.kernels.plain_acks import acknowledge_run
from wire.position import Position
from wire.run import FLAG_MARKER, EntryBatch, EntryRun, RunMetadata, batch_of

KINDS = ("shared", "failover", "exclusive", "key_shared")


def entries_of(counts: list[int], flags: int) -> EntryBatch:
    """Stored entries of so many messages each."""
    payloads = []
    for count in counts:
        said = MessageMetadata(producer_name="p", sequence_id=1, publish_time=1)
        if count > 1:
            said.num_messages_in_batch = count
        if flags & FLAG_MARKER:
            said.marker_type = 1
        metadata = said.SerializeToString()
        payloads.append(len(metadata).to_bytes(4) + metadata + b"body")
    return batch_of(payloads)


class KernelSide(Side):
    """The dispatcher between a topic and a cursor, as the kernel sees them."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine, takes=True)
        self.ledgers = LedgerSequence()
        self.ledgers.open(LEDGER)
        self.cursor = CursorRow()
        self.cursor.acknowledgements = Acknowledgements(self.ledgers, Position(LEDGER, -1))
        self.cursor._planned = 0
        self.driver = driver = DriverRow()
        driver._events, driver.targets, driver.dispatcher = deque(), {}, machine
        driver._cursor = SimpleNamespace(_pending=SimpleNamespace(_open={}), _cursor=self.cursor)
        driver._is_closed = driver._is_handling = False
        driver.compacted = driver.on_unacked = driver._held = driver._reading = driver._throttle = None
        self.subscription = subscription = SubscriptionRow()
        subscription._consumers, subscription._driver, subscription.cursor = driver.targets, driver, self.cursor
        subscription.is_fenced = False
        self.topic = SubscriptionsRow()
        self.topic._by_name = {"s": subscription}
        self.topic._transactions = SimpleNamespace(buffer=SimpleNamespace(_open={}))
        self.acknowledged_plainly = 0

    def publish(self, counts: list[int], flags: int) -> None:
        first = sum(len(metadata.message_counts) for _, metadata in self.runs)
        run = EntryRun(LEDGER, first, b"", array("I", bytes(4 * len(counts) + 4)))
        self.runs.append((run, RunMetadata(array("I", counts), array("B", [flags] * len(counts)), flags, sum(counts))))
        part = Part(entries_of(counts, flags), 0, len(counts), NOT_TAKEN, None, 0.0)
        part.ledger_id, part.first_entry_id, part.last_entry_id = LEDGER, first, first + len(counts) - 1
        self.ledgers.confirm(part.count, part.payload_bytes)
        deliveries: dict[Any, list[Any]] = {}
        taken = hand_out(self.topic, part, 5, deliveries)
        sent = [each for theirs in deliveries.values() for each in theirs]
        assert len(sent) == (1 if taken == 1 and self.driver.targets else 0)
        if not sent:
            self.feed(EntriesAvailable())
        for _, sent_part, epoch, consumer in sent:
            assert sent_part is part
            self.taken += 1
            self.given.append((consumer.key, first, len(counts), epoch))

    def feed(self, event: Event) -> None:
        if isinstance(event, EntriesAcknowledged) and event.consumer is not None:
            self._acknowledge(event)
            return
        super().feed(event)
        if isinstance(event, ConsumerAdded) and self.machine.consumer_state(event.consumer) is not None:
            self.driver.targets[event.consumer] = self._target(event.consumer)
        elif isinstance(event, ConsumerRemoved):
            self.driver.targets.pop(event.consumer, None)
        elif isinstance(event, EntriesAcknowledged):  # markers
            self.cursor.acknowledgements.acknowledge_entries(LEDGER, event.entry_ids)

    def _acknowledge(self, event: EntriesAcknowledged) -> None:
        consumer, (entry_id,) = self.driver.targets.get(event.consumer), event.entry_ids
        if acknowledge_run(consumer, array("Q", (LEDGER,)), array("Q", (entry_id,)), 7.0, 7):
            self.acknowledged_plainly += 1
            assert self.cursor.acknowledgements.mark_delete == Position(LEDGER, entry_id)
        else:
            self.cursor.acknowledgements.acknowledge_entries(LEDGER, event.entry_ids)
            super().feed(event)
        self.cursor.acknowledgements.check_invariants()

    def _target(self, key: ConsumerId) -> ConsumerRow:
        handle, consumer = ConsumerHandleRow(), ConsumerRow()
        handle._link, handle._partition, handle.consumer, handle.consumer_id, handle._is_plain = "link", -1, consumer, key, True
        consumer.key, consumer.counters, consumer._sink, consumer._subscription = (
            key,
            DeliveryCounters(),
            handle,
            self.subscription,
        )
        consumer._was_writable, consumer.is_closed = True, False
        return consumer


def step(rng: Random, sides: tuple[Side, KernelSide], consumers: list[int]) -> None:
    """The same for both."""
    choice = rng.random()
    if choice < 0.45:
        counts = [rng.choice((1, 1, 1, 3)) for _ in range(rng.choice((1, 1, 1, 2, 4)))]
        flags = rng.choice((0, 0, 0, 0, 0, FLAG_MARKER))
        for side in sides:
            side.publish(counts, flags)
        return
    consumer = ConsumerId(rng.choice(consumers)) if consumers else ConsumerId(0)
    if choice < 0.65:
        events: list[Event] = [change_of_consumers(rng, consumers, consumer)]
    elif choice < 0.97:
        events = acknowledgements(rng, sides, consumer)
    else:
        events = [rng.choice((TimerFired(), RedeliveryRequested(consumer, None, None)))]
    for event in events:
        for side in sides:
            side.feed(event)


def acknowledgements(rng: Random, sides: tuple[Side, KernelSide], consumer: ConsumerId) -> list[Event]:
    """Acknowledgements of single entries, in their order or not."""
    given = [first for who, first, _, _ in sides[0].singly() if who == consumer and first not in sides[0].acknowledged]
    chosen = sorted(set(given))[: rng.randint(0, 3)] if rng.random() < 0.8 else rng.sample(given, min(len(given), 2))
    for side in sides:
        side.acknowledged |= BitMap(chosen)
    return [EntriesAcknowledged(LEDGER, BitMap((entry_id,)), consumer) for entry_id in dict.fromkeys(chosen)]


def run_schedule(kind: str, rng: Random, steps: int) -> KernelSide:
    plain, kernel = Side(make(kind), takes=True), KernelSide(make(kind))
    consumers: list[int] = []
    for _ in range(steps):
        step(rng, (plain, kernel), consumers)
        for side in (plain, kernel):
            side.machine.check_invariants()
        assert kernel.singly() == plain.singly()
        assert kernel.machine.state() == plain.machine.state()
        for each in consumers:
            key = ConsumerId(each)
            assert kernel.machine.consumer_state(key) == plain.machine.consumer_state(key)
    return kernel


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(rng=st.randoms(use_true_random=False), steps=st.integers(0, 60))
def test_the_kernel_hands_out_and_acknowledges_what_the_dispatcher_would(kind: str, rng: Random, steps: int) -> None:
    run_schedule(kind, rng, steps)


@pytest.mark.parametrize("kind", ["shared", "failover", "exclusive"])
def test_the_kernel_takes_what_is_plain_in_many_schedules(kind: str) -> None:
    worlds = [run_schedule(kind, Random(seed), 60) for seed in range(200)]
    assert sum(world.taken for world in worlds) > 60
    assert sum(world.acknowledged_plainly for world in worlds) > 20


def test_the_kernel_gives_nothing_of_a_key_shared_subscription_away() -> None:
    assert sum(run_schedule("key_shared", Random(seed), 40).taken for seed in range(20)) == 0
