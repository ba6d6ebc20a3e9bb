"""F31 (apache/pulsar 24879, 8731, 24225): a partitioned topic is deleted while producers, lookups and operators race."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from broker.errors import BrokerError, ServerError
from broker.schema.values import SchemaData, SchemaType
from broker.service.errors import PartitionsChanged, TopicNotFound
from broker.service.topic_name import TopicName
from broker.topic.topic import PersistentTopic
from tests.broker.admin.admin_world import AdminWorld, play
from tests.broker.topic.topic_world import PRODUCER, ProducerEnd

TOPIC = TopicName.parse("t")
PASSING = TopicName.parse("non-persistent://public/default/n")
SEEDS = 80
_SCHEMA = SchemaData(SchemaType.STRING)


async def _paused(chance: random.Random) -> None:
    for _ in range(chance.randrange(chance.choice((10, 200)))):
        await asyncio.sleep(0)


async def _in_turns(work: Callable[[], Awaitable[Any]], turns: int) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)
    try:
        found = await work()
        if isinstance(found, PersistentTopic):
            await found.add_producer(PRODUCER, ProducerEnd())
    except BrokerError:
        return  # whoever comes too late or too early is refused


class _Racers:
    """Operations of others on the topic meanwhile, each with pauses of its own."""

    def __init__(self, world: AdminWorld, chance: random.Random) -> None:
        self.service, self.chance = world.service, chance

    async def produce_with_schema(self, index: int) -> None:
        """Produces like a connection does."""
        partition = TOPIC.partition(index)
        topic = await self.service.lifecycle.topic(partition, may_create=True)
        await _paused(self.chance)
        await self.service.schemas.for_producer(partition, _SCHEMA)
        await self.service.deletion.require_still(partition)
        await topic.add_producer(PRODUCER, ProducerEnd())

    async def set_policy(self) -> None:
        """Sets a policy like a route does."""
        if not (await self.service.catalogue.partitioned_topics.get(TOPIC)).partitions:
            return
        await self.service.topic_policies.load(TOPIC.namespace)
        await _paused(self.chance)
        await self.service.topic_policies.change(TOPIC, lambda document: document.update(maxProducerPerTopic=3))
        await self.service.deletion.require_still(TOPIC)

    async def other_broker_opens(self, index: int) -> None:
        partition = TOPIC.partition(index)
        found = await self.service.catalogue.partitioned_topics.check_consistent(partition)
        await _paused(self.chance)
        await self.service.catalogue.partitioned_topics.create_partition(partition, found)


async def _left(world: AdminWorld) -> dict[str, Any]:
    """Remains of all topics but the one that keeps policies: stored, loaded, and beside them."""
    service, store = world.service, world.store
    stored = await store.children("/managed-ledgers/public/default/persistent")
    schemas = await store.children("/schemas/public/default")
    await service.topic_policies.load(TOPIC.namespace)
    return {
        "ledgers": [each for each in stored if each != "__change_events"],
        "loaded": [name for name in service.catalogue.loaded_topics if "change_events" not in name],
        "schemas": [each for each in schemas if await service.schemas.latest(TopicName.parse(each)) is not None],
        "policies": dict(service.topic_policies.document(TOPIC)),
    }


NOTHING: dict[str, Any] = {"ledgers": [], "loaded": [], "schemas": [], "policies": {}}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_f31_a_partitioned_topic_is_wholly_there_or_wholly_gone_and_can_be_made_again(seed: int) -> None:
    async def scenario(world: AdminWorld) -> None:
        service, chance = world.service, random.Random(seed)
        racers = _Racers(world, chance)
        await service.creation.create(TOPIC, 3)
        for index in range(3):
            await service.lifecycle.topic(TOPIC.partition(index), may_create=True)
        works: list[Callable[[], Awaitable[Any]]] = [
            *[partial(service.deletion.delete, TOPIC, force=chance.random() < 0.7) for _ in range(chance.choice((1, 1, 2)))],
            lambda: service.creation.partitions(TOPIC, may_create=False),
            lambda: service.lookup.find(TOPIC.partition(1)),
            lambda: service.catalogue.partitioned_topics.update(TOPIC, 4),
            *(partial(service.lifecycle.topic, TOPIC.partition(index), may_create=True) for index in (0, 1, 2, 0)),
            *(partial(racers.produce_with_schema, index) for index in (0, 1, 2)),
            *(partial(racers.other_broker_opens, index) for index in (0, 2)),
            racers.set_policy,
        ]
        await asyncio.gather(*(_in_turns(each, chance.randrange(100)) for each in works))
        found = await service.catalogue.partitioned_topics.get(TOPIC)
        assert not found.is_deleted
        if found.partitions:
            left = await _left(world)
            assert left["ledgers"] == [f"t-partition-{index}" for index in range(found.partitions)], "wholly there"
            await service.deletion.delete(TOPIC, force=True)
        assert await _left(world) == NOTHING
        await service.creation.create(TOPIC, 2)
        assert (await service.creation.partitions(TOPIC, may_create=False)).partitions == 2

    play(scenario)


@pytest.mark.parametrize("turns", range(0, 60, 3))
def test_f31_what_is_stored_nowhere_is_not_left_loaded(turns: int) -> None:
    async def scenario(world: AdminWorld) -> None:
        service = world.service
        await service.creation.create(PASSING, 2)
        opens = (
            _in_turns(partial(service.lifecycle.topic, PASSING.partition(index), may_create=True), 30) for index in (0, 1, 0)
        )
        await asyncio.gather(*opens, _in_turns(partial(service.deletion.delete, PASSING, force=True), turns))
        assert [name for name in service.catalogue.loaded_topics if "non-persistent" in name] == []
        assert not (await service.catalogue.partitioned_topics.get(PASSING)).partitions

    play(scenario)


def test_a_partition_in_use_keeps_all_of_them() -> None:
    async def scenario(world: AdminWorld) -> None:
        service = world.service
        await service.creation.create(TOPIC, 3)
        used = await service.lifecycle.topic(TOPIC.partition(2), may_create=True)
        await used.add_producer(PRODUCER, ProducerEnd())
        kept = await service.lifecycle.topic(TOPIC.partition(0), may_create=True)
        with pytest.raises(BrokerError, match="partition-2 has 1 connected") as refused:
            await service.deletion.delete(TOPIC)
        assert refused.value.code is ServerError.PRODUCER_BUSY
        assert service.catalogue.loaded_topic(TOPIC.partition(0)) is kept
        assert not (await service.catalogue.partitioned_topics.get(TOPIC)).is_deleted

    play(scenario)


def test_a_topic_that_is_marked_takes_nobody_on_until_its_deletion_is_asked_for_again() -> None:
    async def scenario(world: AdminWorld) -> None:
        service = world.service
        await service.creation.create(TOPIC, 2)
        await service.catalogue.partitioned_topics.mark_deleted(TOPIC)  # by a broker that died then
        for work in (
            partial(service.lifecycle.topic, TOPIC.partition(0), may_create=True),
            partial(service.creation.partitions, TOPIC, may_create=True),
            partial(service.catalogue.partitioned_topics.update, TOPIC, 3),
            partial(service.catalogue.partitioned_topics.create_missed, TOPIC),
            partial(service.catalogue.partitioned_topics.set_properties, TOPIC, {"a": "b"}),
        ):
            with pytest.raises(PartitionsChanged, match="is being deleted"):
                await work()
        assert (await world.topic("POST", "t/partitions", 3)).status == 409
        await world.done("DELETE", "t/partitions")
        with pytest.raises(TopicNotFound):
            await service.creation.partitions(TOPIC, may_create=False)

    play(scenario)
