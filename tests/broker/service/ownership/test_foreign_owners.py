"""Beside brokers that own bundles without nodes, as Apache's extensible load manager does, this one serves nothing."""

import asyncio
import json

import pytest

from broker.service.addresses import BROKERS, Advertised, Answer
from broker.service.neighbours.members import broker_data
from broker.service.ownership.foreign_owners import is_foreign
from metadata.store import MetadataError
from tests.broker.service.houses import TOPICS, House, a_cluster, play
from tests.broker.service.ownership.test_ownership_machine import BUNDLE

APACHES = "org.apache.pulsar.broker.loadbalance"


def node_of(name: str) -> bytes:
    """BrokerLookupData, as Apache's 4.0.8 writes it."""
    fields = {
        "webServiceUrl": f"http://{name}:8080",
        "pulsarServiceUrl": f"pulsar://{name}:6650",
        "advertisedListeners": {},
        "protocols": {},
        "persistentTopicsEnabled": True,
        "nonPersistentTopicsEnabled": True,
        "loadManagerClassName": f"{APACHES}.extensions.ExtensibleLoadManagerImpl",
        "startTimestamp": 1,
        "brokerVersion": "4.0.8",
        "properties": {},
    }
    return json.dumps(fields).encode()


def sent_to(name: str) -> Answer:
    return Answer(Advertised(f"pulsar://{name}:6650", f"http://{name}:8080"), is_redirect=True)


async def only(houses: dict[str, House]) -> House:
    [house] = houses.values()
    return house


def test_a_broker_gives_up_its_topics_while_an_apache_extensible_load_manager_is_there() -> None:
    async def scenario() -> None:
        async with a_cluster(1) as houses:
            house = await only(houses)
            for topic in TOPICS:
                assert await house.follow(topic, houses) is house
                await house.load(topic)
            await house.store.put(f"{BROKERS}/apache:8080", node_of("apache"))
            await asyncio.sleep(1)
            assert not house.service.catalogue.loaded_topics
            assert not await house.store.children("/namespace/public/default")
            assert {await house.service.lookup.find(topic, authoritative=True) for topic in TOPICS} == {sent_to("apache")}
            await house.store.delete(f"{BROKERS}/apache:8080")
            assert await house.follow(TOPICS[0], houses) is house
            await house.load(TOPICS[0])

    play(scenario)


def test_lookups_and_requests_of_bundles_are_spread_over_such_brokers() -> None:
    async def scenario() -> None:
        async with a_cluster(1) as houses:
            house = await only(houses)
            for name in ("x", "y"):
                await house.store.put(f"{BROKERS}/{name}:8080", node_of(name))
            assert {await house.service.lookup.find(TOPICS[0]) for _ in range(4)} == {sent_to("x"), sent_to("y")}
            assert await house.service.lookup.owners.owner(TOPICS[0]) in (sent_to("x"), sent_to("y"))
            assert await house.service.lookup.owners.unload(BUNDLE.namespace, BUNDLE.range) in (sent_to("x"), sent_to("y"))

    play(scenario)


def test_one_that_does_not_answer_is_no_reason_to_take_a_bundle() -> None:
    """The node goes with its session; another of its kind may have the bundle already, without a node that says so."""

    async def scenario() -> None:
        async with a_cluster(1) as houses:
            house = await only(houses)

            async def refuses(_: Advertised) -> bool:
                return True

            house.refuses = refuses
            await house.store.put(f"{BROKERS}/apache:8080", node_of("apache"))
            assert await house.service.lookup.find(TOPICS[0], authoritative=True) == sent_to("apache")

    play(scenario)


@pytest.mark.parametrize("manager", [f"{APACHES}.impl.ModularLoadManagerImpl", f"{APACHES}.impl.SimpleLoadManagerImpl", None])
def test_brokers_that_own_bundles_by_nodes_are_no_such_brokers(manager: str | None) -> None:
    assert not is_foreign(json.dumps({"loadManagerClassName": manager}).encode())


def test_our_own_node_says_that_bundles_are_owned_by_nodes() -> None:
    """Without it a leader of Apache's does not consider this broker at all (BrokerLoadManagerClassFilter)."""
    own = broker_data(Advertised("pulsar://b:6650", "http://b:8080"), {}, "1")
    assert json.loads(own)["loadManagerClassName"] == f"{APACHES}.impl.ModularLoadManagerImpl"
    assert "startTimestamp" not in json.loads(own)
    assert not is_foreign(own)


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff"])
def test_a_node_that_cannot_be_read_is_told_as_such(data: bytes) -> None:
    with pytest.raises(MetadataError, match="data of a broker"):
        is_foreign(data)
