"""Acknowledgements of every form, on stored ledgers: what the cursor says then, and still says after a kill.

Individually, cumulatively, part of a batch (bit 1 = not acknowledged), a batch by its last index; of what is acknowledged
already, of ledgers that are trimmed, and of entries that do not exist, refused at no cost to the rest.
"""

import logging
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.dispatchers.settings import DispatcherSettings
from broker.policies.topic_settings import TopicSettings
from broker.topic.contract import Acknowledgement, SubscriptionType
from broker.topic.opening import PersistentTopics
from broker.topic.subscription.consumer import TopicConsumer
from tests.broker.topic.topic_world import TOPIC, World, ack_run, payload, run
from tests.managed_ledger.ledger_world import NAME, small, trimming
from tests.managed_ledger.ledger_world import World as Storage
from wire.position import Position

BATCH = 70


class StoredWorld(World):
    """One topic; ledgers have ten entries."""

    def __init__(self, *, is_trimmed: bool = False) -> None:
        self.storage = Storage(trimming() if is_trimmed else small())

    async def open(self) -> None:
        topics = PersistentTopics(self.storage.ledgers, TopicSettings(), DispatcherSettings(), self.storage.clock)
        self.topic = await topics(TOPIC, NAME, -1, create=True)
        self.log = self.topic.ledger

    async def kill(self) -> None:
        """After the marks are written, as an acknowledgement that was answered is."""
        for subscription in self.topic.subscriptions.all:
            await subscription.cursor.flush()
        await self.storage.restart()
        await self.open()

    async def publish_one_by_one(self, count: int, batch: int | None = None) -> list[Position]:
        return [(await self.publish(payload(batch=batch)))[0] for _ in range(count)]

    def left(self, positions: Sequence[Position], name: str = "s") -> list[int]:
        """Positions of these that are not wholly acknowledged."""
        subscription = self.topic.subscriptions.get(name)
        assert subscription is not None
        return [place for place, position in enumerate(positions) if not subscription.cursor.is_acknowledged(position)]

    def parts(self, position: Position) -> tuple[int, ...] | None:
        subscription = self.topic.subscriptions.get("s")
        assert subscription is not None
        return subscription.cursor.unacknowledged_batch_indexes(position)


def words(*not_acknowledged: int) -> tuple[int, ...]:
    """The ack set of a batch of 70 in which these messages are not acknowledged, without zeroes at its end, as Java's."""
    bits = sum(1 << index for index in not_acknowledged)
    return (bits & (1 << 64) - 1, bits >> 64) if bits >> 64 else (bits,)


def individual(*acks: tuple[Position, tuple[int, ...], int]) -> Acknowledgement:
    positions, ack_sets, sizes = zip(*acks, strict=True)
    return Acknowledgement(False, positions, ack_sets, sizes)


def cumulative(position: Position, ack_set: tuple[int, ...] = (), size: int = 0) -> Acknowledgement:
    return Acknowledgement(True, (position,), (ack_set,), (size,))


async def opened(*, is_trimmed: bool = False, batch: int | None = None) -> tuple[StoredWorld, TopicConsumer, list[Position]]:
    world = StoredWorld(is_trimmed=is_trimmed)
    await world.open()
    await world.topic.create_subscription("other", from_earliest=True, properties={})
    consumer, _ = await world.consumer(permits=0, type=SubscriptionType.FAILOVER)
    return world, consumer, await world.publish_one_by_one(25, batch)


def test_single_entries_over_several_ledgers_leave_holes_that_a_kill_does_not_fill() -> None:
    async def scenario() -> None:
        world, consumer, positions = await opened()
        consumer.acknowledge_run(ack_run(*positions[1::2]))
        consumer.acknowledge(individual(*((position, (), 0) for position in positions[:6])))
        wanted = list(range(6, 25, 2))
        assert world.left(positions) == wanted
        await world.kill()
        assert world.left(positions) == wanted
        assert world.topic.stats().subscriptions["s"].msg_backlog == len(wanted)
        assert world.topic.stats().subscriptions["other"].msg_backlog == 25

    run(scenario)


def test_acknowledged_entries_stay_so_when_acknowledged_again_in_any_form() -> None:
    async def scenario() -> None:
        world, consumer, positions = await opened(batch=BATCH)
        consumer.acknowledge_run(ack_run(*positions[:5], positions[7]))
        again = [
            individual((positions[2], (), 0), (positions[7], (), 0)),
            individual((positions[2], words(3), BATCH), (positions[7], words(3, 66), BATCH)),
            cumulative(positions[3]),
            cumulative(positions[3], words(1), BATCH),
        ]
        for acknowledgement in again:
            consumer.acknowledge(acknowledgement)
        consumer.acknowledge_run(ack_run(positions[7], positions[7], positions[0]))
        assert world.left(positions[:9]) == [5, 6, 8]
        assert world.parts(positions[7]) is world.parts(positions[2]) is None
        await world.kill()
        assert world.left(positions[:9]) == [5, 6, 8]

    run(scenario)


def test_a_batch_is_acknowledged_message_by_message_in_any_order_and_its_last_one_ends_it() -> None:
    async def scenario() -> None:
        world, consumer, positions = await opened(batch=BATCH)
        every = set(range(BATCH))
        consumer.acknowledge(individual((positions[0], words(*every - {69}), BATCH)))
        consumer.acknowledge(individual((positions[0], words(*every - {0, 1, 63, 64}), BATCH)))
        assert world.parts(positions[0]) == words(*every - {0, 1, 63, 64, 69})
        await world.kill()
        consumer, _ = await world.consumer(permits=0, type=SubscriptionType.FAILOVER)
        assert world.parts(positions[0]) == words(*every - {0, 1, 63, 64, 69})
        consumer.acknowledge(individual((positions[0], words(0, 5), BATCH)))
        assert world.left(positions[:2]) == [0, 1]
        consumer.acknowledge(individual((positions[0], words(0), BATCH)))
        assert world.left(positions[:2]) == [1]
        consumer.acknowledge(individual((positions[1], (0, 0), BATCH)))
        assert world.left(positions[:3]) == [2], "an ack set of zeroes is the whole batch"

    run(scenario)


def test_a_cumulative_acknowledgement_into_a_batch_takes_all_before_it_and_that_part() -> None:
    async def scenario() -> None:
        world, consumer, positions = await opened(batch=BATCH)
        rest = tuple(range(10, BATCH))
        consumer.acknowledge(cumulative(positions[12], words(*rest), BATCH))
        assert world.left(positions) == list(range(12, 25))
        await world.kill()
        assert world.left(positions) == list(range(12, 25))
        assert world.parts(positions[12]) == words(*rest)
        consumer, _ = await world.consumer(permits=0, type=SubscriptionType.FAILOVER)
        consumer.acknowledge(cumulative(positions[12], (0, 0), BATCH))
        assert world.left(positions) == list(range(13, 25))

    run(scenario)


def test_acknowledgements_of_trimmed_ledgers_do_nothing() -> None:
    async def scenario() -> None:
        world, consumer, positions = await opened(is_trimmed=True, batch=BATCH)
        await world.topic.delete_subscription("other", force=True)
        consumer.acknowledge(cumulative(positions[13]))
        await world.topic.trim()
        assert world.log.first_position() == positions[10]
        consumer.acknowledge_run(ack_run(positions[4], positions[15]))
        consumer.acknowledge(individual((positions[4], words(1), BATCH), (positions[5], (), 0), (positions[16], (), 0)))
        consumer.acknowledge(cumulative(positions[9], words(2), BATCH))
        consumer.acknowledge(cumulative(positions[2]))
        assert world.left(positions) == [14, *range(17, 25)]
        await world.kill()
        assert world.left(positions) == [14, *range(17, 25)]
        assert world.topic.stats().subscriptions["s"].msg_backlog == 9

    run(scenario)


def test_acknowledging_a_missing_entry_is_refused_and_logged_and_other_entries_count(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        world, consumer, positions = await opened(batch=BATCH)
        last = positions[-1]
        beyond = [Position(last.ledger_id, last.entry_id + 1), Position(last.ledger_id + 5, 0)]
        huge = [Position(last.ledger_id, 1 << 40), Position((1 << 64) - 1, 3), Position(last.ledger_id, (1 << 64) - 1)]
        consumer.acknowledge(individual(*((position, (), 0) for position in [*beyond, positions[3]])))
        consumer.acknowledge(individual(*((position, words(1), BATCH) for position in [*beyond, positions[4]])))
        consumer.acknowledge(individual(*((position, (), 0) for position in [*huge, positions[5]])))
        for position in [*beyond, *huge]:
            consumer.acknowledge(cumulative(position))
            consumer.acknowledge(cumulative(position, words(1), BATCH))
            consumer.acknowledge_run(ack_run(position))
        assert world.left(positions) == [0, 1, 2, 4, *range(6, 25)]
        assert world.parts(positions[4]) == words(1)
        refused = [each.getMessage() for each in caplog.records if "acknowledgement refused" in each.getMessage()]
        assert len(refused) >= 15
        following = (await world.publish(payload()))[0]
        assert not world.topic.subscriptions.all[0].cursor.is_acknowledged(following)
        assert world.left([following]) == [0], "a refusal is not remembered for what comes later"

    with caplog.at_level(logging.WARNING):
        run(scenario)


class Twin:
    """Unacknowledged messages of every entry's batch. Each form: the command, and its effect."""

    def __init__(self, positions: Sequence[Position]) -> None:
        self.positions = positions
        self.left = [set(range(BATCH)) for _ in positions]

    def one(self, consumer: TopicConsumer, place: int, kept: set[int]) -> None:
        consumer.acknowledge(individual((self.positions[place], (), 0)))
        self.left[place] = set()

    def run(self, consumer: TopicConsumer, place: int, kept: set[int]) -> None:
        consumer.acknowledge_run(ack_run(*self.positions[place : place + 3]))
        self.left[place : place + 3] = [set() for _ in self.left[place : place + 3]]

    def part(self, consumer: TopicConsumer, place: int, kept: set[int]) -> None:
        consumer.acknowledge(individual((self.positions[place], words(*kept), BATCH)))
        self.left[place] &= kept

    def batch(self, consumer: TopicConsumer, place: int, kept: set[int]) -> None:
        consumer.acknowledge(individual((self.positions[place], (0, 0), BATCH)))
        self.left[place] = set()

    def up_to(self, consumer: TopicConsumer, place: int, kept: set[int]) -> None:
        consumer.acknowledge(cumulative(self.positions[place]))
        self.left[: place + 1] = [set() for _ in range(place + 1)]

    def up_to_part(self, consumer: TopicConsumer, place: int, kept: set[int]) -> None:
        rest = set(range(max(kept), BATCH))
        consumer.acknowledge(cumulative(self.positions[place], words(*rest), BATCH))
        self.left[:place] = [set() for _ in range(place)]
        self.left[place] &= rest

    def beyond(self, consumer: TopicConsumer, place: int, kept: set[int]) -> None:
        consumer.acknowledge(cumulative(Position(self.positions[-1].ledger_id, 99 + place)))


FORMS = st.tuples(
    st.sampled_from([Twin.one, Twin.run, Twin.part, Twin.batch, Twin.up_to, Twin.up_to_part, Twin.beyond]),
    st.integers(0, 24),
    st.sets(st.integers(0, BATCH - 1), min_size=1, max_size=BATCH - 1),
    st.booleans(),
)


@given(st.lists(FORMS, max_size=20))
@settings(max_examples=60, deadline=None)
def test_any_mixture_of_forms_is_what_a_set_of_messages_says(
    forms: list[tuple[Callable[[Twin, TopicConsumer, int, set[int]], None], int, set[int], bool]],
) -> None:
    async def scenario() -> None:
        world, consumer, positions = await opened(batch=BATCH)
        twin = Twin(positions)
        for form, place, kept, is_killed in forms:
            form(twin, consumer, place, kept)
            if is_killed:
                await world.kill()
                consumer, _ = await world.consumer(permits=0, type=SubscriptionType.FAILOVER)
        assert world.left(positions) == [place for place, left in enumerate(twin.left) if left]
        for position, left in zip(positions, twin.left, strict=True):
            if left:
                assert world.parts(position) in ((words(*left),) if len(left) < BATCH else (None, words(*left)))

    run(scenario)
