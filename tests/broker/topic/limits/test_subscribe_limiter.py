"""Rates of subscribing, the largest message, and the expiry of unused subscriptions."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.ledgers import Quorums
from broker.errors import BrokerError, ServerError
from broker.policies.policies import PersistencePolicy, SubscribeRate, TopicPolicies
from broker.topic.acknowledging import REPLICATED_SUBSCRIPTION_PROPERTY
from broker.topic.limits.subscribe_limiter import SubscribeLimiter
from tests.broker.topic.topic_world import TopicWorld, run


@given(st.lists(st.tuples(st.floats(0, 4), st.integers(0, 3)), max_size=60))
def test_no_consumer_subscribes_more_often_than_its_rate_in_any_period(steps: list[tuple[float, int]]) -> None:
    limiter, rate, now = SubscribeLimiter(), SubscribeRate(2, 10), 0.0
    taken: dict[int, list[float]] = {}
    for pause, consumer in steps:
        now += pause
        if limiter.takes(rate, "host", f"c{consumer}", consumer, now):
            taken.setdefault(consumer, []).append(now)
    for times in taken.values():
        assert all(times[place + 4] - times[place] >= 10 for place in range(len(times) - 4))


def test_without_a_rate_everybody_may() -> None:
    limiter = SubscribeLimiter()
    assert all(limiter.takes(SubscribeRate(), "h", "c", 1, 0.0) for _ in range(100))
    assert limiter._counts == {}


def test_a_consumer_that_subscribes_too_often_is_refused_until_the_period_is_over_and_others_are_not() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        world.topic.upkeep.apply(TopicPolicies(subscribe_rate=SubscribeRate(2, 30)))
        for _ in range(2):
            (await world.consumer())[0].close()
        with pytest.raises(BrokerError, match="subscribe rate limit") as refusal:
            await world.consumer()
        assert refusal.value.code is ServerError.NOT_ALLOWED
        (await world.consumer(consumer_name="another"))[0].close()
        await asyncio.sleep(30)
        await world.consumer()

    run(scenario)


def test_a_producer_knows_how_large_a_message_may_be_also_when_that_changes() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        world.topic.upkeep.apply(TopicPolicies(max_message_size=10))
        producer, _ = await world.producer()
        assert producer.message_size_max == 10
        world.topic.upkeep.apply(TopicPolicies(max_message_size=20))
        assert producer.message_size_max == 20

    run(scenario)


def test_a_log_is_told_how_to_keep_what_comes_and_to_go_back_to_the_settings() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        told = []
        for policies in (TopicPolicies(persistence=PersistencePolicy(3, 2, 1, 0.5)), TopicPolicies()):
            world.topic.upkeep.apply(policies)
            told.append(world.ledger.persistence)
        assert told == [(Quorums(3, 2, 1), 0.5), (Quorums(), None)]

    run(scenario)


def test_a_subscription_that_nobody_uses_expires_and_one_that_somebody_uses_does_not() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        world.topic.upkeep.apply(TopicPolicies(subscription_expiration_minutes=5))
        used, _ = await world.consumer(subscription="used")
        for name in ("idle", "left", "__compaction", "replicated"):
            await world.topic.create_subscription(name, from_earliest=True, properties={})
        [place] = await world.publish_many(1)
        found = world.topic.subscriptions.get("replicated")
        assert found is not None
        found.cursor.acknowledge_cumulative(place, properties={REPLICATED_SUBSCRIPTION_PROPERTY: 1})
        await asyncio.sleep(4 * 60)
        (await world.consumer(subscription="left"))[0].close()
        world.clock.time_ms += 86_400_000  # the wall clock is set
        await world.topic.upkeep.expire_subscriptions()
        assert len(world.topic.subscriptions.all) == 5
        await asyncio.sleep(2 * 60)
        await world.topic.upkeep.expire_subscriptions()
        assert [each.name for each in world.topic.subscriptions.all] == ["used", "left", "__compaction", "replicated"]
        used.close()
        await asyncio.sleep(6 * 60)
        await world.topic.upkeep.expire_subscriptions()
        assert [each.name for each in world.topic.subscriptions.all] == ["__compaction", "replicated"]
        world.topic.upkeep.apply(TopicPolicies())
        await world.topic.upkeep.expire_subscriptions()

    run(scenario)
