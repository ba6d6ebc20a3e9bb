"""Choice of an owner by load and by wish."""

import pytest

from broker.service.errors import NoSuchBroker
from broker.service.load.board import Report
from broker.service.load.loads import BrokerLoad, BundleHistory, BundleStats
from tests.broker.service.houses import TOPICS, a_cluster, play
from tests.broker.service.load.load_parts import DEFAULT, cut_of


def test_a_bundle_goes_to_the_broker_that_has_had_the_least_to_do() -> None:
    async def scenario() -> None:
        async with a_cluster(3, by_load=True) as houses:
            first, second, third = houses.values()
            busy = {"x/y/0x00000000_0xffffffff": BundleHistory().after(BundleStats(msg_rate_in=5000.0))}
            load = BrokerLoad(bundles=dict.fromkeys(busy, BundleStats()))
            for house in (first, third):
                await house.board.put(house.members.own_id, Report(load, busy))
            owners = {(await first.follow(topic, houses)).members.own_id for topic in TOPICS}
            assert owners == {second.members.own_id}

    play(scenario)


def test_bundles_that_were_sent_somewhere_count_before_they_are_reported() -> None:
    async def scenario() -> None:
        async with a_cluster(4, by_load=True) as houses:
            first = next(iter(houses.values()))
            owners = [(await first.follow(topic, houses)).members.own_id for topic in TOPICS]
            assert len(set(owners)) == 4

    play(scenario)


@pytest.mark.parametrize("by_load", [True, False], ids=["by load", "loadBalancerEnabled=false"])
def test_an_unloaded_bundle_goes_where_it_was_wished_to(by_load: bool) -> None:
    async def scenario() -> None:
        async with a_cluster(3, by_load=by_load) as houses:
            first, *_ = houses.values()
            owner = await first.follow(TOPICS[0], houses)
            await owner.load(TOPICS[0])
            bundle = (await cut_of(first)).of(TOPICS[0])
            for target in houses.values():
                holder = await first.follow(TOPICS[0], houses)
                if holder is not target:
                    await holder.service.lookup.owners.unload(DEFAULT, bundle.range, target.members.own_id)
                    assert await first.follow(TOPICS[0], houses) is target
            with pytest.raises(NoSuchBroker, match="nowhere"):
                await target.service.lookup.owners.unload(DEFAULT, bundle.range, "nowhere:8080")
            assert target.service.lookup.owners.serves(TOPICS[0])

    play(scenario)


def test_a_destination_told_to_another_broker_holds_when_the_owner_unloads() -> None:
    """An owner need not understand `destinationBroker`: of Apache's, only the leader may get it."""

    async def scenario() -> None:
        async with a_cluster(3, by_load=True) as houses:
            owner = await next(iter(houses.values())).follow(TOPICS[0], houses)
            told, target = (house for house in houses.values() if house is not owner)
            bundle = (await cut_of(told)).of(TOPICS[0])
            elsewhere = await told.service.lookup.owners.unload(DEFAULT, bundle.range, target.members.own_id)
            assert elsewhere is not None
            assert elsewhere.address == owner.advertised
            await owner.service.lookup.owners.unload(DEFAULT, bundle.range)
            assert await owner.follow(TOPICS[0], houses) is target

    play(scenario)
