"""Passes over the subscriptions of a topic: a turn of the loop has some of them, and none misses an entry."""

import asyncio

from broker.topic.contract import SubscriptionType
from broker.topic.subscription.passes import ReadingOn
from broker.topic.subscription.subscriptions import TAKE_AT_ONCE
from ports.loop.slices import SLICE
from tests.broker.topic.subscription.test_many_subscriptions import a_passing_topic
from tests.broker.topic.topic_world import ConsumerEnd, TopicWorld, payload, run, send_run, settle
from tests.cost import Counter
from wire.position import Position
from wire.run import EntryRun

COUNT = 8 * SLICE


async def consumers(count: int, world: TopicWorld, permits: int = 1000) -> list[ConsumerEnd]:
    """One on each of so many subscriptions."""
    return [
        (await world.consumer(permits, subscription=f"s{number}", type=SubscriptionType.SHARED))[1] for number in range(count)
    ]


async def taken(world: TopicWorld, count: int) -> None:
    """Stores so many messages, of which no subscription has been told."""
    world.ledger._listeners.clear()
    await world.ledger.append(send_run(range(count), [payload() for _ in range(count)]).entries)


def test_a_turn_of_the_loop_tells_some_subscriptions_of_new_entries() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        ends = await consumers(COUNT, world)
        await taken(world, 1)
        with Counter() as counter:
            world.topic.subscriptions.entries_available()
            await settle()
        assert {len(end.got) for end in ends} == {1}
        assert counter.longest < counter.steps / 4, f"of {counter.steps} in all"

    run(scenario)


def test_a_turn_of_the_loop_hands_a_run_to_some_subscriptions_and_the_rest_reads_it() -> None:
    async def scenario() -> None:
        world, kept = TopicWorld(), list[EntryRun]()
        world.ledger.is_in_memory = True
        ends = await consumers(2 * TAKE_AT_ONCE, world)
        world.ledger._listeners.clear()
        stored = await world.ledger.append(send_run([0], [payload()]).entries)
        taken_at_once = world.topic.subscriptions.take_newest(stored, lambda: kept.append(stored))
        assert taken_at_once <= TAKE_AT_ONCE
        assert sum(len(end.got) for end in ends) <= TAKE_AT_ONCE + SLICE
        assert kept == [stored], "those that read it find it in memory"
        await settle()
        assert {len(end.got) for end in ends} == {1}

    run(scenario)


def test_entries_that_come_during_a_pass_reach_subscriptions_that_it_has_passed() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        world.ledger.is_in_memory = True
        ends = await consumers(COUNT, world)
        await taken(world, 1)
        world.topic.subscriptions.entries_available()
        await taken(world, 1)
        for _ in range(5):
            world.topic.subscriptions.entries_available()
        await settle()
        assert {len(end.got) for end in ends} == {2}

    run(scenario)


def test_calls_during_a_pass_lead_to_one_more_pass_only() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        await consumers(COUNT, world)
        passes = ReadingOn(world.topic.subscriptions._by_name)
        everything = world.topic.subscriptions.all
        with Counter() as alone:
            passes.tell(everything)
            await settle()
        with Counter() as many:
            for _ in range(10):
                passes.tell(everything)
            await settle()
        assert many.steps < 2.5 * alone.steps

    run(scenario)


def test_a_subscription_that_is_deleted_during_a_pass_is_left_out_and_one_that_comes_reads_all() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        ends = await consumers(COUNT, world)
        await taken(world, 1)
        world.topic.subscriptions.entries_available()
        last = world.topic.subscriptions.all[-1]
        await last.delete(force=True)
        _, late = await world.consumer(subscription="late", type=SubscriptionType.SHARED)
        await settle()
        assert [len(end.got) for end in ends] == [1] * (COUNT - 1) + [0]
        assert ends[-1].heard == [("closed",)]
        assert len(late.got) == 1
        assert not world.topic.is_closed

    run(scenario)


def test_a_turn_of_the_loop_tells_some_consumers_that_a_topic_has_ended() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        ends = await consumers(COUNT, world)
        with Counter() as counter:
            await world.topic.terminate()
        assert {tuple(end.heard) for end in ends} == {(("end",),)}
        assert counter.longest < counter.steps / 4, f"of {counter.steps} in all"

    run(scenario)


def test_consumers_that_come_or_read_the_last_message_while_the_end_of_a_topic_is_told_hear_of_it_once() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        ends = await consumers(COUNT, world)
        (position,) = await world.publish_many(1)
        ending = asyncio.ensure_future(world.topic.terminate())
        while not any(end.heard for end in ends):
            for each in world.topic.subscriptions.all[::2]:
                each.acknowledge_through(position)
            await asyncio.sleep(0)
        assert not ending.done()
        _, late = await world.consumer(subscription="late", type=SubscriptionType.SHARED, from_earliest=False)
        await world.topic.subscriptions.all[-2].delete(force=True)
        await ending
        for each in world.topic.subscriptions.all[1::2]:
            each.acknowledge_through(position)
        await settle()
        assert late.heard == [("end",)]
        assert [end.heard for end in ends[:-1]] == [[("end",)]] * (COUNT - 1)

    run(scenario)


def test_a_turn_of_the_loop_truncates_some_subscriptions_and_leaves_out_one_that_is_deleted_meanwhile() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        for number in range(COUNT):
            await world.topic.subscriptions.create(f"s{number}", from_earliest=True)
        (position,) = await world.publish_many(1)
        first, *_, last = world.topic.subscriptions.all
        with Counter() as counter:
            truncating = asyncio.ensure_future(world.topic.operations.truncate())
            while not first.cursor.is_acknowledged(position):  # noqa: ASYNC110
                await asyncio.sleep(0)
            await last.delete(force=False)
            late = await world.ledger.append(send_run([1], [payload()]).entries)
            await truncating
        assert not any(
            each.cursor.is_acknowledged(Position(late.ledger_id, late.last_entry_id)) for each in world.topic.subscriptions.all
        )
        assert all(each.cursor.is_acknowledged(position) for each in world.topic.subscriptions.all)
        assert not last.cursor.is_acknowledged(position)
        assert counter.longest < counter.steps / 4, f"of {counter.steps} in all"

    run(scenario)


def test_all_consumers_of_a_non_persistent_topic_get_an_entry_before_it_is_gone() -> None:
    async def scenario() -> None:
        topic = await a_passing_topic()
        for subscription in topic.subscriptions.all:
            for consumer in subscription.consumers:
                consumer.flow(10)
        await topic.ledger.append(send_run([0], [payload()]).entries)
        assert {each.consumers[0].counters.messages for each in topic.subscriptions.all} == {1}

    run(scenario)
