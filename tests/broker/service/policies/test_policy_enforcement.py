"""Policies of namespaces and topics reach loaded topics, whichever broker changed them, and decide which topics are created."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from broker.errors import BrokerError, ServerError
from broker.policies.policies import BacklogQuota, RetentionPolicy
from broker.service.errors import TopicNotFound
from broker.service.settings import BrokerSettings
from broker.service.topic_name import NamespaceName, TopicName
from tests.broker.admin.admin_world import NAME, AdminWorld, play

NAMESPACE = NamespaceName("public", "default")
PARTITIONED = {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 3}
NEVER = {"allowAutoTopicCreation": False, "topicType": "non-partitioned"}


async def say(world: AdminWorld, **members: Any) -> None:
    await world.service.namespace_policies.change(NAMESPACE, lambda document: document.update(members))


async def say_of(world: AdminWorld, topic: str, **members: Any) -> None:
    await world.service.topic_policies.change(TopicName.parse(topic), lambda document: document.update(members))


def test_a_topic_s_own_policies_hold_before_its_namespace_s_on_it_and_on_its_partitions() -> None:
    async def scenario(world: AdminWorld) -> None:
        service, parts = world.service, TopicName.parse(f"{NAME}/parts")
        await service.creation.create(parts, 2)
        topics = [await world.loaded(f"{NAME}/own"), await world.loaded(str(parts.partition(1)))]
        other = await world.loaded(f"{NAME}/parts-partition")
        await say(world, max_producers_per_topic=5)
        assert [topic.upkeep.policies.max_producers for topic in (*topics, other)] == [5, 5, 5]
        await say_of(world, f"{NAME}/own", maxProducerPerTopic=2)
        await say_of(world, str(parts), maxProducerPerTopic=2)
        assert [topic.upkeep.policies.max_producers for topic in (*topics, other)] == [2, 2, 5]
        await service.topic_policies.remove(parts)
        assert topics[1].upkeep.policies.max_producers == 5
        await service.lifecycle.unload_topic(TopicName.parse(f"{NAME}/own"))
        assert (await world.loaded(f"{NAME}/own")).upkeep.policies.max_producers == 2

    play(scenario)


def test_a_topic_s_policies_reach_very_many_partitions_in_slices_but_those_unloaded_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(world: AdminWorld) -> None:
        parts, topic = TopicName.parse(f"{NAME}/parts"), await world.loaded(f"{NAME}/own")
        names = [str(parts), *(str(parts.partition(number)) for number in range(120))]
        loaded, reached, policies = dict.fromkeys(names, topic), list[str](), world.service.policies
        monkeypatch.setattr(policies, "_topics", SimpleNamespace(all=loaded))
        monkeypatch.setattr(policies, "put_in_force", lambda name, _: reached.append(str(name)))
        policies._topic_changed(parts)
        assert reached == names[:51]
        del loaded[names[-1]]
        for _ in range(3):
            await asyncio.sleep(0)
        assert reached == names[:-1]

    play(scenario)


def test_nothing_goes_of_a_topic_whose_own_policies_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """They may say that it is to be kept."""

    async def scenario(world: AdminWorld) -> None:
        topic = await world.loaded(f"{NAME}/t")
        await say(world, message_ttl_in_seconds=60, retention_policies={"retentionTimeInMinutes": 0, "retentionSizeInMB": 0})
        unreadable = {"retentionPolicies": {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}, "maxProducerPerTopic": "?"}
        monkeypatch.setattr(world.service.topic_policies, "of", lambda topic: unreadable)
        world.service.policies.put_in_force(TopicName.parse(f"{NAME}/t"), topic)
        found = topic.upkeep.policies
        assert found.retention == RetentionPolicy(-1, -1)
        assert (found.message_ttl_seconds, found.inactive.is_deleted) == (0, False)
        assert (found.size_quota, found.age_quota) == (BacklogQuota(), BacklogQuota())
        assert topic.ledger.retention == (-1, -1)

    play(scenario)


def test_a_namespace_says_whether_topics_are_made_and_with_how_many_partitions() -> None:
    async def scenario(world: AdminWorld) -> None:
        service = world.service
        await say(world, autoTopicCreationOverride=PARTITIONED)
        assert (await service.creation.partitions(TopicName.parse(f"{NAME}/p"), may_create=True)).partitions == 3
        await say(world, autoTopicCreationOverride=NEVER)
        with pytest.raises(TopicNotFound):
            await service.creation.partitions(TopicName.parse(f"{NAME}/q"), may_create=True)
        with pytest.raises(BrokerError) as refusal:
            await world.loaded(f"{NAME}/q")
        assert refusal.value.code is ServerError.TOPIC_NOT_FOUND
        await say(world, autoTopicCreationOverride=None)
        await world.loaded(f"{NAME}/q")

    play(scenario)


def test_a_namespace_may_allow_what_the_broker_does_not() -> None:
    async def scenario(world: AdminWorld) -> None:
        with pytest.raises(BrokerError):
            await world.loaded(f"{NAME}/q")
        await say(world, autoTopicCreationOverride={"allowAutoTopicCreation": True, "topicType": "non-partitioned"})
        await world.loaded(f"{NAME}/q")

    play(scenario, BrokerSettings(allow_auto_topic_creation=False))


def test_a_namespace_has_room_for_as_many_topics_as_it_says() -> None:
    async def scenario(world: AdminWorld) -> None:
        await say(world, max_topics_per_namespace=2)
        await world.loaded(f"{NAME}/a")
        await world.loaded(f"{NAME}/b")
        with pytest.raises(BrokerError, match="maximum number of topics") as refusal:
            await world.loaded(f"{NAME}/c")
        assert refusal.value.code is ServerError.NOT_ALLOWED
        await say(world, max_topics_per_namespace=0)
        await world.loaded(f"{NAME}/c")

    play(scenario, BrokerSettings(max_topics_per_namespace=1))


def test_a_change_by_an_apache_broker_is_in_force_when_the_watch_has_told() -> None:
    async def scenario(world: AdminWorld) -> None:
        topic = await world.loaded(f"{NAME}/t")
        path = "/admin/policies/public/default"
        found = await world.store.get(path)
        assert found is not None
        document = {**json.loads(found.value), "publishMaxMessageRate": {"standalone": {"publishThrottlingRateInMsg": 7}}}
        await world.store.put(path, json.dumps(document).encode())
        await asyncio.sleep(1)
        assert topic.upkeep.policies.publish_rate.messages == 7

    play(scenario)
