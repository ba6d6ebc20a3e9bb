"""Retention of any level keeps an unused topic (PersistentTopic.checkGC, shouldTopicBeRetained)."""

import asyncio
from typing import Any

import pytest

from broker.policies.topic_settings import TopicSettings
from broker.service.settings import BrokerSettings
from broker.service.topic_name import TopicName
from tests.broker.admin.admin_world import AdminWorld, play
from tests.broker.topic.topic_world import PRODUCER, ProducerEnd, send_run, settle

ROUND_SECONDS = 61
LONG_SECONDS = 30 * 86_400
FOR_EVER = {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
THREE_HOURS = {"retentionTimeInMinutes": 180, "retentionSizeInMB": 1024}
SIZE_FOR_EVER = {"retentionTimeInMinutes": -1, "retentionSizeInMB": 1}
NAMESPACE = "/admin/v2/namespaces/public/default"
TOPIC = "persistent://public/default/t"


async def publish(world: AdminWorld, name: str = "t", messages: int = 5) -> Any:
    topic = await world.loaded(name)
    producer = await topic.add_producer(PRODUCER, ProducerEnd())
    for number in range(messages):
        producer.publish(send_run([number]))
    await settle()
    producer.close()
    return topic


async def set_retention(world: AdminWorld, level: str, retention: dict[str, int]) -> None:
    path = f"{NAMESPACE}/retention" if level == "namespace" else "/admin/v2/persistent/public/default/t/retention"
    assert (await world.call("POST", path, retention)).status == 204


def is_there(world: AdminWorld, name: str = "t") -> bool:
    return world.service.catalogue.loaded_topic(TopicName.parse(name)) is not None


@pytest.mark.parametrize("retention", [FOR_EVER, SIZE_FOR_EVER], ids=["time and size", "time, not size"])
@pytest.mark.parametrize("level", ["namespace", "topic"])
def test_a_topic_without_subscriptions_is_kept_for_ever_where_its_retention_has_no_end(
    level: str, retention: dict[str, int]
) -> None:
    async def scenario(world: AdminWorld) -> None:
        await publish(world)
        await set_retention(world, level, retention)
        await asyncio.sleep(LONG_SECONDS)
        assert (await world.loaded("t")).ledger.entry_count == 5
        assert is_there(world)

    play(scenario)


@pytest.mark.parametrize("level", ["namespace", "topic"])
def test_a_topic_is_kept_for_the_time_of_its_retention_after_its_last_use_and_no_longer(level: str) -> None:
    async def scenario(world: AdminWorld) -> None:
        await publish(world)
        await set_retention(world, level, THREE_HOURS)
        await asyncio.sleep(3 * 3600 - ROUND_SECONDS)
        assert is_there(world)
        await publish(world)
        await asyncio.sleep(3 * 3600 - ROUND_SECONDS)
        assert is_there(world), "the time counts anew from the last use"
        await asyncio.sleep(3 * ROUND_SECONDS)
        assert not is_there(world)

    play(scenario)


@pytest.mark.parametrize(
    ("minutes", "megabytes", "is_kept"), [(-1, -1, True), (180, 1024, True), (0, 0, False), (0, 1024, False)]
)
def test_the_broker_s_default_retention_keeps_topics_too(minutes: int, megabytes: int, is_kept: bool) -> None:
    async def scenario(world: AdminWorld) -> None:
        await publish(world)
        await asyncio.sleep(3 * ROUND_SECONDS)
        assert is_there(world) == is_kept

    play(
        scenario,
        topic_settings=TopicSettings(default_retention_time_in_minutes=minutes, default_retention_size_in_mb=megabytes),
    )


def test_a_topic_in_which_nothing_is_stored_goes_whatever_its_retention() -> None:
    async def scenario(world: AdminWorld) -> None:
        await set_retention(world, "namespace", FOR_EVER)
        await publish(world, messages=0)
        await asyncio.sleep(3 * ROUND_SECONDS)
        assert not is_there(world)

    play(scenario)


def test_a_partition_is_kept_by_the_retention_of_its_topic_and_so_are_the_partitions_number_and_policies() -> None:
    async def scenario(world: AdminWorld) -> None:
        whole = TopicName.parse("t")
        await world.service.creation.create(whole, 2)
        await set_retention(world, "topic", FOR_EVER)
        await publish(world, "t-partition-0")
        await publish(world, "t-partition-1", messages=0)
        await asyncio.sleep(3 * ROUND_SECONDS)
        assert is_there(world, "t-partition-0")
        assert not is_there(world, "t-partition-1")
        assert (await world.service.catalogue.partitioned_topics.get(whole)).partitions == 2
        assert (await world.call("GET", "/admin/v2/persistent/public/default/t/retention")).json == FOR_EVER

    play(scenario, BrokerSettings(broker_delete_inactive_partitioned_topic_metadata_enabled=True))


def test_retention_also_keeps_a_topic_whose_subscriptions_are_caught_up() -> None:
    async def scenario(world: AdminWorld) -> None:
        topic = await publish(world)
        await set_retention(world, "namespace", THREE_HOURS)
        await topic.create_subscription("s", from_earliest=True, properties={})
        await world.done("POST", "t/subscription/s/skip_all")
        await asyncio.sleep(3 * 3600 - ROUND_SECONDS)
        assert is_there(world)
        await asyncio.sleep(3 * ROUND_SECONDS)
        assert not is_there(world)

    play(scenario, topic_settings=TopicSettings(broker_delete_inactive_topics_mode="delete_when_subscriptions_caught_up"))
