"""Dispatch rates in virtual time: every type of subscription gets all of it, in its order, and no faster than it may."""

import asyncio

import pytest

from broker.policies.policies import NOTHING_SAID, DispatchRate, PublishRate, TopicPolicies
from broker.policies.topic_settings import TopicSettings
from broker.topic.contract import SubscriptionType
from tests.broker.topic.topic_world import ConsumerEnd, TopicWorld, run

TEN = DispatchRate(messages=10)


async def seconds_until(end: ConsumerEnd, count: int, seconds_max: float = 100.0) -> float:
    """Steps of virtual time until that many were delivered."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    for _ in range(int(seconds_max / 0.05)):
        if len(end.got) >= count:
            break
        await asyncio.sleep(0.05)
    assert len(end.got) == count
    return loop.time() - began


@pytest.mark.parametrize("kind", SubscriptionType)
@pytest.mark.parametrize(
    "policies", [TopicPolicies(dispatch_rate=TEN), TopicPolicies(subscription_dispatch_rate=TEN)], ids=["topic", "subscription"]
)
def test_no_faster_than_the_rate_and_all_of_it_in_order(kind: SubscriptionType, policies: TopicPolicies) -> None:
    async def scenario() -> None:
        world = TopicWorld()
        world.topic.upkeep.apply(policies)
        positions = await world.publish_many(100)
        _, end = await world.consumer(type=kind)
        assert 8.9 <= await seconds_until(end, 100) <= 10.5
        assert [each.position for each in end.got] == positions
        subscription = world.topic.subscriptions.all[0]
        level = "topic" if policies.dispatch_rate else "subscription"
        assert subscription.throttled_times.by_messages[level] >= 8

    run(scenario)


def test_bytes_are_limited_as_messages_are() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        for _ in range(40):
            await world.publish_many(1)
        world.topic.upkeep.apply(TopicPolicies(dispatch_rate=DispatchRate(bytes=50)))
        _, end = await world.consumer(permits=1)
        for count in range(1, 6):
            await seconds_until(end, count)
            world.topic.subscriptions.all[0].consumers[0].flow(1)
        assert world.topic.subscriptions.all[0].throttled_times.by_bytes["topic"] > 0

    run(scenario)


@pytest.mark.parametrize(
    ("policies", "seconds"),
    [(TopicPolicies(dispatch_rate=TEN), 9.0), (TopicPolicies(subscription_dispatch_rate=TEN), 4.0)],
    ids=["topic", "subscription"],
)
def test_a_topic_s_rate_is_shared_by_its_subscriptions_and_each_of_them_has_its_own(
    policies: TopicPolicies, seconds: float
) -> None:
    async def scenario() -> None:
        world = TopicWorld()
        world.topic.upkeep.apply(policies)
        await world.publish_many(50)
        ends = [(await world.consumer(subscription=f"s{place}"))[1] for place in range(2)]
        assert seconds - 0.1 <= sum([await seconds_until(end, 50) for end in ends]) <= seconds + 1.5

    run(scenario)


def test_a_rate_that_is_lifted_delivers_what_waited_for_it_at_once() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        world.topic.upkeep.apply(TopicPolicies(dispatch_rate=DispatchRate(1, period_seconds=1000)))
        await world.publish_many(50)
        _, end = await world.consumer()
        assert await seconds_until(end, 1) < 1
        world.topic.upkeep.apply(NOTHING_SAID)
        assert await seconds_until(end, 50) < 1

    run(scenario)


def test_a_subscription_s_own_rate_holds_before_that_of_all() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        own = TopicPolicies(subscription_dispatch_rate=DispatchRate(1), subscription_rates={"fast": DispatchRate(1000)})
        world.topic.upkeep.apply(NOTHING_SAID, own)
        await world.publish_many(50)
        _, end = await world.consumer(subscription="fast")
        assert await seconds_until(end, 50) < 1

    run(scenario)


def test_a_relative_rate_is_so_much_more_than_is_published() -> None:
    async def scenario() -> None:
        world = TopicWorld(settings=TopicSettings(stats_update_frequency_in_secs=1))
        relative = DispatchRate(10, is_relative_to_publish_rate=True)
        world.topic.upkeep.apply(TopicPolicies(dispatch_rate=relative, publish_rate=PublishRate()))
        limiter = world.topic.subscriptions._dispatch_limit.limiter
        assert limiter is not None
        assert limiter.messages is not None
        world.topic.publishers.counters.add(500, 0, 0)
        await asyncio.sleep(1.5)
        assert limiter.messages._capacity == pytest.approx(510, abs=2)
        await asyncio.sleep(1)
        assert limiter.messages._capacity == 10

    run(scenario)


def test_the_broker_s_rate_holds_for_all_topics_and_without_rates_there_is_no_throttle() -> None:
    async def scenario() -> None:
        world = TopicWorld(settings=TopicSettings(dispatch_throttling_rate_in_msg=10))
        await world.publish_many(100)
        _, end = await world.consumer()
        assert 8.9 <= await seconds_until(end, 100) <= 10.5
        assert TopicWorld().topic.subscriptions._shared.broker is None

    run(scenario)


def test_a_consumer_that_leaves_while_a_read_waits_does_not_hold_up_the_next() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        world.topic.upkeep.apply(TopicPolicies(dispatch_rate=TEN))
        positions = await world.publish_many(60)
        consumer, first = await world.consumer()
        await seconds_until(first, 10, 0.1)
        consumer.close()
        _, second = await world.consumer()
        assert await seconds_until(second, 60) <= 7
        assert [each.position for each in second.got] == positions
        await world.topic.close()

    run(scenario)


@pytest.mark.parametrize("kind", SubscriptionType)
def test_a_read_that_waited_for_the_rate_does_not_end_the_one_that_took_its_place(kind: SubscriptionType) -> None:
    """There is room again some time before its timer fires; what began in between was cancelled, and nothing came any more."""

    async def scenario() -> None:
        world = TopicWorld()
        world.ledger.read_seconds = lambda: 0.02
        positions = await world.publish_many(60)
        world.topic.upkeep.apply(TopicPolicies(dispatch_rate=DispatchRate(messages=1000)))
        limiter, loop = world.topic.subscriptions._dispatch_limit.limiter, asyncio.get_running_loop()
        assert limiter is not None
        limiter.take(1000, 0, loop.time())
        consumer, nobody = await world.consumer(type=kind)
        await asyncio.sleep(0.002)
        assert not limiter.wait_seconds(loop.time())
        assert not nobody.got
        consumer.close()
        _, end = await world.consumer(type=kind)
        await seconds_until(end, 60, 5)
        assert [each.position for each in end.got] == positions

    run(scenario)
