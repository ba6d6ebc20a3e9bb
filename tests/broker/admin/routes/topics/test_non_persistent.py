"""/admin/v2/non-persistent: what is as with other topics, what there is beyond it, and what is refused."""

from typing import Any

import pytest

from tests.broker.admin.admin_world import AdminWorld, Answer, play
from tests.broker.topic.topic_world import PRODUCER, SUBSCRIBE, ConsumerEnd, ProducerEnd

ROOT = "/admin/v2/non-persistent/public/default"
NAME = "non-persistent://public/default/"


async def ask(world: AdminWorld, method: str, path: str, body: Any = None) -> Answer:
    return await world.call(method, ROOT + path, body)


async def done(world: AdminWorld, method: str, path: str, body: Any = None) -> None:
    assert (await ask(world, method, path, body)).status == 204


def test_a_topic_is_there_while_it_is_loaded() -> None:
    async def scenario(world: AdminWorld) -> None:
        await done(world, "PUT", "/made")
        assert (await ask(world, "PUT", "/made")).status == 409
        await world.done("PUT", "made")  # the persistent one of that name is another
        assert (await ask(world, "GET", "")).json == [NAME + "made"]
        assert (await world.get("/admin/v2/persistent/public/default")).json == ["persistent://public/default/made"]
        await done(world, "PUT", "/made/unload")
        assert (await ask(world, "GET", "")).json == []
        assert (await ask(world, "PUT", "/made/unload")).status == 404
        assert (await ask(world, "GET", "/made/stats")).status == 404
        assert (await world.get("/admin/v2/non-persistent/public/none")).status == 404

    play(scenario)


def test_lists_are_of_a_bundle_too() -> None:
    async def scenario(world: AdminWorld) -> None:
        topics = [f"t{each}" for each in range(8)]
        for topic in topics:
            await done(world, "PUT", f"/{topic}")
        cuts = ("0x00000000_0x40000000", "0x40000000_0x80000000", "0x80000000_0xc0000000", "0xc0000000_0xffffffff")
        parts = [(await ask(world, "GET", f"/{cut}")).json for cut in cuts]
        assert sorted(name for part in parts for name in part) == [NAME + topic for topic in topics]
        assert len([part for part in parts if part]) > 1
        assert (await ask(world, "GET", f"?bundle={cuts[0]}")).json == parts[0]

    play(scenario)


def test_partitioned_topics_have_metadata_and_no_ledgers() -> None:
    async def scenario(world: AdminWorld) -> None:
        await done(world, "PUT", "/p/partitions", 2)
        assert (await ask(world, "GET", "/p/partitions")).json == {"partitions": 2, "deleted": False}
        assert (await ask(world, "GET", "/partitioned")).json == [NAME + "p"]
        assert (await ask(world, "PUT", "/p")).status == 409
        await world.loaded(NAME + "p-partition-1")
        stats = (await ask(world, "GET", "/p/partitioned-stats")).json
        assert list(stats["partitions"]) == [NAME + "p-partition-1"]
        await done(world, "POST", "/p/partitions", 3)
        assert await world.store.children("/managed-ledgers/public/default/non-persistent") == []
        await done(world, "DELETE", "/p/partitions")
        assert (await ask(world, "GET", "/partitioned")).json == (await ask(world, "GET", "")).json == []

    play(scenario)


def test_stats_tell_what_is_dropped_and_subscriptions_that_are_not_durable() -> None:
    async def scenario(world: AdminWorld) -> None:
        topic = await world.loaded(NAME + "t")
        await topic.subscribe(SUBSCRIBE, ConsumerEnd())
        await topic.add_producer(PRODUCER, ProducerEnd())
        stats = (await ask(world, "GET", "/t/stats")).json
        assert (stats["msgDropRate"], stats["publishers"][0]["msgDropRate"], stats["backlogQuotaLimitSize"]) == (0.0, 0.0, 0)
        assert (stats["subscriptions"]["s"]["msgDropRate"], stats["subscriptions"]["s"]["isDurable"]) == (0.0, False)
        assert (await ask(world, "GET", "/t/subscriptions")).json == ["s"]
        internal = (await ask(world, "GET", "/t/internalStats")).json
        assert (internal["numberOfEntries"], list(internal["cursors"]), "ledgers" in internal) == (0, ["s"], False)
        assert internal["cursors"]["s"]["cursorLedger"] == 0
        assert (await ask(world, "DELETE", "/t")).status == 412
        await done(world, "DELETE", "/t/subscription/s?force=true")
        await done(world, "DELETE", "/t?force=true")
        assert "pulsar_subscription_msg_drop_rate{" not in (await world.get("/metrics")).body.decode()

    play(scenario)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/t/terminate", 406),
        ("PUT", "/t/subscription/s", 400),
        ("GET", "/t/lastMessageId", 405),
        ("POST", "/t/subscription/s/skip_all", 405),
        ("PUT", "/t/compaction", 405),
    ],
)
def test_operations_on_stored_messages_are_refused(method: str, path: str, status: int) -> None:
    async def scenario(world: AdminWorld) -> None:
        await done(world, "PUT", "/t")
        assert (await ask(world, method, path)).status == status

    play(scenario)


def test_policies_of_a_topic_hold_for_it_alone() -> None:
    async def scenario(world: AdminWorld) -> None:
        for topic in ("persistent://public/default/t", NAME + "t"):
            await world.loaded(topic)
        await done(world, "POST", "/t/maxProducers", 1)
        assert (await ask(world, "GET", "/t/maxProducers")).json == 1
        limits = {name: topic.upkeep.policies.max_producers for name, topic in world.service.catalogue.loaded_topics.items()}
        assert (limits[NAME + "t"], limits["persistent://public/default/t"]) == (1, 0)

    play(scenario)
