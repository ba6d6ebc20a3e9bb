"""Documents of topic policies: stored in `__change_events` as Apache writes them, found there again, and followed."""

import asyncio
from typing import Any

import pytest

from broker.errors import BrokerError
from broker.service.policies.topic_policies_avro import BadAvro, decode, encode
from broker.service.policies.topic_policies_events import PolicyEvent, change_events_of, event_of, message_of
from broker.service.policies.topic_policies_schema import PULSAR_EVENT
from broker.service.system_topics.event_log import ServedEventLog
from broker.service.topic_name import NamespaceName, TopicName
from tests.broker.admin.admin_world import AdminWorld, play

TOPIC = TopicName.parse("persistent://public/default/t")
NAMESPACE = NamespaceName("public", "default")

APACHES = bytes.fromhex(
    "020402000202147374616e64616c6f6e650002021470657273697374656e7402046e7302000200000000000000000000"
    "000200000000020a00000000000000000000000000000002000200020e72746f7069637302047431"
)
"""An event that an Apache Pulsar 4.0.8 wrote: maxProducers 5 on persistent://rtopics/ns/t1."""


def set_to(**members: Any) -> Any:
    return lambda document: document.update(members)


def test_an_event_of_apaches_is_read_and_written_the_same() -> None:
    found = decode(PULSAR_EVENT, APACHES)
    assert found["topicPoliciesEvent"]["policies"]["maxProducerPerTopic"] == 5
    assert encode(PULSAR_EVENT, found) == APACHES
    event = PolicyEvent("persistent://rtopics/ns/t1", False, found["topicPoliciesEvent"]["policies"])
    section = message_of(event, "standalone", "p", 0, 7)
    assert section.endswith(APACHES)
    assert event_of(section) == event


@pytest.mark.parametrize("cut", [1, 20, 87])
def test_an_event_that_is_cut_off_or_has_more_is_refused(cut: int) -> None:
    with pytest.raises(BadAvro):
        decode(PULSAR_EVENT, APACHES[:cut])
    with pytest.raises(BadAvro, match="left over"):
        decode(PULSAR_EVENT, APACHES + b"\0" * cut)


def test_stored_topic_policies_survive_an_unload_of_the_system_topic() -> None:
    async def scenario(world: AdminWorld) -> None:
        documents = world.service.topic_policies
        await documents.change(TOPIC, set_to(maxProducerPerTopic=5))
        await documents.change(TOPIC, set_to(maxConsumerPerTopic=7, maxProducerPerTopic=9), is_global=True)
        await documents.change(TOPIC, set_to(messageTTLInSeconds=3))
        for again in (False, True):
            if again:
                documents.forget(NAMESPACE)
                await world.service.lifecycle.unload_topic(change_events_of(NAMESPACE))
                await documents.load(NAMESPACE)
            assert documents.document(TOPIC)["maxProducerPerTopic"] == 5
            assert documents.document(TOPIC, is_global=True)["maxProducerPerTopic"] == 9
            held = documents.of(TOPIC.partition(3))
            assert {name: held[name] for name in held if name.startswith("m")} == {
                "maxProducerPerTopic": 5,
                "maxConsumerPerTopic": 7,
                "messageTTLInSeconds": 3,
            }

    play(scenario)


def test_an_unload_of_the_system_topic_is_followed_by_a_reading_that_hears_of_changes() -> None:
    async def scenario(world: AdminWorld) -> None:
        documents = world.service.topic_policies
        await documents.change(TOPIC, set_to(maxProducerPerTopic=5))
        heard: list[str] = []
        unwatch = documents.watch(lambda topic: heard.append(str(topic)))
        await world.service.lifecycle.unload_topic(change_events_of(NAMESPACE))
        assert documents.document(TOPIC)["maxProducerPerTopic"] == 5
        await documents.change(TOPIC, set_to(maxProducerPerTopic=6))
        assert documents.document(TOPIC)["maxProducerPerTopic"] == 6
        assert heard == [str(TOPIC)]
        unwatch()
        await documents.remove(TOPIC)
        assert documents.document(TOPIC) == {}
        assert heard == [str(TOPIC)]

    play(scenario)


def test_a_value_that_the_format_has_no_place_for_is_refused_and_nothing_is_stored() -> None:
    async def scenario(world: AdminWorld) -> None:
        documents = world.service.topic_policies
        with pytest.raises(BrokerError, match="maxProducerPerTopic: expected a whole number of 32 bits"):
            await documents.change(TOPIC, set_to(maxProducerPerTopic=1 << 40))
        assert documents.document(TOPIC) == {}

    play(scenario)


def test_reading_the_policies_of_a_namespace_that_has_none_makes_nothing() -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.loaded(str(TOPIC))
        assert not await world.service.catalogue.topic_exists(change_events_of(NAMESPACE))
        await world.service.lifecycle.create_topic(change_events_of(NAMESPACE))
        await world.service.topic_policies.change(TOPIC, set_to(maxProducerPerTopic=5))
        assert world.service.topic_policies.of(TOPIC)["maxProducerPerTopic"] == 5

    play(scenario)


def test_policies_are_kept_from_retention_by_the_cursor_of_compaction() -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.service.topic_policies.change(TOPIC, set_to(maxProducerPerTopic=5))
        topic = await world.loaded(str(change_events_of(NAMESPACE)))
        assert topic.stats().subscriptions["__compaction"].msg_backlog == 1

    play(scenario)


def test_a_topic_that_is_deleted_takes_its_policies_with_it() -> None:
    async def scenario(world: AdminWorld) -> None:
        service, documents = world.service, world.service.topic_policies
        whole = TopicName.parse("persistent://public/default/p")
        await service.lifecycle.create_topic(TOPIC)
        await service.creation.create(whole, 2)
        for name in (TOPIC, whole):
            await documents.change(name, set_to(maxProducerPerTopic=5))
            await documents.change(name, set_to(maxProducerPerTopic=5), is_global=True)
        await service.lifecycle.delete_topic(TOPIC)
        assert documents.of(TOPIC) == {}
        await service.lifecycle.delete_topic(whole.partition(0))
        assert documents.of(whole)["maxProducerPerTopic"] == 5
        await service.deletion.delete(whole)
        assert documents.of(whole) == {}

    play(scenario)


def test_policies_of_another_writer_are_heard_of_after_an_unload_of_the_system_topic() -> None:
    async def scenario(world: AdminWorld) -> None:
        documents = world.service.topic_policies
        await documents.change(TOPIC, set_to(maxProducerPerTopic=5))
        await world.service.lifecycle.unload_topic(change_events_of(NAMESPACE))
        theirs = ServedEventLog(await world.loaded(str(change_events_of(NAMESPACE))), world.service.producer_names.new)
        event = PolicyEvent(str(TOPIC), False, {"maxProducerPerTopic": 8})
        await theirs.append(lambda name: message_of(event, "standalone", name, 0, 7))
        await asyncio.sleep(1)  # of virtual time
        assert documents.document(TOPIC) == {"maxProducerPerTopic": 8}

    play(scenario)
