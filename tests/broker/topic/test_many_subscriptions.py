"""What a topic does for each of its subscriptions by itself is done some at a time: others on the loop have their turn."""

from collections.abc import Callable

import pytest

from broker.topic.policies import DispatchRate, TopicPolicies
from ports.slices import SLICE
from tests.broker.topic.topic_world import TopicWorld, run, settle
from tests.cost import Counter

COUNT = 8 * SLICE


async def a_world() -> TopicWorld:
    world = TopicWorld()
    for number in range(COUNT):
        await world.topic.subscriptions.create(f"s{number}", from_earliest=True)
    return world


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
