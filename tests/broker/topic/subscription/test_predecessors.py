"""Before a newcomer is refused for a predecessor, the predecessor is asked whether it is there, and leaves when it is not."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import BrokerError, ServerError
from broker.topic.contract import AccessMode, KeySharedMeta, KeySharedMode, SubscriptionType
from broker.topic.publish.producer import TopicProducer
from broker.topic.subscription.consumer import TopicConsumer
from broker.topic.subscription.subscriptions import in_the_way
from tests.broker.topic.topic_world import PRODUCER, SUBSCRIBE, ConsumerEnd, ProducerEnd, TopicWorld, run, send_run, settle
from tests.cost import assert_linear

EXCLUSIVE, SHARED = SubscriptionType.EXCLUSIVE, SubscriptionType.SHARED
FAILOVER, KEY_SHARED = SubscriptionType.FAILOVER, SubscriptionType.KEY_SHARED
ELSEWHERE = "10.0.0.2:2000"


def sticky(*ranges: tuple[int, int]) -> KeySharedMeta:
    return KeySharedMeta(KeySharedMode.STICKY, ranges)


class Peer:
    """The other end of a producer or consumer: when asked it waits for `answer`; without one it is there."""

    def __init__(self, member: TopicConsumer | TopicProducer, sink: ConsumerEnd | ProducerEnd) -> None:
        self.member = member
        self.answer: asyncio.Future[bool] | None = None
        self.questions = 0
        sink.ask = self.ask

    async def ask(self) -> bool:
        self.questions += 1
        return self.answer is None or await asyncio.shield(self.answer)

    def will_be_asked(self) -> None:
        self.answer = asyncio.get_running_loop().create_future()

    def is_gone(self) -> None:
        """Acts as a connection that is gone: closes everything, then answers."""
        assert self.answer is not None
        self.member.close()
        self.answer.set_result(False)


async def consumer_peer(world: TopicWorld, **fields: Any) -> Peer:
    return Peer(*await world.consumer(**fields))


async def producer_peer(world: TopicWorld, **fields: Any) -> Peer:
    return Peer(*await world.producer(**fields))


def test_an_exclusive_consumer_that_answers_keeps_the_newcomer_out() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        old = await consumer_peer(world)
        with pytest.raises(BrokerError) as refused:
            await world.consumer(address=ELSEWHERE)
        assert (refused.value.code, old.questions) == (ServerError.CONSUMER_BUSY, 1)
        assert not old.member.is_closed

    run(scenario)


@pytest.mark.parametrize("durable", [True, False])
def test_an_exclusive_consumer_that_is_gone_makes_room_for_the_newcomer(durable: bool) -> None:
    """A reader's subscription vanishes with it, and is made anew."""

    async def scenario() -> None:
        world = TopicWorld()
        old = await consumer_peer(world, durable=durable)
        await world.publish_many(3)
        old.will_be_asked()
        arriving = asyncio.create_task(world.consumer(durable=durable, address=ELSEWHERE))
        await settle()
        assert not arriving.done()
        old.is_gone()
        _, sink = await arriving
        assert sink.entries == [0, 1, 2]
        await world.publish_many(1)
        assert sink.entries == [0, 1, 2, 3]

    run(scenario)


def test_one_of_two_consumers_that_wait_for_the_same_answer_is_accepted() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        old = await consumer_peer(world)
        old.will_be_asked()
        arriving = [asyncio.create_task(world.consumer(address=f"10.0.0.{host}:1")) for host in (2, 3)]
        await settle()
        old.is_gone()
        outcomes = await asyncio.gather(*arriving, return_exceptions=True)
        (error,) = [each for each in outcomes if isinstance(each, BaseException)]
        assert isinstance(error, BrokerError)
        assert error.code is ServerError.CONSUMER_BUSY

    run(scenario)


def test_sticky_consumers_are_asked_only_by_those_whose_ranges_overlap() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        low = await consumer_peer(world, type=KEY_SHARED, key_shared=sticky((0, 99)), address="10.0.0.3:1")
        high = await consumer_peer(world, type=KEY_SHARED, key_shared=sticky((100, 65535)), address="10.0.0.4:1")
        low.will_be_asked()
        arriving = asyncio.create_task(world.consumer(type=KEY_SHARED, key_shared=sticky((50, 99)), address=ELSEWHERE))
        await settle()
        low.is_gone()
        await arriving
        assert (low.questions, high.questions) == (1, 0)
        with pytest.raises(BrokerError) as refused:
            await world.consumer(type=KEY_SHARED, key_shared=sticky((99, 100)), address="10.0.0.5:1")
        assert (refused.value.code, high.questions) == (ServerError.CONSUMER_ASSIGN, 1)

    run(scenario)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5)), min_size=1), st.tuples(st.integers(0, 30), st.integers(0, 5)))
def test_a_range_is_in_the_way_that_shares_a_slot(own: list[tuple[int, int]], other: tuple[int, int]) -> None:
    asked, found = sticky(*((start, start + width) for start, width in own)), range(other[0], other[0] + other[1] + 1)

    async def scenario() -> None:
        there = sticky((found[0], found[-1]))
        consumer, _ = await TopicWorld().consumer(type=KEY_SHARED, key_shared=there, address=ELSEWHERE)
        request = replace(SUBSCRIBE, type=KEY_SHARED, key_shared=asked)
        shares = any({*range(start, end + 1)} & {*found} for start, end in asked.hash_ranges)
        assert in_the_way([consumer], request) == ([consumer] if shares else [])

    run(scenario)


def test_looking_for_sticky_consumers_in_the_way_costs_time_linear_in_their_ranges() -> None:
    def ranges(count: int) -> Callable[[], list[TopicConsumer]]:
        found: list[TopicConsumer] = []

        async def scenario() -> None:
            there = sticky(*((2 * each, 2 * each) for each in range(count)))
            found.append((await TopicWorld().consumer(type=KEY_SHARED, key_shared=there, address=ELSEWHERE))[0])

        run(scenario)
        asked = sticky(*((2 * each + 1, 2 * each + 1) for each in range(count)))
        request = replace(SUBSCRIBE, type=KEY_SHARED, key_shared=asked)
        return lambda: in_the_way(found, request)

    assert_linear(ranges, 100)


@pytest.mark.parametrize(
    ("there", "comes"),
    [
        ({"type": FAILOVER}, {"type": FAILOVER, "address": ELSEWHERE}),
        ({"type": SHARED}, {"type": SHARED, "address": ELSEWHERE}),
        ({"type": EXCLUSIVE}, {"type": SHARED, "address": ELSEWHERE}),
        ({"type": EXCLUSIVE}, {"type": EXCLUSIVE}),
        ({"type": KEY_SHARED}, {"type": KEY_SHARED, "address": ELSEWHERE}),
    ],
)
def test_shared_and_failover_consumers_and_those_of_one_connection_are_not_in_the_way(
    there: dict[str, Any], comes: dict[str, Any]
) -> None:
    async def scenario() -> None:
        consumer, _ = await TopicWorld().consumer(**there)
        assert in_the_way([consumer], replace(SUBSCRIBE, **comes)) == []

    run(scenario)


def test_a_name_is_free_once_its_producers_connection_turns_out_to_be_dead() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        old = await producer_peer(world, name_is_generated=False)
        old.will_be_asked()
        arriving = asyncio.create_task(world.producer(name_is_generated=False, address=ELSEWHERE))
        await settle()
        assert not arriving.done()
        old.is_gone()
        producer, sink = await arriving
        producer.publish(send_run([7]))
        await settle()
        assert sink.answered == [7]
        assert [each.request.address for each in world.topic.publishers.all] == [ELSEWHERE]

    run(scenario)


def test_a_name_whose_producer_answers_is_taken() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        old = await producer_peer(world, name_is_generated=False)
        with pytest.raises(BrokerError) as refused:
            await world.producer(name_is_generated=False, address=ELSEWHERE)
        assert (refused.value.code, old.questions) == (ServerError.PRODUCER_BUSY, 1)
        assert "is already connected to topic" in refused.value.message

    run(scenario)


def test_an_exclusive_producer_that_is_gone_leaves_the_topic_to_the_next_with_a_new_epoch() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        old = await producer_peer(world, access_mode=AccessMode.EXCLUSIVE)
        old.will_be_asked()
        request = replace(PRODUCER, name="q", access_mode=AccessMode.EXCLUSIVE, address=ELSEWHERE)
        arriving = asyncio.create_task(world.topic.add_producer(request, ProducerEnd()))
        await settle()
        old.is_gone()
        assert (await arriving).topic_epoch == 1

    run(scenario)


COMING: dict[str, Callable[[TopicWorld], Any]] = {
    "producer": lambda world: world.producer(name_is_generated=False, address=ELSEWHERE),
    "consumer": lambda world: world.consumer(address=ELSEWHERE),
}


@pytest.mark.parametrize("kind", COMING)
def test_a_topic_that_closes_while_somebody_is_asked_refuses_who_waits(kind: str) -> None:
    async def scenario() -> None:
        world = TopicWorld()
        old = await (producer_peer(world, name_is_generated=False) if kind == "producer" else consumer_peer(world))
        old.will_be_asked()
        arriving = asyncio.create_task(COMING[kind](world))
        await settle()
        await world.topic.close()
        old.is_gone()
        with pytest.raises(BrokerError) as refused:
            await arriving
        assert refused.value.code is ServerError.SERVICE_NOT_READY

    run(scenario)
