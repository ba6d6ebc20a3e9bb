"""Bundles go from broker to broker in good order: clients are told where to, and wait there; nothing waits for ever."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine
from typing import Any

import pytest

from broker.errors import BrokerError, ServerError
from broker.service.addresses import Advertised
from broker.service.errors import BundleUnsettled, TopicElsewhere
from broker.service.load.placement import heirs
from broker.service.ownership import ownership_driver
from broker.service.ownership.bundles import Bundle, Bundles
from broker.service.ownership.ownership_driver import TAKE_OVER_SECONDS_MAX, BundleOwnership
from broker.service.topic_name import NamespaceName, TopicName
from broker.topic.contract import Topic
from tests.broker.service.houses import TOPICS, House, a_cluster, play

DEFAULT = NamespaceName("public", "default")


def owners_of(house: House) -> BundleOwnership:
    owners = house.service.lookup.owners
    assert isinstance(owners, BundleOwnership)
    return owners


def slow_to_close(house: House, before: Callable[[TopicName], Awaitable[None]]) -> None:
    """`before` each of the loaded topics is closed."""
    for name, topic in house.topics.topics.items():
        topic.close = _closing(TopicName.parse(name), topic, before)  # type: ignore[method-assign]


def _closing(
    name: TopicName, topic: Topic, before: Callable[[TopicName], Awaitable[None]]
) -> Callable[[], Coroutine[Any, Any, None]]:
    close = topic.close

    async def run() -> None:
        await before(name)
        await close()

    return run


async def all_on(house: House, houses: dict[str, House]) -> None:
    """Every topic of TOPICS is served there."""
    for bundle in (await house.bundles.of(DEFAULT)).all():
        await house.board.wish(bundle, house.members.own_id)
    for topic in TOPICS:
        assert await house.follow(topic, houses) is house
        await house.load(topic)


async def range_of(house: House, topic: TopicName) -> str:
    return (await house.bundles.of(DEFAULT)).of(topic).range


# Drains


@pytest.mark.parametrize("by_load", [True, False], ids=["by load", "loadBalancerEnabled=false"])
def test_a_broker_that_stops_tells_each_topic_who_serves_it_next(by_load: bool) -> None:
    async def scenario() -> None:
        async with a_cluster(3, by_load=by_load) as houses:
            first, *others = houses.values()
            await all_on(first, houses)
            told: dict[TopicName, Advertised | None] = {}

            async def closing(topic: TopicName) -> None:
                told[topic] = first.service.lookup.heir(topic)

            slow_to_close(first, closing)
            assert first.service.lookup.heir(TOPICS[0]) is None, "it is served here"
            await first.members.leave()
            await owners_of(first).close()
            assert set(told) == set(TOPICS)
            for topic, heir in told.items():
                assert heir is not None
                await houses[heir.broker_url].load(topic)
            assert {heir.broker_url for heir in told.values() if heir} == {each.advertised.broker_url for each in others}
            assert all(first.service.lookup.heir(topic) is None for topic in TOPICS), "nothing is kept of what is gone"

    play(scenario)


def test_bundles_are_given_up_so_many_at_a_time_and_served_until_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ownership_driver, "DRAINS_MAX", 2)

    async def scenario() -> None:
        async with a_cluster(2, by_load=True) as houses:
            first, _ = houses.values()
            await all_on(first, houses)
            cut = await first.bundles.of(DEFAULT)
            served: list[int] = []

            async def closing(topic: TopicName) -> None:
                served.append(len({str(cut.of(each)) for each in TOPICS if first.service.lookup.owners.serves(each)}))
                await asyncio.sleep(1)

            slow_to_close(first, closing)
            await owners_of(first).close()
            assert max(served) == 2
            assert min(served) == 0

    play(scenario)


def test_a_broker_stops_in_time_if_the_naming_of_heirs_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first bundle waits for its heir for so long, the others not at all."""
    monkeypatch.setattr(ownership_driver, "DRAINS_MAX", 1)

    async def scenario() -> None:
        async with a_cluster(2, by_load=True) as houses:
            first, _ = houses.values()
            await all_on(first, houses)

            async def hang(cut: Bundles, bundle: Bundle, brokers: Collection[str]) -> str | None:
                await asyncio.get_running_loop().create_future()
                return None

            first.chooser.choose = hang  # type: ignore[method-assign]
            began = asyncio.get_running_loop().time()
            await owners_of(first).close()
            assert asyncio.get_running_loop().time() - began < 2 * heirs.NAMING_SECONDS_MAX
            assert not first.service.catalogue.loaded_topics

    play(scenario)


# Unloads


@pytest.mark.parametrize("by_load", [True, False], ids=["by load", "loadBalancerEnabled=false"])
def test_an_unload_for_somebody_tells_clients_for_whom(by_load: bool) -> None:
    async def scenario() -> None:
        async with a_cluster(3, by_load=by_load) as houses:
            first, second, third = houses.values()
            await all_on(first, houses)
            told: list[Advertised | None] = []

            async def closing(topic: TopicName) -> None:
                told.append(first.service.lookup.heir(topic))

            slow_to_close(first, closing)
            await second.service.lookup.owners.unload(DEFAULT, await range_of(first, TOPICS[0]), third.members.own_id)
            await first.service.lookup.owners.unload(DEFAULT, await range_of(first, TOPICS[0]))
            assert told
            assert set(told) == {third.advertised}

    play(scenario)


# Coming without a lookup


@pytest.mark.parametrize("by_load", [True, False], ids=["by load", "loadBalancerEnabled=false"])
def test_a_client_that_comes_to_the_heir_before_it_is_free_waits_and_is_served(by_load: bool) -> None:
    async def scenario() -> None:
        async with a_cluster(2, by_load=by_load) as houses:
            first, second = houses.values()
            await all_on(first, houses)
            is_closing, may_close = asyncio.Event(), asyncio.Event()

            async def closing(_: TopicName) -> None:
                is_closing.set()
                await may_close.wait()

            slow_to_close(first, closing)
            unload = asyncio.ensure_future(
                first.service.lookup.owners.unload(DEFAULT, await range_of(first, TOPICS[0]), second.members.own_id)
            )
            await is_closing.wait()
            coming = asyncio.ensure_future(second.load(TOPICS[0]))
            await asyncio.sleep(1)
            assert not coming.done()
            may_close.set()
            await asyncio.gather(unload, coming)
            assert second.service.lookup.owners.serves(TOPICS[0])
            assert not first.service.lookup.owners.serves(TOPICS[0])

    play(scenario)


def test_a_client_that_comes_where_nobody_wished_for_is_sent_away_at_once() -> None:
    async def scenario() -> None:
        async with a_cluster(2, by_load=True) as houses:
            first, second = houses.values()
            await all_on(first, houses)
            began = asyncio.get_running_loop().time()
            with pytest.raises(TopicElsewhere):
                await second.load(TOPICS[0])
            assert asyncio.get_running_loop().time() == began

    play(scenario)


def test_an_owner_that_does_not_give_up_keeps_a_client_waiting_for_seconds_only() -> None:
    async def scenario() -> None:
        async with a_cluster(2, by_load=True) as houses:
            first, second = houses.values()
            await all_on(first, houses)
            await second.board.wish((await first.bundles.of(DEFAULT)).of(TOPICS[0]), second.members.own_id)
            began = asyncio.get_running_loop().time()
            with pytest.raises(TopicElsewhere):
                await second.load(TOPICS[0])
            assert asyncio.get_running_loop().time() - began == pytest.approx(TAKE_OVER_SECONDS_MAX)

    play(scenario)


# Answers while the owner is undecided


def test_a_lookup_that_cannot_be_answered_costs_nobody_a_connection() -> None:
    """C++, Go and Java clients close the connection with everything on it at SERVICE_NOT_READY."""

    async def scenario() -> None:
        async with a_cluster(1, by_load=True) as houses:
            (only,) = houses.values()
            await all_on(only, houses)
            never = asyncio.Event()

            async def closing(_: TopicName) -> None:
                await never.wait()

            slow_to_close(only, closing)
            unload = asyncio.ensure_future(only.service.lookup.owners.unload(DEFAULT, await range_of(only, TOPICS[0])))
            await asyncio.sleep(1)
            with pytest.raises(BundleUnsettled, match="is being unloaded") as refused:
                await only.service.lookup.find(TOPICS[0])
            assert refused.value.code is ServerError.METADATA
            never.set()
            with pytest.raises(BundleUnsettled):
                await unload
            await only.members.leave()
            await owners_of(only).close()
            with pytest.raises(BrokerError) as last:
                await only.service.lookup.find(TOPICS[0])
            assert last.value.code is ServerError.METADATA

    play(scenario)
