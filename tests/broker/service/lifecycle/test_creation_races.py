"""A topic is made with and without partitions at the same moment, by one broker or two: it becomes one of them, never both."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import pytest

from broker.dispatchers.settings import DispatcherSettings
from broker.errors import BrokerError, ServerError
from broker.policies.topic_settings import TopicSettings
from broker.service.broker_service import BrokerService
from broker.service.errors import TopicConflict, TopicElsewhere
from broker.service.ownership.owners import SoleOwner
from broker.service.settings import BrokerSettings
from broker.service.topic_name import TopicName, path_excluding
from broker.topic.opening import Topics
from managed_ledger.factory import ManagedLedgerFactory
from managed_ledger.settings import ManagedLedgerSettings
from metadata.memory import MemoryStore, SharedTree
from metadata.store import Operation, Stat, Versioned
from ports.clock import RealClock
from tests.broker.admin.admin_world import ADVERTISED
from tests.managed_ledger.fake_ledgers import FakeLedgers, FakeLedgerStore
from tests.simulation import worlds

TOPIC = TopicName.parse("t")
PASSING = TopicName.parse("non-persistent://public/default/t")
SEEDS = 60
_STEPS_MAX = 6


class DistantStore(MemoryStore):
    """Each question and each write is on its way for a while, before it takes effect and after."""

    def __init__(self, clock: RealClock, tree: SharedTree, chance: random.Random) -> None:
        super().__init__(clock, tree, alone=False)
        self._chance = chance

    async def _on_the_way(self) -> None:
        for _ in range(self._chance.randrange(_STEPS_MAX)):
            await asyncio.sleep(0)

    async def get(self, path: str) -> Versioned | None:
        await self._on_the_way()
        found = await super().get(path)
        await self._on_the_way()
        return found

    async def exists(self, path: str) -> bool:
        await self._on_the_way()
        return await super().exists(path)

    async def commit(self, operations: Sequence[Operation]) -> list[Stat | None]:
        await self._on_the_way()
        return await super().commit(operations)


class Cluster:
    """Brokers that share metadata and ledgers, and each of which serves everything."""

    def __init__(self, seed: int, brokers: int, settings: BrokerSettings | None = None) -> None:
        self.tree, ledgers, clock = SharedTree(), FakeLedgers(), RealClock()
        self.brokers = []
        for number in range(brokers):
            store = DistantStore(clock, self.tree, random.Random(f"{seed} {number}"))
            of_ledgers = FakeLedgerStore(ledgers)
            factory = ManagedLedgerFactory(of_ledgers, store, ManagedLedgerSettings(), clock, path_excluding)
            topics = Topics(factory, TopicSettings(), DispatcherSettings(), clock)
            self.brokers.append(BrokerService(settings or BrokerSettings(), store, clock, topics, of_ledgers))

    @property
    def is_whole(self) -> bool:
        return self.tree.tree.exists(TOPIC.managed_ledger_path)

    @property
    def is_partitioned(self) -> bool:
        return self.tree.tree.exists(TOPIC.partitions_path)


def play(
    scenario: Callable[[Cluster], Awaitable[None]], seed: int, brokers: int, settings: BrokerSettings | None = None
) -> None:
    async def whole(world: worlds.World) -> None:
        cluster = Cluster(seed, brokers, settings)
        for service in cluster.brokers:
            await service.bootstrap_standalone(ADVERTISED)
            await service.start(ADVERTISED)
        try:
            await scenario(cluster)
        finally:
            for service in cluster.brokers:
                await service.close()

    worlds.run(whole, seed)


async def _after(turns: int, work: Callable[[], Awaitable[Any]]) -> BrokerError | None:
    for _ in range(turns):
        await asyncio.sleep(0)
    try:
        await work()
    except BrokerError as refusal:
        return refusal
    return None


@pytest.mark.parametrize("brokers", [1, 2])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_topic_made_in_two_ways_at_once_becomes_one_of_them_and_who_comes_second_is_told(seed: int, brokers: int) -> None:
    async def scenario(cluster: Cluster) -> None:
        chance = random.Random(seed)
        one, other = cluster.brokers[0], cluster.brokers[-1]
        ways: list[Callable[[], Awaitable[Any]]] = [
            chance.choice((partial(one.lifecycle.topic, TOPIC, may_create=True), partial(one.lifecycle.create_topic, TOPIC))),
            partial(other.creation.create, TOPIC, 2),
        ]
        whole, parts = await asyncio.gather(*(_after(chance.randrange(30), way) for way in ways))
        assert cluster.is_whole != cluster.is_partitioned
        assert (whole is None) == cluster.is_whole
        assert (parts is None) == cluster.is_partitioned
        refusal = whole or parts
        assert refusal is not None
        assert refusal.code is ServerError.NOT_ALLOWED

    play(scenario, seed, brokers)


@pytest.mark.parametrize("seed", range(10))
def test_the_loser_of_a_creation_race_is_refused_until_the_winner_is_deleted(seed: int) -> None:
    async def scenario(cluster: Cluster) -> None:
        one, other = cluster.brokers
        works = (partial(one.lifecycle.topic, TOPIC, may_create=True), partial(other.creation.create, TOPIC, 2))
        await asyncio.gather(*(_after(random.Random(seed).randrange(20), work) for work in works))
        if cluster.is_whole:
            with pytest.raises(TopicConflict):
                await other.creation.create(TOPIC, 2)
            await one.lifecycle.delete_topic(TOPIC)
            await other.creation.create(TOPIC, 2)
            assert (cluster.is_whole, cluster.is_partitioned) == (False, True)
        else:
            with pytest.raises(BrokerError, match="Found partitioned metadata"):
                await one.lifecycle.topic(TOPIC, may_create=True)
            await other.deletion.delete(TOPIC)
            await one.lifecycle.topic(TOPIC, may_create=True)
            assert (cluster.is_whole, cluster.is_partitioned) == (True, False)

    play(scenario, seed, 2)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_topic_that_stores_nothing_becomes_one_of_them_too(seed: int) -> None:
    async def scenario(cluster: Cluster) -> None:
        chance, [broker] = random.Random(seed), cluster.brokers
        makes = chance.choice(
            (partial(broker.lifecycle.topic, PASSING, may_create=True), partial(broker.lifecycle.create_topic, PASSING))
        )
        parts_of_it = partial(broker.creation.create, PASSING, 2)
        looks_in = partial(broker.lifecycle.topic, PASSING.partition(0), may_create=True)
        work = (makes, parts_of_it, looks_in)
        whole, parts, partition = await asyncio.gather(*(_after(chance.randrange(30), each) for each in work))
        is_partitioned = (await broker.catalogue.partitioned_topics.get(PASSING)).partitions == 2
        assert (whole is None) == (broker.catalogue.loaded_topic(PASSING) is not None) != is_partitioned
        assert (parts is None) == is_partitioned
        assert (partition is None) == (broker.catalogue.loaded_topic(PASSING.partition(0)) is not None) <= is_partitioned
        refusal = whole or parts
        assert refusal is not None
        assert refusal.code in (ServerError.NOT_ALLOWED, ServerError.METADATA)  # the latter: it is tried again
        await _change_ways(broker, is_partitioned=is_partitioned)

    play(scenario, seed, 1)


async def _change_ways(broker: BrokerService, *, is_partitioned: bool) -> None:
    """Deleted, it can be made in the other way, and not in both."""
    if is_partitioned:
        with pytest.raises(BrokerError, match="Found partitioned metadata"):
            await broker.lifecycle.topic(PASSING, may_create=True)
        await broker.deletion.delete(PASSING, force=True)
        await broker.lifecycle.topic(PASSING, may_create=True)
    else:
        with pytest.raises(TopicConflict):
            await broker.creation.create(PASSING, 2)
        await broker.lifecycle.delete_topic(PASSING, force=True)
        await broker.creation.create(PASSING, 2)


def test_partitions_of_a_topic_that_stores_nothing_are_made_where_it_is_served() -> None:
    async def scenario(cluster: Cluster) -> None:
        owner, other = cluster.brokers
        other.lookup.owners = _ServesNothing()
        await owner.lifecycle.topic(PASSING, may_create=True)
        with pytest.raises(TopicElsewhere):
            await other.creation.create(PASSING, 2)
        with pytest.raises(TopicConflict):
            await owner.creation.create(PASSING, 2)
        assert (await other.catalogue.partitioned_topics.get(PASSING)).partitions == 0

    play(scenario, 0, 2)


class _ServesNothing(SoleOwner):
    def serves(self, topic: TopicName) -> bool:
        return False
