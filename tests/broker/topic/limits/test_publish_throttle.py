"""Publish rates in virtual time: what is too much is stored, and its connection is not read until time has paid for it."""

import asyncio
from dataclasses import replace

from broker.policies.policies import EXEMPT, NOTHING_SAID, PublishRate, TopicPolicies
from broker.policies.topic_settings import TopicSettings
from broker.topic.publish.producer import TopicProducer
from tests.broker.topic.topic_world import PRODUCER, ProducerEnd, TopicWorld, run, send_run, settle

TEN = TopicPolicies(publish_rate=PublishRate(messages=10))


class HeldEnd(ProducerEnd):
    """One whose connection is read as it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.may_read = asyncio.Event()
        self.may_read.set()

    def hold_reading(self) -> None:
        assert self.may_read.is_set(), "held twice"
        self.may_read.clear()

    def resume_reading(self) -> None:
        assert not self.may_read.is_set(), "resumed twice"
        self.may_read.set()


async def a_producer(world: TopicWorld, name: str = "p") -> tuple[TopicProducer, HeldEnd]:
    end = HeldEnd()
    return await world.topic.add_producer(replace(PRODUCER, name=name), end), end


async def publish_as_it_may(producer: TopicProducer, end: HeldEnd, runs: int, each: int) -> float:
    """Publishes as a connection does, and returns the time that it took."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    for place in range(runs):
        await end.may_read.wait()
        producer.publish(send_run(range(place * each, (place + 1) * each)))
    await end.may_read.wait()
    return loop.time() - began


def is_held(end: HeldEnd) -> bool:
    return not end.may_read.is_set()


def test_a_producer_over_its_topic_s_rate_is_held_until_time_has_paid_and_loses_nothing() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        world.topic.upkeep.apply(TEN)
        producer, end = await a_producer(world)
        seconds = await publish_as_it_may(producer, end, runs=20, each=5)
        await settle()
        assert end.answered == list(range(100))
        assert 9.0 <= seconds <= 10.5  # a hundred at ten a second, ten of them at once
        assert world.topic.publishers.rate_limited_times >= 9

    run(scenario)


def test_the_topic_s_own_rate_holds_before_its_namespace_s_and_none_before_both_on_a_system_topic() -> None:
    async def scenario() -> None:
        world = TopicWorld(settings=TopicSettings(max_publish_rate_per_topic_in_messages=1))
        world.topic.upkeep.apply(TEN, TopicPolicies(publish_rate=PublishRate(messages=1000)))
        producer, end = await a_producer(world)
        producer.publish(send_run(range(50)))
        assert not is_held(end)
        world.topic.upkeep.apply(EXEMPT)
        producer.publish(send_run(range(5000)))
        assert not is_held(end)

    run(scenario)


def test_bytes_are_limited_as_messages_are() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        world.topic.upkeep.apply(TopicPolicies(publish_rate=PublishRate(bytes=1)))
        producer, end = await a_producer(world)
        producer.publish(send_run([0]))
        assert is_held(end)

    run(scenario)


def test_a_rate_that_is_lifted_lets_everybody_go_on_at_once() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        world.topic.upkeep.apply(TEN)
        producer, end = await a_producer(world)
        producer.publish(send_run(range(1000)))
        assert is_held(end)
        world.topic.upkeep.apply(NOTHING_SAID)
        assert not is_held(end)
        producer.publish(send_run(range(1000)))
        assert not is_held(end)

    run(scenario)


def test_a_rate_that_stays_as_it_was_stays_in_debt_when_other_policies_change() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        world.topic.upkeep.apply(TEN)
        producer, end = await a_producer(world)
        producer.publish(send_run(range(1000)))
        world.topic.upkeep.apply(TopicPolicies(publish_rate=PublishRate(messages=10), max_producers=3))
        assert is_held(end)

    run(scenario)


def test_a_held_producer_that_ends_gives_its_connection_back() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        world.topic.upkeep.apply(TEN)
        held = [await a_producer(world, f"p{place}") for place in range(3)]
        for producer, _ in held:
            producer.publish(send_run(range(1000)))
        held[0][0].close()
        assert [is_held(end) for _, end in held] == [False, True, True]
        await world.topic.close()
        assert [is_held(end) for _, end in held] == [False, False, False]
        await asyncio.sleep(1000)

    run(scenario)


def test_a_broker_s_rate_is_shared_by_its_topics_and_follows_its_settings() -> None:
    async def scenario() -> None:
        settings = TopicSettings(broker_publisher_throttling_max_message_rate=10)
        world = TopicWorld(settings=settings)
        producer, end = await a_producer(world)
        assert 9.0 <= await publish_as_it_may(producer, end, runs=20, each=5) <= 10.5
        object.__setattr__(settings, "broker_publisher_throttling_max_message_rate", 0)
        world.topic.upkeep.apply(NOTHING_SAID)
        producer.publish(send_run(range(1000)))
        assert not is_held(end)

    run(scenario)


def test_without_rates_nothing_is_counted_against_any() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        assert world.topic.publishers._throttles == ()

    run(scenario)
