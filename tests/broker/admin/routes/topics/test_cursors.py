"""Moving places over REST: skip, clear, expire, reset, peek, analyze, truncate; what is moved where, and what is refused."""

import json
import zlib
from dataclasses import replace
from typing import Any

import cramjam
import pytest
from pyroaring import BitMap

from broker.admin.stats import internal_stats
from broker.service.settings import BrokerSettings
from broker.topic.contract import SubscriptionType
from managed_ledger.contract import HoleStats, Skipped
from tests.broker.admin.admin_world import NAME, TOPICS, AdminWorld, play
from tests.broker.topic.topic_world import SUBSCRIBE, ConsumerEnd, ack_run, payload, send_run, settle
from wire.generated.pulsar_api_pb2 import LZ4, SNAPPY, ZLIB, ZSTD, MessageMetadata
from wire.payloads import payload_section
from wire.position import Position


async def filled(world: AdminWorld, *payloads: bytes) -> Any:
    """A topic `t` with a subscription `s` and these messages (ledger 3, entries from 0 on)."""
    await world.done("PUT", "t/subscription/s", {"ledgerId": -1, "entryId": -1})
    topic = await world.loaded(f"{NAME}/t")
    bodies = payloads or [payload(publish_time=1000 * number) for number in range(1, 11)]
    await topic.ledger.append(send_run(range(len(bodies)), bodies).entries)
    await settle()
    return topic


def mark(topic: Any, name: str = "s") -> Any:
    return topic.subscriptions.get(name).cursor.mark_delete


def backlog(topic: Any, name: str = "s") -> int:
    return int(topic.stats().subscriptions[name].msg_backlog)


@pytest.mark.parametrize(
    "path",
    [
        f"{TOPICS}/t/all_subscription/expireMessages/1",
        "/admin/v2/namespaces/public/default/clearBacklog",
        "/admin/v2/namespaces/public/default/0x00000000_0xffffffff/clearBacklog",
    ],
    ids=["expire", "clear", "clear in a bundle"],
)
def test_operations_on_all_subscriptions_leave_out_compactions_own(path: str) -> None:
    async def scenario(world: AdminWorld) -> None:
        topic = await filled(world)
        await topic.create_subscription("__compaction", from_earliest=True, properties={})
        assert (await world.call("POST", path)).status == 204
        assert (backlog(topic), backlog(topic, "__compaction")) == (0, 10)

    play(scenario, BrokerSettings(default_number_of_namespace_bundles=1))


def test_an_age_of_zero_expires_nothing() -> None:
    """Apache: MessageImpl.isEntryExpired."""

    async def scenario(world: AdminWorld) -> None:
        topic = await filled(world)
        await world.done("POST", "t/subscription/s/expireMessages/0")
        await world.done("POST", "t/all_subscription/expireMessages/0")
        assert backlog(topic) == 10

    play(scenario)


def test_skipping_leaves_consumers_connected_and_counts_what_is_not_acknowledged() -> None:
    async def scenario(world: AdminWorld) -> None:
        topic = await filled(world)
        sink = ConsumerEnd()
        consumer = await topic.subscribe(replace(SUBSCRIBE, type=SubscriptionType.SHARED), sink)
        consumer.flow(5)
        await settle()
        consumer.acknowledge_run(ack_run((3, 1), (3, 3)))
        await world.done("POST", "t/subscription/s/skip/3")
        assert mark(topic) == Position(3, 4)
        consumer.flow(1000)
        await settle()
        assert sink.entries == list(range(10))
        assert sink.heard == []
        assert consumer.stats().unacked_messages == 5
        await world.done("POST", "t/subscription/s/skip_all")
        assert backlog(topic) == 0
        assert consumer.stats().unacked_messages == 0
        await world.done("POST", "t/subscription/s/skip/3")

    play(scenario)


def test_expiring_by_age_and_by_position() -> None:
    async def scenario(world: AdminWorld) -> None:
        topic = await filled(world)
        now_ms = topic._clock.now_ms()
        await world.done("POST", f"t/subscription/s/expireMessages/{now_ms // 1000 - 3}")
        assert 1 <= backlog(topic) <= 8
        await world.done("POST", "t/subscription/s/expireMessages", {"ledgerId": 3, "entryId": 7})
        assert mark(topic) == Position(3, 7)
        await world.done("POST", "t/subscription/s/expireMessages", {"ledgerId": 9, "entryId": 7})
        assert mark(topic) == Position(3, 7)
        stats = topic.stats().subscriptions["s"]
        assert stats.total_msg_expired == 8
        await world.done("PUT", "t/subscription/late")
        await world.done("POST", "t/all_subscription/expireMessages/1")
        assert backlog(topic) == 0
        for path, body in (("expireMessages/1", None), ("expireMessages", {"ledgerId": 3, "entryId": 7})):
            answer = await world.topic("POST", f"t/subscription/s/{path}", body)
            assert answer.status == 409

    play(scenario)


def test_resetting_by_time_by_id_and_into_a_batch() -> None:
    async def scenario(world: AdminWorld) -> None:
        topic = await filled(world, *[payload(publish_time=1000 * number, batch=70) for number in range(1, 11)])
        for path, body, wanted in [
            ("resetcursor/5000", None, (3, 3)),
            ("resetcursor/1", None, (3, -1)),
            ("resetcursor/99999", None, (3, 9)),
            ("resetcursor", {"ledgerId": 3, "entryId": 6}, (3, 5)),
            ("resetcursor", {"ledgerId": 3, "entryId": 6, "isExcluded": True}, (3, 6)),
            ("resetcursor", {"ledgerId": 3, "entryId": 6, "partitionIndex": -1, "batchIndex": -1, "excluded": True}, (3, 6)),
            ("resetcursor", {"ledgerId": "3", "entryId": "5", "batchIndex": "-1", "excluded": "true"}, (3, 5)),
            ("resetcursor", {"ledgerId": 3, "entryId": 6, "batchIndex": 69, "isExcluded": True}, (3, 6)),
            ("resetcursor", {"ledgerId": -1, "entryId": -1}, (3, -1)),
            ("resetcursor", {"ledgerId": 3, "entryId": 2, "batchIndex": 0}, (3, 1)),
            ("resetcursor", {"ledgerId": 3, "entryId": 2, "batchIndex": 66}, (3, 1)),
        ]:
            await world.done("POST", f"t/subscription/s/{path}", body)
            assert mark(topic) == Position(*wanted), body
        words = topic.subscriptions.get("s").cursor.unacknowledged_batch_indexes(Position(3, 2))
        assert words == (0, 0b111100)
        await world.done("PUT", "t/subscription/new", {"ledgerId": 3, "entryId": 4, "properties": {"a": "b"}})
        assert mark(topic, "new") == Position(3, 3)
        assert topic.subscriptions.get("new").cursor.cursor_properties == {"a": "b"}

    play(scenario)


def test_peeking_shows_what_is_before_a_subscription() -> None:
    async def scenario(world: AdminWorld) -> None:
        metadata = MessageMetadata(producer_name="p\nq", sequence_id=4, publish_time=1500, partition_key="k")
        metadata.properties.add(key="a", value="ä")
        metadata.compression, metadata.uncompressed_size = ZLIB, 5
        packed = payload_section(metadata, zlib.compress(b"hello"))[6:]
        topic = await filled(world, payload(publish_time=1, batch=3), packed, payload(), packed[:-9])
        first = await world.topic("GET", "t/subscription/s/position/1")
        assert (first.status, first.body) == (200, b"body")
        assert first.headers["x-pulsar-num-batch-message"] == "3"
        second = await world.topic("GET", "t/subscription/s/position/2")
        assert second.body == b"hello"
        assert second.headers["x-pulsar-message-id"] == "3:1"
        assert second.headers["x-pulsar-publish-time"] == "1970-01-01T00:00:01.500Z"
        assert second.headers["x-pulsar-producer-name"] == "p q"
        assert json.loads(second.headers["x-pulsar-property"]) == {"a": "ä"}
        assert (await world.topic("GET", "t/ledger/3/entry/1")).body == b"hello"
        assert (await world.topic("GET", "t/ledger/3/entry/9")).refused == (404, "Message id not found")
        assert (await world.topic("GET", "t/subscription/s/position/5")).refused == (404, "Message not found")
        broken = await world.topic("GET", "t/subscription/s/position/4")
        assert broken.status == 422
        assert "3:3" in broken.refused[1]
        await world.done("POST", "t/subscription/s/skip/1")
        assert (await world.topic("GET", "t/subscription/s/position/1")).body == b"hello"
        assert backlog(topic) == 3

    play(scenario)


@pytest.mark.parametrize("compression", [LZ4, ZLIB, ZSTD, SNAPPY])
@pytest.mark.parametrize("stated", [1000, 999, 1001, 1 << 31])
def test_a_compressed_message_is_shown_plain_and_never_larger_than_it_says(compression: int, stated: int) -> None:
    compress: dict[int, Any] = {
        LZ4: lambda body: cramjam.lz4.compress_block(body, store_size=False),
        ZLIB: zlib.compress,
        ZSTD: cramjam.zstd.compress,
        SNAPPY: cramjam.snappy.compress_raw,
    }

    async def scenario(world: AdminWorld) -> None:
        metadata = MessageMetadata(producer_name="p", sequence_id=4, publish_time=1, uncompressed_size=stated)
        metadata.compression = compression  # type: ignore[assignment]  # the generated enum is an int
        await filled(world, payload_section(metadata, bytes(compress[compression](b"x" * 1000)))[6:])
        answer = await world.topic("GET", "t/subscription/s/position/1")
        if stated == 1000:
            assert answer.body == b"x" * 1000
        elif answer.status == 200:  # a zlib stream that is cut where the message says it ends
            assert (compression, answer.body) == (ZLIB, b"x" * stated)
        else:
            assert answer.status == 422
            assert "entry 3:0" in answer.refused[1]

    play(scenario)


def test_the_backlog_is_counted_in_messages_by_reading_it() -> None:
    async def scenario(world: AdminWorld) -> None:
        topic = await filled(world, payload(batch=5), payload(), payload(marker=1), payload(batch=7))
        counted = (await world.topic("POST", "t/subscription/s/analyzeBacklog")).json
        assert (counted["entries"], counted["messages"], counted["markerMessages"]) == (4, 14, 1)
        assert (counted["aborted"], counted["firstMessageId"], counted["lastMessageId"]) == (False, "3:0", "3:3")
        topic.subscriptions.get("s").cursor.acknowledge_cumulative(Position(3, 1))
        counted = (await world.topic("POST", "t/subscription/s/analyzeBacklog", {"ledgerId": 3, "entryId": 3})).json
        assert (counted["entries"], counted["messages"]) == (1, 7)
        await world.done("POST", "t/subscription/s/skip_all")
        counted = (await world.topic("POST", "t/subscription/s/analyzeBacklog")).json
        assert (counted["entries"], counted["aborted"], counted["firstMessageId"]) == (0, False, None)

    play(scenario)


def test_internal_stats_show_ledgers_and_holes() -> None:
    async def scenario(world: AdminWorld) -> None:
        topic = await filled(world)
        topic.ledger.roll_over()
        topic.subscriptions.get("s").cursor.acknowledge_entries(3, BitMap([0, 2, 3, 5]))
        stats = (await world.topic("GET", "t/internalStats")).json
        assert [(each["ledgerId"], each["entries"]) for each in stats["ledgers"]] == [(3, 10), (5, 0)]
        cursor = stats["cursors"]["s"]
        assert cursor["markDeletePosition"] == "3:0"
        assert cursor["individuallyDeletedMessages"] == "[(3:1..3:3],(3:4..3:5]]"
        assert cursor["totalNonContiguousDeletedMessagesRange"] == 2
        assert "holeSegments" not in cursor
        assert cursor["numberOfEntriesSinceFirstNotAckedMessage"] == 6
        assert (await world.topic("GET", "t/messageid/5000")).json == {"ledgerId": 3, "entryId": 4, "partitionIndex": -1}

    play(scenario)


def test_internal_stats_show_how_very_many_holes_are_kept_and_only_some_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(world: AdminWorld) -> None:
        topic = await filled(world)
        cursor = topic.subscriptions.get("s").cursor
        cursor.acknowledge_entries(3, BitMap([2, 4, 6]))
        kept = HoleStats(3, 3, is_segmented=True, segments=2, resident_segments=1, switches=1, saved_bytes=77)
        cursor.hole_stats = lambda: kept
        monkeypatch.setattr(internal_stats, "_RANGES_SHOWN_MAX", 2)
        shown = (await world.topic("GET", "t/internalStats")).json["cursors"]["s"]
        assert shown["individuallyDeletedMessages"] == "[(3:1..3:2],(3:3..3:4]]"
        assert shown["totalNonContiguousDeletedMessagesRange"] == 3
        told = shown["holeSegments"]
        assert (told["inUse"], told["segments"], told["residentSegments"]) == (True, 2, 1)
        assert (told["switches"], told["returns"], told["lastSaveBytes"]) == (1, 0, 77)

    play(scenario)


def test_internal_stats_show_what_was_skipped_and_who_is_too_far_behind() -> None:
    async def scenario(world: AdminWorld) -> None:
        topic = await filled(world)
        stats = (await world.topic("GET", "t/internalStats")).json
        assert stats["cursors"]["s"]["active"] is True
        assert "skippedNonRecoverable" not in stats
        topic.ledger.skipped = Skipped(entries=3, cursor_ledgers=1)
        topic.ledger.active_from = lambda: Position(3, 1)
        stats = (await world.topic("GET", "t/internalStats")).json
        assert stats["cursors"]["s"]["active"] is False
        assert stats["skippedNonRecoverable"] == {
            "entries": 3, "ledgers": 0, "cursorEntries": 0, "cursorLedgers": 1, "cursors": 0,
        }  # fmt: skip

    play(scenario)


def test_a_system_topic_is_not_terminated() -> None:
    """AdminApi2Test.testTerminateSystemTopic: no policy of a topic could be set any more."""

    async def scenario(world: AdminWorld) -> None:
        refused = (405, "Termination of a system topic is not allowed")
        for path in ("__change_events/terminate", "__change_events/terminate/partitions"):
            assert (await world.topic("POST", path)).refused == refused

    play(scenario)


def test_a_terminated_topic_takes_no_more_and_its_last_message_is_told() -> None:
    async def scenario(world: AdminWorld) -> None:
        topic = await filled(world)
        last = {"ledgerId": 3, "entryId": 9, "batchSize": 0, "batchIndex": -1}
        for _ in range(2):
            assert (await world.topic("POST", "t/terminate")).json == {**last, "partitionIndex": -1}
        assert topic.ledger.is_terminated
        assert (await world.topic("POST", "t/terminate/partitions")).status == 405
        await world.done("PUT", "p/partitions", 2)
        assert (await world.topic("POST", "p/terminate")).status == 405
        part = await world.loaded(f"{NAME}/p-partition-1")
        await part.ledger.append(send_run([0]).entries)
        ended = (await world.topic("POST", "p/terminate/partitions")).json
        assert (ended["1"]["ledgerId"], ended["1"]["entryId"], ended["1"]["partitionIndex"]) == (3, 0, 1)
        assert part.ledger.is_terminated

    play(scenario)


def test_truncating_clears_every_backlog_and_trims_despite_retention() -> None:
    async def scenario(world: AdminWorld) -> None:
        topic = await filled(world)
        await world.done("PUT", "t/subscription/other", {"ledgerId": -1, "entryId": -1})
        assert backlog(topic, "other") == 10
        await world.done("DELETE", "t/truncate")
        assert (backlog(topic), backlog(topic, "other")) == (0, 0)
        assert topic.ledger.trims_despite_retention == 1

    play(scenario)


def test_on_partitions_each_is_done_or_it_is_said_that_it_cannot() -> None:
    async def scenario(world: AdminWorld) -> None:
        await world.done("PUT", "p/partitions", 2)
        await world.done("PUT", "p/subscription/s", {"ledgerId": -1, "entryId": -1})
        parts = [await world.loaded(f"{NAME}/p-partition-{index}") for index in range(2)]
        for part in parts:
            await part.ledger.append(send_run([0, 1]).entries)
        for method, path, body in [
            ("POST", "subscription/s/skip/1", None),
            ("GET", "subscription/s/position/1", None),
            ("POST", "subscription/s/resetcursor", {"ledgerId": 3, "entryId": 0}),
            ("POST", "subscription/s/expireMessages", {"ledgerId": 3, "entryId": 0}),
            ("GET", "internalStats", None),
        ]:
            assert (await world.topic(method, f"p/{path}", body)).status == 405, path
        await world.done("POST", "p/subscription/s/skip_all")
        assert [backlog(part) for part in parts] == [0, 0]
        await world.done("POST", "p/subscription/s/resetcursor/0")
        assert [backlog(part) for part in parts] == [2, 2]
        await world.done("DELETE", "p/truncate")
        assert [backlog(part) for part in parts] == [0, 0]

    play(scenario)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "skip_all", None),
        ("POST", "skip/1", None),
        ("POST", "expireMessages/1", None),
        ("POST", "resetcursor/1", None),
        ("POST", "resetcursor", {"ledgerId": 1, "entryId": 1}),
        ("GET", "position/1", None),
        ("POST", "analyzeBacklog", None),
    ],
)
def test_a_subscription_or_topic_that_is_missing_is_404(method: str, path: str, body: Any) -> None:
    async def scenario(world: AdminWorld) -> None:
        answer = await world.topic(method, f"t/subscription/none/{path}", body)
        assert answer.refused == (404, f"Topic {NAME}/t not found")
        await filled(world)
        answer = await world.topic(method, f"t/subscription/none/{path}", body)
        assert answer.refused == (404, f"Subscription none not found for topic {NAME}/t")

    play(scenario)


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {"ledgerId": "x"},
        {"ledgerId": 1, "entryId": 1 << 70},
        {"ledgerId": 1, "entryId": True},
        {"ledgerId": 1.5},
        {"properties": 1},
    ],
)
def test_a_place_that_cannot_be_read_is_400_and_moves_nothing(body: Any) -> None:
    async def scenario(world: AdminWorld) -> None:
        topic = await filled(world)
        for path in ("resetcursor", "expireMessages"):
            assert (await world.topic("POST", f"t/subscription/s/{path}", body)).status == 400
        assert backlog(topic) == 10

    play(scenario)
