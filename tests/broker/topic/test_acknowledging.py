"""Acknowledgements: in bulk, cumulative, parts of batches; what cannot be is refused and harms nothing else."""

import logging
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.dispatchers.contract import BatchIndexesAcknowledged, Event
from broker.errors import BrokerError, ServerError
from broker.policies.topic_settings import TopicSettings
from broker.topic.acknowledging import Acknowledging, by_ledger, impossible
from broker.topic.contract import Acknowledgement, SubscriptionType
from tests.broker.topic.memory_ledger import MemoryCursor, MemoryLedger
from tests.broker.topic.topic_world import TopicWorld, ack_run, payload, run, settle
from wire.kernels.sends import MESSAGES_PER_ENTRY_MAX
from wire.position import Position
from wire.run import batch_of

SHARED = SubscriptionType.SHARED


def individual(*positions: Position) -> Acknowledgement:
    return Acknowledgement(False, positions, ((),) * len(positions), (0,) * len(positions))


def part(position: Position, *words: int, size: int, cumulative: bool = False) -> Acknowledgement:
    return Acknowledgement(cumulative, (position,), (words,), (size,))


def cumulative(position: Position) -> Acknowledgement:
    return Acknowledgement(True, (position,), ((),), (0,))


def backlog(world: TopicWorld) -> int:
    return world.topic.stats().subscriptions["s"].msg_backlog


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20))))
def test_grouping_by_ledger_keeps_every_pair_and_gives_each_ledger_once(pairs: list[tuple[int, int]]) -> None:
    grouped = list(by_ledger(array("Q", [p[0] for p in pairs]), array("Q", [p[1] for p in pairs])))
    assert [ledger for ledger, _ in grouped] == sorted({p[0] for p in pairs})
    assert sorted((ledger, entry) for ledger, entries in grouped for entry in entries) == sorted(pairs)


def test_a_run_of_acknowledgements_over_two_ledgers_takes_effect_in_both() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        consumer, _ = await world.consumer(type=SHARED)
        first = await world.publish_many(3)
        world.ledger.roll_over()
        second = await world.publish_many(3)
        consumer.acknowledge_run(ack_run(second[0], first[1], second[2], first[0]))
        assert backlog(world) == 2
        consumer.close()
        _, again = await world.consumer(type=SHARED)
        assert again.positions == [first[2], second[1]]

    run(scenario)


def test_positions_that_do_not_exist_are_refused_with_a_log_line_and_the_others_count(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        world = TopicWorld()
        consumer, _ = await world.consumer(type=SHARED)
        await world.publish_many(3)
        with caplog.at_level(logging.WARNING):
            consumer.acknowledge_run(ack_run((3, 0), (3, 7), (3, 1 << 40), (3, (1 << 64) - 1), (1 << 63, 0), (99, 0)))
        assert backlog(world) == 2
        assert caplog.text.count("acknowledgement refused") == 1, "one line for a command, however much of it cannot be"
        assert "(and 3 more)" in caplog.text
        consumer.acknowledge(individual(Position(-1, -1), Position(3, 1)))
        assert backlog(world) == 1

    run(scenario)


def test_acknowledging_what_another_consumer_has_is_fine() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        first, got = await world.consumer(type=SHARED)
        await world.publish_many(2)
        second, _ = await world.consumer(type=SHARED)
        assert got.entries == [0, 1]
        second.acknowledge_run(ack_run((3, 0), (3, 1)))
        assert first.stats().unacked_messages == 0
        assert backlog(world) == 0

    run(scenario)


def test_unacked_counts_are_in_messages_of_batches() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        consumer, _ = await world.consumer(type=SHARED)
        (first, _) = await world.publish(payload(batch=10), payload(batch=5))
        assert consumer.stats().unacked_messages == 15
        assert consumer.stats().available_permits == 985
        consumer.acknowledge(part(first, 0b1111000000, size=10))
        assert consumer.stats().unacked_messages == 9
        consumer.acknowledge(part(first, 0b0011111111, size=10))
        assert consumer.stats().unacked_messages == 7, "together only two messages of it are left"
        assert backlog(world) == 2

    run(scenario)


def test_the_last_part_of_a_batch_acknowledges_the_entry() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        consumer, _ = await world.consumer(type=SHARED)
        (position,) = await world.publish(payload(batch=2))
        consumer.acknowledge(part(position, 0b10, size=2))
        assert backlog(world) == 1
        consumer.acknowledge(part(position, 0b01, size=2))
        assert backlog(world) == 0
        assert consumer.stats().unacked_messages == 0

    run(scenario)


def test_an_empty_ack_set_acknowledges_the_whole_batch() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        consumer, _ = await world.consumer(type=SHARED)
        (position,) = await world.publish(payload(batch=2))
        consumer.acknowledge(part(position, 0, size=2))
        assert backlog(world) == 0

    run(scenario)


def test_a_partly_acknowledged_batch_is_delivered_with_its_ack_set_and_costs_what_is_left() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        consumer, _ = await world.consumer(type=SHARED)
        positions = await world.publish(payload(batch=4), payload(batch=4))
        consumer.acknowledge(part(positions[1], 0b0110, size=4))
        consumer.close()
        again, sink = await world.consumer(type=SHARED, permits=100)
        assert [delivery.ack_set for delivery in sink.got] == [None, (0b0110,)]
        assert again.stats().available_permits == 94
        assert again.stats().unacked_messages == 6

    run(scenario)


def test_without_batch_index_level_parts_of_batches_are_not_acknowledged() -> None:
    async def scenario() -> None:
        world = TopicWorld(settings=TopicSettings(acknowledgment_at_batch_index_level_enabled=False))
        consumer, _ = await world.consumer()
        positions = await world.publish(payload(), payload(batch=2))
        consumer.acknowledge(part(positions[1], 0b10, size=2))
        assert backlog(world) == 2
        consumer.acknowledge(part(positions[1], 0b10, size=2, cumulative=True))
        assert backlog(world) == 1, "up to the entry before"

    run(scenario)


def test_cumulative_acknowledgement_takes_all_before_it_and_part_of_a_batch() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        consumer, _ = await world.consumer()
        positions = await world.publish(payload(), payload(), payload(batch=3), payload())
        consumer.acknowledge(cumulative(positions[0]))
        assert backlog(world) == 3
        consumer.acknowledge(part(positions[2], 0b100, size=3, cumulative=True))
        assert backlog(world) == 2
        consumer.close()
        _, sink = await world.consumer()
        assert [(d.position, d.ack_set) for d in sink.got] == [(positions[2], (0b100,)), (positions[3], None)]

    run(scenario)


def test_a_future_cumulative_acknowledgement_is_refused() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        consumer, _ = await world.consumer()
        await world.publish_many(2)
        consumer.acknowledge(cumulative(Position(3, 9)))
        assert backlog(world) == 2

    run(scenario)


def test_a_demoted_failover_consumer_that_has_acknowledged_all_makes_way_at_once() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        consumer, _ = await world.consumer(type=SubscriptionType.FAILOVER, consumer_name="b")
        positions = await world.publish_many(2)
        _, sink = await world.consumer(type=SubscriptionType.FAILOVER, consumer_name="a")
        assert ("active", True) not in sink.heard, "the old one may still be at work"
        consumer.acknowledge(cumulative(positions[1]))
        assert ("active", True) in sink.heard

    run(scenario)


@pytest.mark.parametrize("subscription_type", [SHARED, SubscriptionType.KEY_SHARED])
def test_cumulative_acknowledgement_is_not_for_shared_types(subscription_type: SubscriptionType) -> None:
    async def scenario() -> None:
        world = TopicWorld()
        consumer, _ = await world.consumer(type=subscription_type)
        positions = await world.publish_many(2)
        with pytest.raises(BrokerError) as refused:
            consumer.acknowledge(cumulative(positions[0]))
        assert refused.value.code is ServerError.NOT_ALLOWED
        assert backlog(world) == 2

    run(scenario)


@pytest.mark.parametrize("subscription_type", list(SubscriptionType))
def test_markers_are_never_delivered_and_leave_no_backlog(subscription_type: SubscriptionType) -> None:
    async def scenario() -> None:
        world = TopicWorld()
        consumer, sink = await world.consumer(type=subscription_type)
        positions = await world.publish(payload(), payload(marker=10), payload(marker=21), payload())
        assert sink.positions == [positions[0], positions[3]]
        consumer.acknowledge_run(ack_run(positions[0], positions[3]))
        assert backlog(world) == 0

    run(scenario)


def test_a_consumer_at_its_limit_of_unacked_messages_gets_more_after_acknowledging() -> None:
    from broker.dispatchers.settings import DispatcherSettings

    async def scenario() -> None:
        world = TopicWorld(dispatching=DispatcherSettings(max_unacked_messages_per_consumer=4))
        consumer, sink = await world.consumer(type=SHARED)
        for _ in range(10):
            await world.publish_many(1)
        assert sink.entries == [0, 1, 2, 3]
        assert consumer.stats().is_blocked_on_unacked
        consumer.acknowledge_run(ack_run(*sink.positions))
        await settle()
        assert sink.entries[:8] == [0, 1, 2, 3, 4, 5, 6, 7]

    run(scenario)


def test_acknowledgements_are_counted_in_messages() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        consumer, sink = await world.consumer(type=SHARED)
        await world.publish(*[payload(batch=5) for _ in range(4)])
        consumer.acknowledge_run(ack_run(*sink.positions[:2]))
        assert consumer.counters.acknowledged == 10
        exclusive, got = await world.consumer(subscription="x")
        exclusive.acknowledge(cumulative(got.positions[-1]))
        assert exclusive.counters.acknowledged == 20

    run(scenario)


@pytest.mark.parametrize(
    ("entry_id", "words", "size"), [(0, 1, (1 << 31) - 1), (0, 16385, 0), (-5, 1, 5), (1 << 40, 1, 5), ((1 << 63) - 1, 1, 5)]
)
@pytest.mark.parametrize("is_cumulative", [False, True])
def test_a_part_of_a_batch_that_there_cannot_be_is_refused_and_takes_no_room(
    caplog: pytest.LogCaptureFixture, entry_id: int, words: int, size: int, is_cumulative: bool
) -> None:
    """A size of 2^31 - 1 was kept as so many bits: 256 MB for one small frame."""

    async def scenario() -> None:
        world = TopicWorld()
        consumer, _ = await world.consumer(type=SubscriptionType.EXCLUSIVE)
        (position,) = await world.publish(payload(batch=5))
        asked = position._replace(entry_id=entry_id or position.entry_id)
        with caplog.at_level(logging.WARNING):
            consumer.acknowledge(part(asked, *(-1,) * (words - 1), 1, size=size, cumulative=is_cumulative))
        assert "acknowledgement refused" in caplog.text
        assert backlog(world) == 1
        assert world.ledger.cursors["s"].unacknowledged_batch_indexes(position) is None

    run(scenario)


class Door:
    """The acknowledging of one subscription by itself: ten entries in ledger 3, and what its dispatcher is told."""

    def __init__(self) -> None:
        self.ledger, self.told = MemoryLedger(), list[Event]()
        self.cursor = MemoryCursor(self.ledger, "s", True, {})

    async def fill(self) -> Acknowledging:
        for _ in range(10):
            await self.ledger.append(batch_of([payload(batch=70)]))
        return Acknowledging(self.ledger, self.cursor, "t / s", self.told.append, lambda: None, batch_indexes=True)


IMPOSSIBLE = 1 << 40
"""An entry id that no ledger has."""


@pytest.mark.parametrize(
    "given",
    [
        individual(Position(3, IMPOSSIBLE)),
        part(Position(3, 99), 1, size=70),
        part(Position(3, 1), 1, size=MESSAGES_PER_ENTRY_MAX + 1),
        part(Position(3, 1), 1, size=MESSAGES_PER_ENTRY_MAX + 1, cumulative=True),
        cumulative(Position(3, 99)),
    ],
)
def test_a_refused_acknowledgement_counts_no_messages(given: Acknowledgement) -> None:
    async def scenario() -> None:
        door = Door()
        acknowledging = await door.fill()
        assert acknowledging.command(None, given) == 0
        assert door.told == []

    run(scenario)


def test_a_repeated_acknowledgement_counts_no_messages() -> None:
    async def scenario() -> None:
        acknowledging = await Door().fill()
        assert [acknowledging.command(None, cumulative(Position(3, 4))) for _ in range(2)] == [5, 0]

    run(scenario)


def test_one_id_that_is_the_largest_there_can_be_costs_the_others_nothing() -> None:
    async def scenario() -> None:
        acknowledging = await Door().fill()
        assert acknowledging.command(None, individual(Position(3, 0), Position(3, (1 << 32) - 1))) == 1

    run(scenario)


def test_an_ack_set_of_which_one_word_leaves_something_acknowledges_a_part() -> None:
    async def scenario() -> None:
        door = Door()
        assert (await door.fill()).command(None, part(Position(3, 0), 5, 0, size=70)) == 0
        assert door.told == [BatchIndexesAcknowledged(Position(3, 0), 68)]

    run(scenario)


def test_bits_beyond_a_batch_of_one_message_are_ignored() -> None:
    async def scenario() -> None:
        assert (await Door().fill()).command(None, part(Position(3, 0), 0b10, size=1)) == 1

    run(scenario)


def test_the_first_ledger_and_the_largest_batch_are_possible() -> None:
    assert impossible(Position(0, 0), (1,), 1) is None
    assert impossible(Position(1, 1), (1,) * (MESSAGES_PER_ENTRY_MAX // 64), MESSAGES_PER_ENTRY_MAX) is None
    assert impossible(Position(1, 1), (1,) * (MESSAGES_PER_ENTRY_MAX // 64 + 1), 0) is not None
