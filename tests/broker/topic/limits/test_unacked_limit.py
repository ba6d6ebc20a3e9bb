"""A broker's limit on unacknowledged messages: counted as it is, reached and left as Apache's BrokerService does."""

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from broker.dispatchers.settings import DispatcherSettings
from broker.policies.topic_settings import TopicSettings
from broker.topic.contract import SubscriptionType
from broker.topic.limits.broker_limits import BrokerLimits
from broker.topic.limits.unacked_limit import BrokerUnacked
from broker.topic.surroundings import TopicSurroundings
from broker.topic.topic import PersistentTopic
from tests.broker.topic.topic_world import TOPIC, SetClock, TopicWorld, ack_run, run, settle

SETTINGS = TopicSettings(max_unacked_messages_per_broker=100, max_unacked_messages_per_subscription_on_broker_blocked=0.16)


class Sharer:
    """A subscription that remembers what it is held to."""

    def __init__(self) -> None:
        self.held_to = 0

    def hold_to(self, messages_max: int) -> None:
        assert (self.held_to == 0) != (messages_max == 0), "told nothing new"
        self.held_to = messages_max


class Model(RuleBasedStateMachine):
    """Any counts of any subscriptions, beside the plain statement of what must hold."""

    def __init__(self) -> None:
        super().__init__()
        self.unacked = BrokerUnacked(100, 0.16)
        self.sharers = [Sharer() for _ in range(6)]
        self.counts = [0] * 6
        self.is_reached = False

    @rule(who=st.integers(0, 5), messages=st.integers(0, 120))
    def counted(self, who: int, messages: int) -> None:
        self.counts[who] = messages
        self.unacked.count(self.sharers[who], messages)

    @rule(who=st.integers(0, 5))
    def gone(self, who: int) -> None:
        self.counts[who] = 0
        self.unacked.forget(self.sharers[who])
        self.sharers[who] = Sharer()

    @invariant()
    def the_sum_is_right_and_the_large_ones_are_held_while_it_is_too_large(self) -> None:
        self.unacked.check_invariants()
        total = sum(self.counts)
        assert self.unacked.total == total
        self.is_reached = total >= 100 or (self.is_reached and total >= 50)
        assert self.unacked.is_reached == self.is_reached
        for sharer, messages in zip(self.sharers, self.counts, strict=True):
            if not self.is_reached:
                assert sharer.held_to == 0
            elif messages > 16:
                assert sharer.held_to == 16


TestModel = Model.TestCase


class Broker:
    """Topics under one limit."""

    def __init__(self, settings: TopicSettings = SETTINGS) -> None:
        self.limits = BrokerLimits(settings)
        self.worlds = [TopicWorld(), TopicWorld()]
        for place, world in enumerate(self.worlds):
            around = TopicSurroundings(settings, DispatcherSettings(), SetClock(), self.limits)
            world.topic = PersistentTopic(f"{TOPIC}{place}", world.ledger, -1, around)

    @property
    def total(self) -> int:
        assert self.limits.unacked is not None
        return self.limits.unacked.total


@pytest.mark.parametrize("kind", [SubscriptionType.SHARED, SubscriptionType.KEY_SHARED])
def test_large_subscriptions_wait_at_the_limit_and_small_ones_go_on(kind: SubscriptionType) -> None:
    async def scenario() -> None:
        broker = Broker()
        large, small = broker.worlds
        _, small_end = await small.consumer(type=kind)
        await small.publish_many(5)
        consumer, end = await large.consumer(type=kind)
        stored = await large.publish_many(95)
        assert (len(end.got), broker.total) == (95, 100)
        await large.publish_many(10)
        await small.publish_many(5)
        assert (len(end.got), len(small_end.got)) == (95, 10), "only the large one waits"
        assert large.topic.stats().subscriptions["s"].blocked_subscription_on_unacked_msgs
        assert not small.topic.stats().subscriptions["s"].blocked_subscription_on_unacked_msgs
        consumer.acknowledge_run(ack_run(*stored[:50]))
        await settle()
        assert (len(end.got), broker.total) == (95, 55), "above half of the limit, and of its share"
        consumer.acknowledge_run(ack_run(*stored[50:56]))
        await settle()
        assert (len(end.got), broker.total) == (105, 59), "half of the limit is left"

    run(scenario)


def test_a_subscription_goes_on_when_it_is_down_to_half_of_its_share_though_the_broker_is_not() -> None:
    async def scenario() -> None:
        broker = Broker()
        first, second = broker.worlds
        consumer, end = await first.consumer(type=SubscriptionType.SHARED)
        stored = await first.publish_many(20)
        await second.consumer(type=SubscriptionType.SHARED)
        await second.publish_many(80)
        await first.publish_many(100)
        assert len(end.got) == 20
        consumer.acknowledge_run(ack_run(*stored[:12]))
        await settle()
        assert len(end.got) == 28, "up to its share of 16 again, and no further"

    run(scenario)


def test_a_consumer_that_leaves_takes_its_count_along_and_exclusive_ones_have_none() -> None:
    async def scenario() -> None:
        broker = Broker()
        world, other = broker.worlds
        consumer, _ = await world.consumer(type=SubscriptionType.SHARED)
        await world.publish_many(60)
        assert broker.total == 60
        await other.consumer(type=SubscriptionType.EXCLUSIVE)
        await other.publish_many(70)
        assert broker.total == 60
        consumer.close()
        await settle()
        assert broker.total == 0
        await world.consumer(type=SubscriptionType.SHARED)
        assert broker.total == 60
        await world.topic.close()
        assert broker.total == 0

    run(scenario)


@pytest.mark.parametrize(
    "fields",
    [{"max_unacked_messages_per_broker": 0}, {"max_unacked_messages_per_subscription_on_broker_blocked": 0.0}],
)
def test_zero_of_either_setting_is_no_limit(fields: dict[str, Any]) -> None:
    async def scenario() -> None:
        settings = TopicSettings(**({"max_unacked_messages_per_broker": 100} | fields))
        broker = Broker(settings)
        assert broker.limits.unacked is None
        _, end = await broker.worlds[0].consumer(type=SubscriptionType.SHARED)
        await broker.worlds[0].publish_many(200)
        assert len(end.got) == 200

    run(scenario)


def test_a_share_is_between_0_and_1() -> None:
    with pytest.raises(ValueError, match=r"maxUnackedMessagesPerSubscriptionOnBrokerBlocked: expected a share, from 0 to 1"):
        TopicSettings(max_unacked_messages_per_subscription_on_broker_blocked=1.5)
