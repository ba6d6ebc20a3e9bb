"""Routes that tell of one topic, its permissions and a subscription's properties, as an Apache Pulsar 4.0.8 answers them."""

import asyncio
import json
import time
from pathlib import Path

import pytest
from pyroaring import BitMap

from managed_ledger.contract import ManagedLedgerError
from tests.broker.admin.admin_world import NAME, AdminWorld, play
from tests.broker.admin.routes.topics.test_cursors import filled

FIELDS = Path(__file__).with_name("apache_stats_fields.json")
"""Members of the stats of one topic, its subscription, consumer and publisher, read off an Apache Pulsar 4.0.8."""


def test_the_last_message_and_the_size_from_a_message_on_are_told() -> None:
    async def scenario(world: AdminWorld) -> None:
        topic = await filled(world)
        last = {"ledgerId": 3, "entryId": 9, "partitionIndex": -1, "batchSize": 0, "batchIndex": -1}
        assert (await world.topic("GET", "t/lastMessageId")).json == last
        whole = (await world.topic("PUT", "t/backlogSize", {"ledgerId": -1, "entryId": -1})).json
        assert whole == topic.ledger.size_bytes
        half = (await world.topic("PUT", "t/backlogSize", {"ledgerId": 3, "entryId": 5})).json
        assert half == whole // 2
        assert (await world.topic("GET", "t/backlog")).json["messageBacklog"] == 10
        for method, path in (("GET", "lastMessageId"), ("PUT", "backlogSize"), ("GET", "backlog"), ("GET", "internal-info")):
            answer = await world.topic(method, f"none/{path}", {"ledgerId": 0, "entryId": 0} if method == "PUT" else None)
            assert answer.refused == (404, f"Topic {NAME}/none not found")

    play(scenario)


@pytest.mark.parametrize(
    ("query", "entry"),
    [
        ("initialPosition=earliest&messagePosition=2", 1),
        ("initialPosition=latest&messagePosition=1", 9),
        ("", 9),
        ("initialPosition=foo&messagePosition=2", 8),
        ("initialPosition=earliest&messagePosition=200", 9),
        ("initialPosition=earliest&messagePosition=-2", 0),
    ],
)
def test_a_message_is_examined_from_either_end(query: str, entry: int) -> None:
    async def scenario(world: AdminWorld) -> None:
        await filled(world)
        answer = await world.topic("GET", f"t/examinemessage?{query}")
        assert answer.headers["x-pulsar-message-id"] == f"3:{entry}"

    play(scenario)


def test_offload_is_501_for_an_existing_topic_and_404_for_a_missing_one() -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.done("PUT", "t")
        for method in ("GET", "PUT"):
            assert (await world.topic(method, "t/offload")).refused == (501, "Ledgers are not offloaded yet")
            assert (await world.topic(method, "none/offload")).status == 404

    play(scenario)


def test_the_compaction_status_is_shown_and_a_topic_that_cannot_be_compacted_says_so() -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.done("PUT", "t")
        await world.done("PUT", "p/partitions", 2)
        assert (await world.topic("GET", "t/compaction")).json == {"status": "NOT_RUN", "lastError": ""}
        for name, refused in (("t", "t"), ("p", "p-partition-0"), ("p-partition-1", "p-partition-1")):
            status, reason = (await world.topic("PUT", f"{name}/compaction")).refused
            assert (status, reason.endswith(f"/{refused} has no ledgers to compact")) == (405, True)
        for method in ("GET", "PUT"):
            assert (await world.topic(method, "none/compaction")).status == 404

    play(scenario)


def test_permissions_of_a_topic_are_kept_with_those_of_its_namespace() -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.done("PUT", "t")
        await world.done("PUT", "p/partitions", 1)
        assert (await world.topic("GET", "t/permissions")).json == {}
        await world.done("POST", "t/permissions/reader", ["consume"])
        await world.done("POST", "p/permissions/writer", ["produce"])
        assert (await world.topic("GET", "t/permissions")).json == {"reader": ["consume"]}
        assert (await world.topic("GET", "p-partition-0/permissions")).json == {"writer": ["produce"]}
        await world.done("DELETE", "t/permissions/reader")
        await world.done("DELETE", "t/permissions/nobody")
        assert (await world.topic("GET", "t/permissions")).json == {}
        assert (await world.topic("POST", "t/permissions/reader", ["read"])).status == 400
        assert (await world.topic("POST", "none/permissions/reader", ["consume"])).status == 404

    play(scenario)


def test_properties_of_a_subscription_are_replaced_on_each_partition_that_has_it() -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.done("PUT", "t")
        await world.done("PUT", "p/partitions", 2)
        for topic in ("t", "p"):
            await world.done("PUT", f"{topic}/subscription/a%2Fb")
            await world.done("PUT", f"{topic}/subscription/a%2Fb/properties", {"x": "y"})
            await world.done("PUT", f"{topic}/subscription/a%2Fb/properties", {"a": "b"})
            assert (await world.topic("GET", f"{topic}/subscription/a%2Fb/properties")).json == {"a": "b"}
            reason = f"Subscription none not found for topic {NAME}/{topic}"
            assert (await world.topic("GET", f"{topic}/subscription/none/properties")).refused == (404, reason)

    play(scenario)


def test_missed_partitions_are_made_and_their_internal_stats_told() -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.done("PUT", "p/partitions", 2)
        await world.store.delete("/managed-ledgers/public/default/persistent/p-partition-1")
        assert list((await world.topic("GET", "p/partitioned-internalStats")).json["partitions"]) == [f"{NAME}/p-partition-0"]
        await world.done("POST", "p/createMissedPartitions")
        told = (await world.topic("GET", "p/partitioned-internalStats")).json
        assert list(told["partitions"]) == [f"{NAME}/p-partition-{index}" for index in (0, 1)]
        assert (await world.topic("POST", "t/createMissedPartitions")).refused == (404, f"Topic {NAME}/t does not exist")

    play(scenario)


def test_stats_have_every_member_that_apaches_have() -> None:
    async def scenario(world: AdminWorld) -> None:
        await filled(world)
        stats = (await world.topic("GET", "t/stats")).json
        apache = json.loads(FIELDS.read_text())
        assert set(apache["topic"]) - set(stats) == set()
        assert set(apache["subscription"]) - set(stats["subscriptions"]["s"]) == set()
        internal = (await world.topic("GET", "t/internalStats")).json
        assert set(apache["internal"]) - set(internal) == set()
        assert set(apache["cursor"]) - set(internal["cursors"]["s"]) == set()
        assert set(apache["ledger"]) - set(internal["ledgers"][0]) == set()

    play(scenario)


def test_stats_leave_out_and_look_up_what_is_asked_for() -> None:
    async def scenario(world: AdminWorld) -> None:
        await filled(world)
        plain = (await world.topic("GET", "t/stats")).json
        assert plain["subscriptions"]["s"]["backlogSize"] > 0
        query = "getEarliestTimeInBacklog=true&subscriptionBacklogSize=false&excludeConsumers=true&excludePublishers=true"
        stats = (await world.topic("GET", f"t/stats?{query}")).json
        assert stats["earliestMsgPublishTimeInBacklogs"] == stats["subscriptions"]["s"]["earliestMsgPublishTimeInBacklog"] > 0
        assert stats["subscriptions"]["s"]["backlogSize"] == -1
        await world.done("POST", "t/subscription/s/skip_all")
        empty = (await world.topic("GET", f"t/stats?{query}")).json
        assert empty["subscriptions"]["s"]["earliestMsgPublishTimeInBacklog"] == -1, "it has no backlog"
        assert empty["earliestMsgPublishTimeInBacklogs"] == 0
        assert plain["earliestMsgPublishTimeInBacklogs"] == 0

    play(scenario)


def test_stats_tell_the_holes_of_each_subscription_and_whose_backlog_is_the_oldest() -> None:
    async def scenario(world: AdminWorld) -> None:
        topic = await filled(world)
        await world.done("PUT", "t/subscription/ahead", {"ledgerId": 3, "entryId": 4})
        topic.subscriptions.get("s").cursor.acknowledge_entries(3, BitMap([2, 3, 5]))
        stats = (await world.topic("GET", "t/stats")).json
        assert stats["oldestBacklogMessageSubscriptionName"] == "s"
        age = time.time() - 1  # the first message is of the first second of 1970
        assert age - 60 < stats["oldestBacklogMessageAgeSeconds"] <= age
        ranges = {name: one["nonContiguousDeletedMessagesRanges"] for name, one in stats["subscriptions"].items()}
        assert (ranges, stats["nonContiguousDeletedMessagesRanges"]) == ({"s": 2, "ahead": 0}, 2)
        await world.done("POST", "t/all_subscription/expireMessages/1")
        stats = (await world.topic("GET", "t/stats")).json
        assert stats["oldestBacklogMessageAgeSeconds"] == -1
        assert "oldestBacklogMessageSubscriptionName" not in stats

    play(scenario)


def test_stats_are_told_without_the_age_of_the_backlog_when_the_log_cannot_be_read() -> None:
    async def scenario(world: AdminWorld) -> None:
        topic = await filled(world)

        async def fail(*_: object) -> None:
            raise ManagedLedgerError("no bookies")

        async def hang(*_: object) -> None:
            await asyncio.get_running_loop().create_future()

        for read in (fail, hang):
            topic.ledger.read = read
            stats = (await world.topic("GET", "t/stats")).json
            assert (stats["oldestBacklogMessageAgeSeconds"], stats["subscriptions"]["s"]["msgBacklog"]) == (-1, 10)

    play(scenario)
