"""brokerDeleteInactivePartitionedTopicMetadataEnabled: a topic goes with its last partition, and with no other one."""

import asyncio

import pytest

from broker.policies.topic_settings import TopicSettings
from broker.service.catalogue.partitions import PartitionedTopicMetadata, PartitionedTopics
from broker.service.settings import BrokerSettings
from broker.service.topic_name import TopicName
from tests.broker.admin.admin_world import AdminWorld, play
from tests.broker.topic.topic_world import PRODUCER, ProducerEnd

TOPIC = TopicName.parse("t")
WISHED = BrokerSettings(broker_delete_inactive_partitioned_topic_metadata_enabled=True)
AT_ONCE = TopicSettings(broker_delete_inactive_topics_max_inactive_duration_seconds=0)
ROUND_SECONDS = 61


async def of_two(world: AdminWorld) -> None:
    await world.service.creation.create(TOPIC, 2)
    for index in range(2):
        await world.service.lifecycle.topic(TOPIC.partition(index), may_create=True)


async def found(world: AdminWorld) -> PartitionedTopicMetadata:
    return await world.service.catalogue.partitioned_topics.get(TOPIC)


@pytest.mark.parametrize(("settings", "left"), [(WISHED, 0), (BrokerSettings(), 2)], ids=["wished", "not"])
def test_with_the_last_partition_the_topic_goes_where_that_is_wished(settings: BrokerSettings, left: int) -> None:
    async def scenario(world: AdminWorld) -> None:
        await of_two(world)
        await asyncio.sleep(ROUND_SECONDS)
        assert not world.service.catalogue.loaded_topics
        assert (await found(world)).partitions == left

    play(scenario, settings, AT_ONCE)


def test_a_partition_that_is_used_or_that_nobody_has_loaded_yet_keeps_it() -> None:
    async def scenario(world: AdminWorld) -> None:
        await of_two(world)
        await world.service.creation.create(TopicName.parse("promised"), 2)
        await world.service.lifecycle.topic(TopicName.parse("promised-partition-0"), may_create=True)
        used = await world.loaded("t-partition-1")
        producer = await used.add_producer(PRODUCER, ProducerEnd())
        await asyncio.sleep(ROUND_SECONDS)
        assert list(world.service.catalogue.loaded_topics) == ["persistent://public/default/t-partition-1"]
        assert (await found(world)).partitions == 2
        producer.close()
        await asyncio.sleep(ROUND_SECONDS)
        assert (await found(world)).partitions == 0
        assert (await world.service.catalogue.partitioned_topics.get(TopicName.parse("promised"))).partitions == 2

    play(scenario, WISHED, AT_ONCE)


def test_a_partition_that_is_made_while_the_topic_goes_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(world: AdminWorld) -> None:
        await of_two(world)
        mark = PartitionedTopics.mark_deleted

        async def mark_late(topics: PartitionedTopics, topic: TopicName) -> PartitionedTopicMetadata:
            monkeypatch.setattr(PartitionedTopics, "mark_deleted", mark)
            await world.store.put(TOPIC.partition(1).managed_ledger_path, b"somebody's")
            return await mark(topics, topic)

        monkeypatch.setattr(PartitionedTopics, "mark_deleted", mark_late)
        await asyncio.sleep(ROUND_SECONDS)
        kept = await found(world)
        assert (kept.partitions, kept.is_deleted) == (2, False)
        stored = await world.store.get(TOPIC.partition(1).managed_ledger_path)
        assert stored is not None
        assert stored.value == b"somebody's"

    play(scenario, WISHED, AT_ONCE)
