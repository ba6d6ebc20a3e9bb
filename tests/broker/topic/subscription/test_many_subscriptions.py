"""Work for each subscription of a topic is done in slices: other tasks of the loop have their turn."""

import asyncio
import gc
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.dispatchers.settings import DispatcherSettings
from broker.policies.policies import DispatchRate, TopicPolicies
from broker.policies.topic_settings import TopicSettings
from broker.topic.contract import SubscriptionType
from broker.topic.limits.broker_limits import BrokerLimits
from broker.topic.non_persistent.opening import NonPersistentTopics
from broker.topic.non_persistent.topic import NonPersistentTopic
from broker.topic.subscription.consumer import TopicConsumer
from broker.topic.subscription.subscriptions import RELEASED_AT_ONCE
from broker.topic.topic import PersistentTopic
from ports.ends import ENDS
from ports.loop.slices import SLICE
from tests.broker.topic.topic_world import SUBSCRIBE, ConsumerEnd, SetClock, TopicWorld, run, settle
from tests.cost import Counter

COUNT = 8 * SLICE


async def a_world(count: int = COUNT) -> TopicWorld:
    world = TopicWorld()
    for number in range(count):
        await world.topic.subscriptions.create(f"s{number}", from_earliest=True)
    return world


async def a_passing_topic(count: int = COUNT) -> NonPersistentTopic:
    settings = TopicSettings()
    topics = NonPersistentTopics(settings, DispatcherSettings(), SetClock(), BrokerLimits(settings))
    topic = await topics("non-persistent://public/default/x", "public/default/non-persistent/x", -1, create=True)
    for number in range(count):
        await topic.subscribe(replace(SUBSCRIBE, subscription=f"s{number}"), ConsumerEnd())
    await settle()
    return topic


WORKS: dict[str, Callable[[TopicWorld], None]] = {
    "rates are sampled": lambda world: world.topic._sample(),
    "policies change": lambda world: world.topic.subscriptions.policies_changed(),
}


@pytest.mark.parametrize("what", WORKS)
def test_a_turn_of_the_loop_has_some_of_the_subscriptions(what: str) -> None:
    async def scenario() -> None:
        world = await a_world()
        with Counter() as counter:
            WORKS[what](world)
            await settle()
        assert counter.longest < counter.steps / 4, f"of {counter.steps} in all"

    run(scenario)


def test_a_turn_of_the_loop_samples_some_subscriptions_of_a_non_persistent_topic() -> None:
    async def scenario() -> None:
        topic = await a_passing_topic()
        with Counter() as counter:
            topic._sample()
            await settle()
        assert counter.longest < counter.steps / 4, f"of {counter.steps} in all"

    run(scenario)


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_turn_of_the_loop_tells_the_stats_of_some_subscriptions(is_stored: bool) -> None:
    async def scenario() -> None:
        topic = (await a_world()).topic if is_stored else await a_passing_topic()
        with Counter() as counter:
            await topic.stats_in_slices()
        assert counter.longest < counter.steps / 4, f"of {counter.steps} in all"

    run(scenario)


def test_a_turn_of_the_loop_tells_the_stats_of_some_producers() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        for number in range(COUNT):
            await world.producer(name=f"p{number}")
        with Counter() as counter:
            assert len((await world.topic.stats_in_slices()).publishers) == COUNT
        assert counter.longest < counter.steps / 4, f"of {counter.steps} in all"

    run(scenario)


def test_a_turn_of_the_loop_loads_some_of_the_subscriptions() -> None:
    async def scenario() -> None:
        before = await a_world()
        with Counter() as counter:
            world = TopicWorld(before.ledger)
            await world.topic.subscriptions.load()
        assert [each.name for each in world.topic.subscriptions.all] == [each.name for each in before.topic.subscriptions.all]
        assert counter.longest < counter.steps / 3, f"of {counter.steps} in all"

    run(scenario)


def test_each_subscription_of_a_topic_that_ends_counts_as_an_end() -> None:
    async def scenario() -> None:
        world = await a_world()
        before = ENDS.count
        await world.topic.close()
        assert ENDS.count - before >= COUNT

    run(scenario)


def test_subscriptions_of_a_topic_that_has_ended_leave_memory_without_the_collector() -> None:
    async def scenario() -> None:
        world, before = await a_world(), ENDS.still_there
        gc.disable()
        try:
            await world.topic.close()
            await settle()
            world.ledger.cursors.clear()
            assert ENDS.still_there - before <= 1, "the topic, which the test has"
        finally:
            gc.enable()

    run(scenario)


def test_subscriptions_of_a_topic_that_has_ended_are_released_no_faster_than_their_memory_is_given_back() -> None:
    async def scenario() -> None:
        world, loop = await a_world(), asyncio.get_running_loop()
        topic, counts = world.topic, list[int]()

        async def watch() -> None:
            while topic.subscriptions.all:
                counts.append(len(topic.subscriptions.all))
                await asyncio.sleep(0.01)

        watching = loop.create_task(watch())
        await topic.close()
        await watching
        assert max(before - after for before, after in pairwise(counts)) <= RELEASED_AT_ONCE

    run(scenario)


def test_whether_compaction_has_a_place_is_known_before_all_subscriptions_are_loaded() -> None:
    async def scenario() -> None:
        before = await a_world()
        await before.topic.subscriptions.create("__compaction", from_earliest=True)
        assert TopicWorld(before.ledger).topic.subscriptions.get("__compaction") is not None

    run(scenario)


ASKED: dict[str, Callable[[PersistentTopic], object]] = {
    "what is going on": lambda topic: topic.activity(),
    "its traffic": lambda topic: topic.traffic(),
    "whether its schema is open": lambda topic: topic.is_schema_open,
    "the age of its backlog": lambda topic: topic.upkeep.backlog_age_seconds(),
    "whether it is in use": lambda topic: topic._check_unused(),
    "whether another consumer may come": lambda topic: topic.subscriptions.check_consumer_limits(SUBSCRIBE),
}


@pytest.mark.parametrize("what", ASKED)
def test_frequent_questions_to_a_topic_cost_the_same_with_many_subscriptions(what: str) -> None:
    found = list[int]()

    async def scenario(count: int) -> None:
        settings = TopicSettings(max_consumers_per_topic=1 << 20, max_same_address_consumers_per_topic=1 << 20)
        world = TopicWorld(settings=settings)
        for number in range(count):
            await world.topic.subscriptions.create(f"s{number}", from_earliest=True)
        world.topic.upkeep.quotas._oldest_ms = 0
        with Counter() as counter:
            ASKED[what](world.topic)
        found.append(counter.steps)

    run(lambda: scenario(20))
    run(lambda: scenario(160))
    assert found[0] == found[1]


def test_the_backlog_is_known_without_a_look_at_all_after_all_have_moved() -> None:
    """Each place that moved is put right once, some in a turn."""

    async def scenario() -> None:
        world = await a_world(2000)
        await world.publish_many(3)
        assert world.topic.activity().backlog_entries == 3
        for each in world.topic.subscriptions.all[1:]:
            each.cursor.acknowledge_cumulative(world.ledger.last_confirmed)
        with Counter() as counter:
            await world.topic.subscriptions.durable.settle()
        assert world.topic.activity().backlog_entries == 3
        assert world.topic.subscriptions.durable.slowest() == "s0"
        world.topic.subscriptions.all[0].cursor.acknowledge_cumulative(world.ledger.last_confirmed)
        with Counter() as counter:
            await world.topic.subscriptions.durable.settle()
        assert world.topic.activity().backlog_entries == 0
        assert counter.longest < counter.steps / 2, f"of {counter.steps} in all"

    run(scenario)


def test_a_subscription_that_went_back_has_a_backlog_again() -> None:
    async def scenario() -> None:
        world = await a_world(3)
        (first, *_) = await world.publish_many(3)
        for each in world.topic.subscriptions.all:
            each.cursor.acknowledge_cumulative(world.ledger.last_confirmed)
        assert world.topic.activity().backlog_entries == 0
        await world.topic.subscriptions.all[1].reset(first)
        assert world.topic.activity().backlog_entries == 3

    run(scenario)


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.integers(0, 3)), max_size=30))
@settings(deadline=None, max_examples=40)
def test_consumer_totals_equal_the_sums_over_all_consumers(steps: list[tuple[int, bool, int]]) -> None:
    async def scenario() -> None:
        world = TopicWorld()
        there: dict[int, TopicConsumer] = {}
        for number, takes_any, messages in steps:
            if number in there:
                there.pop(number).close()
            else:
                there[number], _ = await world.consumer(
                    subscription=f"s{number % 3}", type=SubscriptionType.SHARED, takes_any_schema=takes_any
                )
                there[number].counters.messages += messages
            if messages:
                world.topic._sample()
            totals, all_of_them = world.topic.consumers, list(there.values())
            assert totals.count == len(all_of_them) == totals.count_from(SUBSCRIBE.address)
            assert totals.has_schema == any(not each.request.takes_any_schema for each in all_of_them)
            rates = [each.rates.messages.per_second for each in all_of_them]
            assert totals.message_rate == pytest.approx(sum(rates), abs=1e-9)

    run(scenario)


def test_the_policies_that_came_last_hold_for_every_subscription() -> None:
    async def scenario() -> None:
        world = await a_world()
        world.topic.upkeep.apply(TopicPolicies(subscription_dispatch_rate=DispatchRate(bytes=50)))
        world.topic.upkeep.apply(TopicPolicies())
        await settle()
        assert not [each.name for each in world.topic.subscriptions.all if each._throttle is not None]
        world.topic.upkeep.apply(TopicPolicies(subscription_dispatch_rate=DispatchRate(bytes=50)))
        await settle()
        assert not [each.name for each in world.topic.subscriptions.all if each._throttle is None]

    run(scenario)


def test_a_subscription_that_is_deleted_meanwhile_is_left_out() -> None:
    async def scenario() -> None:
        world = await a_world()
        last = world.topic.subscriptions.all[-1]
        world.topic.upkeep.apply(TopicPolicies(subscription_dispatch_rate=DispatchRate(bytes=50)))
        await last.delete(force=False)
        await settle()
        assert world.topic.subscriptions.get(last.name) is None

    run(scenario)
