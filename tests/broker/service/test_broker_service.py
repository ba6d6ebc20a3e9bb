"""BrokerService: what makes a topic, what refuses one, and what a standalone finds at its first start."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from broker.errors import BrokerError, ServerError
from broker.service.addresses import Advertised
from broker.service.broker_service import BrokerService
from broker.service.errors import BadPartitionCount, NamespaceNotFound, TopicConflict, TopicNotFound
from broker.service.settings import BrokerSettings
from broker.service.topic_name import NamespaceName, TopicName
from broker.transaction.coordinators import ASSIGN, COORDINATORS, initialise_coordinators
from metadata.memory import MemoryStore, SharedTree
from ports.clock import RealClock
from tests.broker.fake_topics import FakeTopics
from tests.managed_ledger.fake_ledgers import FakeLedgers, FakeLedgerStore
from tests.simulation.worlds import run

ADVERTISED = Advertised("pulsar://broker:6650", "http://broker:8080")
DEFAULT = NamespaceName("public", "default")
PARTITIONED = BrokerSettings(allow_auto_topic_creation_type="partitioned", default_num_partitions=3)


class House:
    def __init__(self, settings: BrokerSettings, shared: SharedTree) -> None:
        clock = RealClock()
        self.store = MemoryStore(clock, shared)
        self.topics = FakeTopics(self.store)
        self.service = BrokerService(settings, self.store, clock, self.topics, FakeLedgerStore(FakeLedgers()))

    async def value(self, path: str) -> Any:
        found = await self.store.get(path)
        return None if found is None else json.loads(found.value)

    async def load(self, name: str, *, may_create: bool = True) -> Any:
        return await self.service.lifecycle.topic(TopicName.parse(name), may_create=may_create)


@asynccontextmanager
async def a_house(settings: BrokerSettings | None = None, shared: SharedTree | None = None) -> AsyncIterator[House]:
    house = House(settings or BrokerSettings(), shared or SharedTree())
    await house.service.bootstrap_standalone(ADVERTISED)
    await house.service.start(ADVERTISED)
    yield house
    await house.service.close()


def play(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    run(lambda _: scenario())


def name(text: str) -> TopicName:
    return TopicName.parse(text)


# ---- The first start


def test_a_standalone_finds_apaches_cluster_tenants_and_namespaces() -> None:
    async def scenario() -> None:
        async with a_house() as house:
            cluster = await house.value("/admin/clusters/standalone")
            assert (cluster["serviceUrl"], cluster["brokerServiceUrl"]) == ("http://broker:8080", "pulsar://broker:6650")
            assert await house.value("/admin/policies/public") == {"adminRoles": [], "allowedClusters": ["standalone"]}
            policies = await house.value("/admin/policies/public/default")
            assert policies["replication_clusters"] == ["standalone"]
            cut = {"boundaries": ["0x00000000", "0x40000000", "0x80000000", "0xc0000000", "0xffffffff"], "numBundles": 4}
            assert policies["bundles"] == cut
            assert (await house.value("/admin/local-policies/public/default"))["bundles"] == cut
            assert await house.value("/admin/policies/pulsar/system") is not None

    play(scenario)


def test_a_second_start_changes_no_policies_and_gives_other_producer_names() -> None:
    async def scenario() -> None:
        shared = SharedTree()
        async with a_house(shared=shared) as house:
            first = [house.service.producer_names.new() for _ in range(3)]
            await house.store.put("/admin/policies/public/default", b'{"mine":1}')
        async with a_house(shared=shared) as house:
            assert await house.value("/admin/policies/public/default") == {"mine": 1}
            names = first + [house.service.producer_names.new() for _ in range(3)]
            assert len(dict.fromkeys(names)) == 6
            assert all(each.startswith("standalone-") and each.count("-") == 2 for each in names)

    play(scenario)


# ---- Topics made by asking


def test_a_missing_topic_is_made_when_caller_and_settings_allow_it() -> None:
    async def scenario() -> None:
        async with a_house() as house:
            with pytest.raises(BrokerError) as caught:
                await house.load("t", may_create=False)
            assert caught.value.code is ServerError.TOPIC_NOT_FOUND
            topic = await house.load("t")
            assert await house.load("t", may_create=False) is topic
            assert house.service.catalogue.loaded_topic(name("t")) is topic
            assert list(house.service.catalogue.loaded_topics) == ["persistent://public/default/t"]

    play(scenario)


def test_without_auto_creation_only_topics_that_are_there_are_loaded() -> None:
    async def scenario() -> None:
        async with a_house(BrokerSettings(allow_auto_topic_creation=False)) as house:
            with pytest.raises(BrokerError) as caught:
                await house.load("t")
            assert caught.value.code is ServerError.TOPIC_NOT_FOUND
            with pytest.raises(TopicNotFound):
                await house.service.creation.partitions(name("t"), may_create=True)
            await house.service.lifecycle.create_topic(name("t"))
            await house.load("t")
            await house.service.creation.create(name("p"), 2)
            assert (await house.service.creation.partitions(name("p"), may_create=True)).partitions == 2
            await house.load("p-partition-1")
            await house.store.delete(name("p-partition-0").managed_ledger_path)  # as the sweep of inactive topics does
            await house.load("p-partition-0")

    play(scenario)


def test_a_namespace_must_be_there() -> None:
    async def scenario() -> None:
        async with a_house() as house:
            missing = name("persistent://t/n/x")
            for work in (
                house.service.lifecycle.topic(missing, may_create=True),
                house.service.lookup.find(missing),
                house.service.creation.partitions(missing, may_create=True),
                house.service.lifecycle.create_topic(missing),
                house.service.creation.create(missing, 2),
                house.service.catalogue.list_topics(missing.namespace),
            ):
                with pytest.raises(NamespaceNotFound) as caught:
                    await work
                assert caught.value.code is ServerError.TOPIC_NOT_FOUND

    play(scenario)


@pytest.mark.parametrize(
    ("topic", "key", "settings"),
    [
        ("persistent://public/default/x", "enablePersistentTopics", BrokerSettings(enable_persistent_topics=False)),
        ("non-persistent://public/default/x", "enableNonPersistentTopics", BrokerSettings(enable_non_persistent_topics=False)),
    ],
)
def test_a_kind_of_topic_that_is_switched_off_is_refused_with_the_setting(
    topic: str, key: str, settings: BrokerSettings
) -> None:
    async def scenario() -> None:
        async with a_house(settings) as house:
            with pytest.raises(BrokerError, match=key) as caught:
                await house.load(topic)
            assert caught.value.code is ServerError.NOT_ALLOWED

    play(scenario)


def test_missing_topics_become_partitioned_where_that_is_the_default() -> None:
    async def scenario() -> None:
        async with a_house(PARTITIONED) as house:
            found = await asyncio.gather(*(house.service.creation.partitions(name("t"), may_create=True) for _ in range(5)))
            assert [each.partitions for each in found] == [3] * 5
            assert [str(each) for each in await house.service.catalogue.list_topics(DEFAULT)] == [
                f"persistent://public/default/t-partition-{index}" for index in range(3)
            ]
            await house.store.put(name("old").managed_ledger_path, b"")
            assert (await house.service.creation.partitions(name("old"), may_create=True)).partitions == 0
            with pytest.raises(TopicNotFound):
                await house.service.creation.partitions(name("other"), may_create=False)

    play(scenario)


@pytest.mark.parametrize(
    ("topic", "said"),
    [("p", "Found partitioned metadata"), ("p-partition-2", "Illegal topic partition"), ("q-partition-0", "not found")],
)
def test_partitions_and_their_metadata_must_agree(topic: str, said: str) -> None:
    async def scenario() -> None:
        async with a_house() as house:
            await house.service.creation.create(name("p"), 2)
            with pytest.raises(BrokerError, match=said) as caught:
                await house.load(topic)
            assert caught.value.code is ServerError.NOT_ALLOWED
            await house.load("p-partition-1")

    play(scenario)


def test_a_namespace_has_room_for_so_many_topics() -> None:
    async def scenario() -> None:
        async with a_house(BrokerSettings(max_topics_per_namespace=3)) as house:
            await house.load("a")
            await house.service.creation.create(name("p"), 2)
            for work in (house.load("b"), house.service.lifecycle.create_topic(name("b"))):
                with pytest.raises(BrokerError, match="Exceed maximum"):
                    await work
            await house.load("a")
            await house.load("p-partition-0")

    play(scenario)


# ---- The life of topics


def test_creating_what_is_there_is_a_conflict() -> None:
    async def scenario() -> None:
        async with a_house() as house:
            await house.service.lifecycle.create_topic(name("t"))
            await house.service.creation.create(name("p"), 2)
            for work in (
                house.service.lifecycle.create_topic(name("t")),
                house.service.creation.create(name("t"), 2),
                house.service.creation.create(name("p"), 2),
            ):
                with pytest.raises(TopicConflict):
                    await work
            with pytest.raises(BrokerError, match="partitioned metadata"):
                await house.service.lifecycle.create_topic(name("p"))

    play(scenario)


def test_deleting_loads_the_topic_and_lets_it_delete_itself() -> None:
    async def scenario() -> None:
        async with a_house() as house:
            await house.store.put(name("t").managed_ledger_path, b"")
            await house.service.lifecycle.delete_topic(name("t"), force=True)
            (topic,) = house.topics.topics.values()
            assert topic.deletions == [True]
            assert not house.service.catalogue.loaded_topics
            with pytest.raises(TopicNotFound):
                await house.service.lifecycle.delete_topic(name("other"))

    play(scenario)


def test_a_topic_in_use_is_not_deleted() -> None:
    async def scenario() -> None:
        async with a_house() as house:
            topic = await house.load("t")
            topic.failure = BrokerError(ServerError.NOT_ALLOWED, "in use")
            with pytest.raises(BrokerError, match="in use"):
                await house.service.lifecycle.delete_topic(name("t"))
            assert house.service.catalogue.loaded_topic(name("t")) is topic

    play(scenario)


def test_unloading_closes_the_topic_and_the_next_who_asks_loads_it() -> None:
    async def scenario() -> None:
        async with a_house() as house:
            old = await house.load("t")
            await house.service.lifecycle.unload_topic(name("t"))
            assert old.is_closed
            assert await house.load("t") is not old
            with pytest.raises(TopicNotFound):
                await house.service.lifecycle.unload_topic(name("other"))

    play(scenario)


def test_partitioned_topics_are_made_grown_listed_and_deleted() -> None:
    async def scenario() -> None:
        async with a_house() as house:
            service, topic = house.service, name("a b")
            await service.creation.create(topic, 2, {"k": "v"})
            path = "/admin/partitioned-topics/public/default/persistent/a+b"
            assert await house.value(path) == {"partitions": 2, "deleted": False, "properties": {"k": "v"}}
            assert await service.catalogue.partitioned_topics.list_in(DEFAULT) == [topic]
            await service.catalogue.partitioned_topics.update(topic, 3)
            assert await house.value(path) == {"partitions": 3, "deleted": False, "properties": {"k": "v"}}
            assert [each.partition_index for each in await service.catalogue.list_topics(DEFAULT)] == [0, 1, 2]
            for count in (2, 3, 0, -1, 1 << 40):
                with pytest.raises(BadPartitionCount):
                    await service.catalogue.partitioned_topics.update(topic, count)
            await house.load("a b-partition-1")
            await service.deletion.delete(topic)
            assert await house.value(path) is None
            assert [each.deletions for each in house.topics.topics.values()] == [[False]] * 3
            with pytest.raises(TopicNotFound):
                await service.deletion.delete(topic)
            with pytest.raises(TopicNotFound):
                await service.catalogue.partitioned_topics.update(topic, 9)

    play(scenario)


def test_the_number_of_partitions_is_bounded_by_the_settings() -> None:
    async def scenario() -> None:
        async with a_house(BrokerSettings(max_num_partitions_per_partitioned_topic=4)) as house:
            with pytest.raises(BadPartitionCount, match="between 1 and 4"):
                await house.service.creation.create(name("p"), 5)
            with pytest.raises(BrokerError, match="name of a partition"):
                await house.service.creation.create(name("p-partition-0"), 2)

    play(scenario)


def test_the_limit_of_partitions_does_not_concern_the_coordinators_of_transactions() -> None:
    """A broker with transactions and such a limit did not start."""

    async def scenario() -> None:
        async with a_house(BrokerSettings(max_num_partitions_per_partitioned_topic=4)) as house:
            catalogue = house.service.catalogue
            await initialise_coordinators(catalogue)
            assert (await catalogue.partitioned_topics.get(ASSIGN)).partitions == COORDINATORS

    play(scenario)


# ---- Housekeeping, on virtual time


def test_closing_twice_is_fine_and_unloads_all() -> None:
    async def scenario() -> None:
        async with a_house() as house:
            topic = await house.load("t")
            await house.service.close()
            assert topic.close_count == 1

    play(scenario)


def test_no_partitions_are_a_fine_default_where_none_are_made() -> None:
    settings = BrokerSettings(default_num_partitions=0)
    assert settings.auto_topic_creation.partitions == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"allow_auto_topic_creation_type": "both"},
        {"default_num_partitions": -1},
        {"default_num_partitions": 0, "allow_auto_topic_creation_type": "partitioned"},
        {"retention_check_interval_in_seconds": 0},
    ],
)
def test_settings_that_cannot_be_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"[a-z]+[A-Z]"):
        BrokerSettings(**fields)
