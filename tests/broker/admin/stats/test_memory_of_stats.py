"""Stats of very many subscriptions, producers and partitions are made in slices, and leave memory in slices.

To free the stats of 30,000 subscriptions at once takes 60 ms, and their JSON twice as long.
"""

import asyncio
import dataclasses
import gc
import json
import weakref
from collections.abc import Callable, Coroutine, Iterable
from itertools import pairwise
from typing import Any

import pytest

from broker.admin.metrics.topics import Tables
from broker.admin.rest.json_texts import LARGE, json_texts
from broker.admin.stats.internal_stats import internal_stats_json
from broker.admin.stats.partitioned_stats import partitioned_stats_json
from broker.admin.stats.topic_stats import topic_stats_json
from broker.metrics_settings import MetricsSettings
from broker.service.topic_name import TopicName
from broker.topic.statistics.topic_stats import PublisherStats, SubscriptionStats, TopicStats
from broker.topic.topic import PersistentTopic
from ports.loop.slices import SLICE
from tests.broker.topic.topic_world import TopicWorld, run
from tests.cost import Counter

COUNT = 8 * SLICE
NAME = TopicName.parse("persistent://public/default/t")


class Subscription(SubscriptionStats):
    """Can be watched: it has no slots."""


class Publisher(PublisherStats):
    """Can be watched, too."""


class Body(dict[str, Any]):
    """Can be watched, too."""


def like(one: Any, kind: type) -> Any:
    return kind(**{field.name: getattr(one, field.name) for field in dataclasses.fields(one)})


async def stats_of_many(world: TopicWorld) -> TopicStats:
    await world.topic.subscriptions.create("s", from_earliest=True)
    await world.producer()
    stats = world.topic.stats()
    (subscription,), (publisher,) = stats.subscriptions.values(), stats.publishers
    return dataclasses.replace(
        stats,
        subscriptions={f"s{number}": like(subscription, Subscription) for number in range(COUNT)},
        publishers=tuple(like(publisher, Publisher) for _ in range(COUNT)),
    )


async def most_at_once(things: Iterable[Any], work: Coroutine[Any, Any, Any]) -> int:
    """Most of these things that left memory in one turn of the loop while the work was done."""
    watched = [weakref.ref(each) for each in things]
    del things
    counts = [len(watched)]

    async def count() -> None:
        while True:
            counts.append(sum(each() is not None for each in watched))
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    await work
    await asyncio.sleep(0)
    counting.cancel()
    assert counts[-1] == 0, "all have left"
    return max(before - after for before, after in pairwise(counts))


async def metrics(topic: PersistentTopic) -> None:
    settings = MetricsSettings(expose_producer_level_metrics_in_prometheus=True)
    await Tables("c", settings, 1).add(NAME, await topic.stats_in_slices(), None)


TOLD: dict[str, Callable[[PersistentTopic], Coroutine[Any, Any, Any]]] = {"stats": topic_stats_json, "metrics": metrics}


@pytest.mark.parametrize("what", TOLD)
def test_a_turn_of_the_loop_frees_the_stats_of_some_subscriptions_and_producers(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        world = TopicWorld()
        waiting = [await stats_of_many(world)]

        async def stats_in_slices() -> TopicStats:
            return waiting.pop()

        monkeypatch.setattr(world.topic, "stats_in_slices", stats_in_slices)
        things: list[Any] = [*waiting[0].subscriptions.values(), *waiting[0].publishers]
        watching = most_at_once(iter_taken(things), TOLD[what](world.topic))
        assert await watching <= 2 * SLICE

    run(scenario)


def iter_taken(things: list[Any]) -> Iterable[Any]:
    """Keeps none of them."""
    while things:
        yield things.pop()


def test_partitions_of_which_only_sums_are_told_leave_memory_some_in_a_turn() -> None:
    async def scenario() -> int:
        bodies = {f"p-{number}": Body(msgInCounter=1, publishers=[Body(producerName="p")]) for number in range(COUNT)}
        things = list[Any](bodies.values())
        work = partitioned_stats_json({}, bodies, per_partition=False)
        del bodies
        return await most_at_once(iter_taken(things), work)

    assert asyncio.run(scenario()) <= 2 * SLICE


@pytest.mark.parametrize(("partitions", "subscriptions"), [(COUNT, 1), (1, COUNT)])
def test_a_turn_of_the_loop_adds_up_some_partitions_or_subscriptions(partitions: int, subscriptions: int) -> None:
    def body() -> dict[str, Any]:
        return {"msgInCounter": 2, "subscriptions": {f"s{number}": {"msgBacklog": 3} for number in range(subscriptions)}}

    async def scenario() -> None:
        bodies = {f"p-{number}": body() for number in range(partitions)}
        with Counter() as counter:
            whole = await partitioned_stats_json({}, bodies, per_partition=True)
        assert whole["msgInCounter"] == 2 * partitions
        assert {each["msgBacklog"] for each in whole["subscriptions"].values()} == {3 * partitions}
        assert counter.longest < counter.steps / 4, f"of {counter.steps} in all"

    asyncio.run(scenario())


async def many_told(count: int) -> tuple[Any, Any]:
    """The stats of a topic, and its internal stats."""
    world = TopicWorld()
    for number in range(count):
        await world.topic.subscriptions.create(f"s {number}", from_earliest=True)
    internal = await internal_stats_json(world.topic.ledger, None, world.topic.stats().subscriptions)
    return await topic_stats_json(world.topic, written=True), internal


def test_very_many_subscriptions_are_told_as_few_are() -> None:
    async def scenario() -> None:
        for few, many, member in zip(await many_told(1), await many_told(LARGE + 1), ("subscriptions", "cursors"), strict=True):
            (one,) = few[member].values()
            found = json.loads("".join(json_texts(many, json.dumps)))
            assert len(found[member]) == LARGE + 1
            assert all(each == one for each in found[member].values())
            assert found.keys() == few.keys()

    run(scenario)


def test_the_cycle_collector_has_nothing_to_look_at_in_very_many_subscriptions() -> None:
    async def scenario() -> None:
        stats, internal = await many_told(LARGE + 1)
        for members in (stats["subscriptions"], internal["cursors"]):
            assert not [each for each in members.values() if gc.is_tracked(each)]

    run(scenario)
