"""A namespace that is deleted: nothing is made in it meanwhile, and nothing is known of it afterwards."""

import asyncio
from typing import Any, cast

import pytest

from broker.admin.routes.namespaces.deletion import NamespaceDeletion
from broker.errors import BrokerError, ServerError
from broker.schema.meters import NAMESPACES_MAX, SchemaMeters
from broker.schema.values import SchemaData, SchemaType
from broker.service.ownership.bundles import Bundles
from broker.service.ownership.namespace_bundles import NamespaceBundles
from broker.service.policies.topic_policies_events import change_events_of
from broker.service.settings import BrokerSettings
from broker.service.topic_name import NamespaceName, TopicName
from metadata.memory import MemoryStore
from ports.clock import RealClock
from tests.broker.admin.admin_world import AdminWorld, play

GONE = NamespaceName("public", "gone")
POLICIES = f"/admin/v2/namespaces/{GONE}"
FORCED = BrokerSettings(force_delete_namespace_allowed=True)
TOPIC = f"persistent://{GONE}/t"


async def used(world: AdminWorld) -> None:
    """A topic with policies of its own and a schema; one of the system's own with a schema; a client that asked for one."""
    assert (await world.call("PUT", POLICIES)).status == 204
    await world.loaded(TOPIC)
    assert (await world.call("POST", f"/admin/v2/persistent/{GONE}/t/maxProducers", 7)).status == 204
    schema = SchemaData(SchemaType.STRING, b"", {})
    for name in (TOPIC, f"persistent://{GONE}/__transaction_buffer_snapshot"):
        await world.service.schemas.put(TopicName.parse(name), schema)


def test_nothing_is_known_of_a_namespace_that_was_deleted() -> None:
    async def scenario(world: AdminWorld) -> None:
        service, store = world.service, world.store
        schemas = service.schemas.registry
        await used(world)
        followed = service.topic_policies._followed[GONE]
        assert str(GONE) in schemas.meters.by_namespace
        assert (await world.call("DELETE", f"{POLICIES}?force=true")).status == 204
        await asyncio.sleep(1)
        assert not any(str(GONE) in name for name in service.catalogue.loaded_topics), (
            "its log of policies was made again by who read it"
        )
        assert GONE not in service.topic_policies._followed
        assert str(GONE) not in service.namespace_policies._cached
        assert str(GONE) not in schemas.meters.by_namespace
        assert not any(str(GONE) in name for name in schemas._storage._kept)
        assert followed._unwatch is None
        assert not cast("Any", schemas._storage._ledgers).shared.ledgers, "of a schema"
        for root in ("/admin/policies", "/admin/local-policies", "/managed-ledgers", "/schemas"):
            assert not await store.exists(f"{root}/{GONE}"), root

    play(scenario, FORCED)


def test_a_log_of_policies_that_is_deleted_is_not_made_again_by_who_reads_it() -> None:
    async def scenario(world: AdminWorld) -> None:
        await used(world)
        await world.service.lifecycle.delete_topic(change_events_of(GONE), force=True)
        await asyncio.sleep(1)
        assert not await world.service.catalogue.topic_exists(change_events_of(GONE))
        assert not world.service.topic_policies.document(TopicName.parse(TOPIC))

    play(scenario, FORCED)


def test_a_namespace_that_is_made_again_begins_anew_and_its_policies_are_followed() -> None:
    async def scenario(world: AdminWorld) -> None:
        for turn in range(3):
            await used(world)
            topic = await world.loaded(TOPIC)
            assert topic.upkeep.policies.max_producers == 7, turn
            assert (await world.call("DELETE", f"{POLICIES}?force=true")).status == 204

    play(scenario, FORCED)


@pytest.mark.parametrize("name", [TOPIC, str(change_events_of(GONE)), f"non-persistent://{GONE}/t"])
def test_nothing_is_made_in_a_namespace_that_is_being_deleted(name: str) -> None:
    """A client that was disconnected comes back at once, and would create its topic again."""

    async def scenario(world: AdminWorld) -> None:
        await used(world)
        deletion = NamespaceDeletion(
            world.service.catalogue, world.service.lookup, world.service.lifecycle, world.service.schemas, world.store
        )
        await deletion._mark(f"/admin/policies/{GONE}", is_deleted=True)
        there = f"persistent://{GONE}/t"
        await world.service.lifecycle.unload_topic(TopicName.parse(there))
        await world.loaded(there)  # what is there is served until it is its turn
        topics = await world.service.catalogue.list_topics(GONE, system_topics=True)
        for topic in sorted(topics, key=lambda each: each.is_system):
            await world.service.lifecycle.delete_topic(topic, force=True)
        await asyncio.sleep(1)
        assert await world.service.catalogue.list_topics(GONE, system_topics=True) == []
        with pytest.raises(BrokerError) as refused:
            await world.loaded(name)
        assert refused.value.code is ServerError.TOPIC_NOT_FOUND
        await deletion._mark(f"/admin/policies/{GONE}", is_deleted=False)
        await world.loaded(name)

    play(scenario, FORCED)


def test_names_that_clients_make_up_do_not_fill_the_counts_of_schemas() -> None:
    meters = SchemaMeters()
    kept = meters.of("a/kept/t")
    for number in range(NAMESPACES_MAX + 10):
        meters.of(f"nobody/{number}/t")
        assert meters.of("a/kept/t") is kept
    assert len(meters.by_namespace) == NAMESPACES_MAX


def test_the_bundles_of_a_deleted_namespace_are_forgotten() -> None:
    async def scenario() -> None:
        store = MemoryStore(RealClock())
        cuts = NamespaceBundles(store, 4)
        assert isinstance(await cuts.of(GONE), Bundles)
        await store.put("/admin/local-policies/public/other", b"{}")
        for name in (str(GONE), "public/other"):
            await store.delete(f"/admin/local-policies/{name}")
        assert cuts.known(GONE) is None
        assert not cuts._stale

    asyncio.run(scenario())
