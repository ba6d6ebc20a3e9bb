"""Policies of placement in a cluster: read from Apache's nodes, kept by lookups and by the leader."""

import json
from typing import Any

import pytest

from broker.service.load.board import Report
from broker.service.load.leader import LoadLeader, leader_claim
from broker.service.load.loads import BrokerLoad, BundleStats, Usage
from broker.service.load.placement.rules_driver import domains_path, isolation_path
from broker.service.load.settings import TRANSFER_SHEDDER, LoadSettings
from broker.service.load.shedding import Move
from broker.service.ownership.bundles import Bundle
from broker.service.ownership.namespace_bundles import LOCAL_POLICIES
from broker.service.topic_name import NamespaceName, TopicName
from tests.broker.service.houses import TOPICS, House, a_cluster, play
from tests.broker.service.load.placement.test_isolation import document

DEFAULT = NamespaceName("public", "default")
MB = float(1 << 20)


async def isolate(house: House, **changed: Any) -> None:
    limit = {"policy_type": "min_available", "parameters": {"min_limit": "1", "usage_threshold": "100"}}
    whole = document(namespaces=["public/default"], primary=["b1"], secondary=["b2"], auto_failover_policy=limit) | changed
    await house.store.put(isolation_path("c"), json.dumps({"p": whole}).encode())


async def owners(houses: dict[str, House], asked: House, topics: list[TopicName]) -> set[str]:
    return {(await asked.follow(topic, houses)).members.own_id for topic in topics}


def test_lookups_place_by_the_policy_that_stands_at_the_moment() -> None:
    async def scenario() -> None:
        async with a_cluster(4, by_load=True) as houses:
            first, second, *_ = houses.values()
            assert len(await owners(houses, first, TOPICS)) > 1
            for house in houses.values():
                for bundle in (await house.bundles.of(DEFAULT)).all():
                    await house.service.lookup.owners.unload(DEFAULT, bundle.range)
            await isolate(first)
            assert await owners(houses, first, TOPICS) == {second.members.own_id}
            functions = [TopicName.parse(f"persistent://public/functions/f{index}") for index in range(12)]
            assert second.members.own_id not in await owners(houses, first, functions), "it serves what is isolated, only"

    play(scenario)


def test_the_secondary_takes_over_from_a_primary_that_is_gone_and_none_where_there_is_none() -> None:
    async def scenario() -> None:
        async with a_cluster(3, by_load=True) as houses:
            first, primary, secondary = houses.values()
            await isolate(first)
            await primary.members.leave()
            assert await owners(houses, first, TOPICS) == {secondary.members.own_id}
            await isolate(first, namespaces=["public/functions"], secondary=[])
            with pytest.raises(Exception, match="No broker is there"):
                await first.service.lookup.find(TopicName.parse("persistent://public/functions/f"))

    play(scenario)


def test_an_unreadable_policy_isolates_nothing_and_keeps_no_topic_from_being_served(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with a_cluster(3, by_load=True) as houses:
            first, *_ = houses.values()
            await isolate(first, primary=["b["])
            assert len(await owners(houses, first, TOPICS)) == 3

    play(scenario)
    assert "isolation policies cannot be read: namespaces are not isolated" in caplog.text


def test_namespaces_of_one_group_go_to_different_domains() -> None:
    """Two brokers in each of two domains: the second namespace of the group is in the other domain."""

    async def scenario() -> None:
        async with a_cluster(4, by_load=True) as houses:
            first, *_ = houses.values()
            ids = [house.members.own_id for house in houses.values()]
            for name, brokers in (("d1", ids[:2]), ("d2", ids[2:])):
                await first.store.put(f"{domains_path('c')}/{name}", json.dumps({"brokers": brokers}).encode())
            for namespace in ("default", "functions"):
                path = f"{LOCAL_POLICIES}/public/{namespace}"
                found = await first.store.get(path)
                assert found is not None
                value = json.loads(found.value) | {"namespaceAntiAffinityGroup": "g"}
                await first.store.put(path, json.dumps(value).encode())
            one = await first.follow(TOPICS[0], houses)
            other = await first.follow(TopicName.parse("persistent://public/functions/f"), houses)
            assert (ids.index(one.members.own_id) < 2) != (ids.index(other.members.own_id) < 2)

    play(scenario)


@pytest.mark.parametrize("strategy", [LoadSettings().load_balancer_load_shedding_strategy, TRANSFER_SHEDDER])
def test_the_leader_moves_nothing_to_a_broker_that_may_not_have_it(strategy: str) -> None:
    async def scenario() -> None:
        async with a_cluster(3) as houses:
            idle, busy, _ = houses.values()
            stats = {f"public/{name}": BundleStats(msg_throughput_in=30 * MB) for name in ("default/1", "default/2")}
            free = {"public/functions/1": BundleStats(msg_throughput_in=20 * MB)}
            await idle.board.put(busy.members.own_id, Report(BrokerLoad(Usage(0.9), stats | free)))
            await idle.board.put(idle.members.own_id, Report(BrokerLoad(Usage(0.1))))
            await isolate(idle, secondary=[])
            settings = LoadSettings(load_balancer_load_shedding_strategy=strategy)

            async def carry_out(_: Move) -> None:
                """Done."""

            claim = leader_claim(idle.store, idle.sessions, idle.members.own_id, idle.advertised)
            leading = LoadLeader(claim, idle.members, idle.board, idle.policies, settings, carry_out)
            assert [move.bundle for move in await leading.shed()] == ["public/functions/1"]
            await leading.close()

    play(scenario)


def test_a_wish_of_an_operator_stands_above_the_policies() -> None:
    """Apache's NamespaceService also looks at the bundle's affinity to a broker before load."""

    async def scenario() -> None:
        async with a_cluster(3, by_load=True) as houses:
            first, _, third = houses.values()
            await isolate(first)
            bundle: Bundle = (await first.bundles.of(DEFAULT)).of(TOPICS[0])
            await first.board.wish(bundle, third.members.own_id)
            assert await first.follow(TOPICS[0], houses) is third

    play(scenario)
