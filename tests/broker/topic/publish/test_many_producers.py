"""Work for each producer of a topic is done in slices, and producers that come or leave meanwhile get their due."""

import asyncio
import gc
import weakref

import pytest

from broker.errors import BrokerError, ServerError
from broker.policies.policies import TopicPolicies
from broker.topic.contract import AccessMode
from broker.topic.publish.producer import TopicProducer
from ports.ends import ENDS
from ports.loop.slices import SLICE
from tests.broker.topic.topic_world import ProducerEnd, TopicWorld, run, send_run, settle
from tests.cost import Counter

COUNT = 8 * SLICE


async def producers(world: TopicWorld, count: int = COUNT) -> list[tuple[TopicProducer, ProducerEnd]]:
    return [await world.producer(name=f"p{number}") for number in range(count)]


async def first_closed(found: list[tuple[TopicProducer, ProducerEnd]]) -> None:
    """Returns when the first producer is closed and the last one is not."""
    for _ in range(100):
        if found[0][0].is_closed:
            break
        await asyncio.sleep(0)
    assert found[0][0].is_closed
    assert not found[-2][0].is_closed


def test_a_turn_of_the_loop_closes_some_producers_of_a_topic_that_ends() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        found, before = await producers(world), ENDS.count
        with Counter() as counter:
            await world.topic.publishers.end_all("now")
        assert {tuple(end.heard) for _, end in found} == {(("closed",),)}
        assert ENDS.count - before == COUNT
        assert counter.longest < counter.steps / 4, f"of {counter.steps} in all"

    run(scenario)


def test_a_closed_producer_leaves_memory_while_others_of_its_topic_are_closed() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        watched = weakref.ref((await world.producer(name="first"))[0])
        found = await producers(world)
        ending = asyncio.ensure_future(world.topic.publishers.end_all("now"))
        await first_closed(found)
        gc.collect()
        assert watched() is None
        await ending

    run(scenario)


def test_a_turn_of_the_loop_refuses_some_producers_that_wait_when_a_topic_ends() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        world.ledger.properties_gate = asyncio.Event()
        mode = AccessMode.EXCLUSIVE_WITH_FENCING
        asking = [asyncio.ensure_future(world.producer(name=f"p{number}", access_mode=mode)) for number in range(COUNT)]
        await settle()
        with Counter() as counter:
            await world.topic.publishers.end_all("now")
            await settle()
        refusals = await asyncio.gather(*asking, return_exceptions=True)
        codes = [each.code for each in refusals if isinstance(each, BrokerError)]
        assert codes.count(ServerError.SERVICE_NOT_READY) >= 1
        assert len(codes) == COUNT
        assert counter.longest < counter.steps / 4, f"of {counter.steps} in all"

    run(scenario)


def test_a_turn_of_the_loop_asks_some_producers_for_what_they_have_under_way_before_a_topic_is_unloaded() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        world.ledger.hold = True
        found = await producers(world)
        for producer, _ in found:
            producer.publish(send_run([0]))
        with Counter() as counter:
            draining = asyncio.ensure_future(world.topic.publishers.drain(5.0))
            await settle()
        assert counter.longest < counter.steps / 2, f"of {counter.steps} in all"
        assert not draining.done()
        found[0][0].publish(send_run([1]))
        world.ledger.release()
        await draining
        assert world.ledger.appended_batches == COUNT, "a producer that waits for its end stores nothing"

    run(scenario)


def test_no_producer_of_a_topic_that_ends_stores_a_message_when_the_first_one_is_closed() -> None:
    """The message of a held producer is answered when that producer is closed."""

    async def scenario() -> None:
        world = TopicWorld()
        found = await producers(world)
        closing = asyncio.ensure_future(world.topic.delete(force=True))
        await first_closed(found)
        (last, last_end), (leaving, leaving_end) = found[-1], found[-2]
        assert not last.is_closed
        stored = world.ledger.appended_batches
        last.publish(send_run([7]))
        leaving.close()
        with pytest.raises(BrokerError) as refused:
            await world.producer(name="late")
        assert refused.value.code is ServerError.SERVICE_NOT_READY
        await closing
        assert world.ledger.appended_batches == stored
        assert last_end.heard == [("closed",), ("send_failed", [7], ServerError.SERVICE_NOT_READY)]
        assert leaving_end.heard == []

    run(scenario)


def test_a_turn_of_the_loop_sends_some_producers_away_and_one_that_comes_meanwhile_stays() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        found = await producers(world)
        found[-1][0].close()
        with Counter() as counter:
            going = asyncio.ensure_future(world.topic.publishers.send_away("the backlog quota is exceeded"))
            await first_closed(found)
            late, late_end = await world.producer(name="late")
            found[-2][0].close()
            await going
        assert [end.heard for _, end in found] == [[("closed",)]] * (COUNT - 2) + [[]] * 2
        assert world.topic.publishers.all == [late]
        assert late_end.heard == []
        assert counter.longest < counter.steps / 4, f"of {counter.steps} in all"

    run(scenario)


def test_a_turn_of_the_loop_puts_new_policies_in_force_on_some_producers_and_the_last_ones_hold() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        found = await producers(world)
        with Counter() as counter:
            world.topic.upkeep.apply(TopicPolicies(max_message_size=5))
            world.topic.upkeep.apply(TopicPolicies(max_message_size=6))
            late, _ = await world.producer(name="late")
            await settle()
        assert {producer.message_size_max for producer, _ in found} == {6} == {late.message_size_max}
        assert counter.longest < counter.steps / 3, f"of {counter.steps} in all"

    run(scenario)
