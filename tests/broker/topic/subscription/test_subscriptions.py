"""Subscribing: one type at a time, limits, readers, names, coming and going, unsubscribing."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from broker.errors import BrokerError, ServerError
from broker.policies.topic_settings import TopicSettings
from broker.topic.contract import KeySharedMeta, KeySharedMode, SubscriptionType
from broker.topic.subscription.consumer import NOTICES_WAIT_SECONDS
from managed_ledger.contract import EARLIEST, LATEST
from managed_ledger.cursor.properties import COMPACTING, apache_bucket_key, bucket_key
from tests.broker.topic.memory_ledger import MemoryLedger
from tests.broker.topic.topic_world import SUBSCRIBE, ConsumerEnd, TopicWorld, ack_run, payload, run, settle
from wire.position import Position

EXCLUSIVE, SHARED = SubscriptionType.EXCLUSIVE, SubscriptionType.SHARED
FAILOVER, KEY_SHARED = SubscriptionType.FAILOVER, SubscriptionType.KEY_SHARED


async def refusal(world: TopicWorld, **fields: Any) -> ServerError:
    with pytest.raises(BrokerError) as refused:
        await world.consumer(**fields)
    return refused.value.code


def test_an_exclusive_subscription_that_is_taken_is_busy() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        await world.consumer()
        assert await refusal(world) is ServerError.CONSUMER_BUSY

    run(scenario)


@pytest.mark.parametrize(("first", "second"), [(SHARED, FAILOVER), (FAILOVER, KEY_SHARED), (KEY_SHARED, SHARED)])
def test_the_type_changes_only_when_everybody_has_left(first: SubscriptionType, second: SubscriptionType) -> None:
    async def scenario() -> None:
        world = TopicWorld()
        await world.publish_many(3)
        consumer, _ = await world.consumer(type=first)
        assert await refusal(world, type=second) is ServerError.CONSUMER_BUSY
        consumer.close()
        _, sink = await world.consumer(type=second)
        assert sink.entries == [0, 1, 2]
        assert (
            world.topic.stats().subscriptions["s"].type
            == {FAILOVER: "Failover", KEY_SHARED: "Key_Shared", SHARED: "Shared"}[second]
        )

    run(scenario)


def test_a_consumer_hears_that_it_is_active_once_it_has_given_permits_and_before_its_first_message() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        await world.publish_many(1)
        sink = ConsumerEnd()
        sink.check = lambda _: sink.heard.append(("message",))
        consumer = await world.topic.subscribe(replace(SUBSCRIBE, type=FAILOVER), sink)
        await settle()
        assert sink.heard == [], "a client may know its consumer only when it has worked on SUCCESS (Go's does)"
        consumer.flow(1)
        await settle()
        assert sink.heard == [("active", True), ("message",)]

    run(scenario)


def test_a_consumer_that_gives_no_permits_hears_that_it_is_active_after_a_second() -> None:
    async def scenario() -> None:
        sink = ConsumerEnd()
        await TopicWorld().topic.subscribe(replace(SUBSCRIBE, type=FAILOVER), sink)
        await asyncio.sleep(NOTICES_WAIT_SECONDS - 0.001)
        assert sink.heard == []
        await asyncio.sleep(0.002)
        assert sink.heard == [("active", True)]

    run(scenario)


def test_a_consumer_that_left_hears_nothing_of_being_active() -> None:
    async def scenario() -> None:
        sink = ConsumerEnd()
        consumer = await TopicWorld().topic.subscribe(replace(SUBSCRIBE, type=FAILOVER), sink)
        consumer.close()
        consumer.flow(1)
        await asyncio.sleep(2 * NOTICES_WAIT_SECONDS)
        assert sink.heard == []

    run(scenario)


def test_only_failover_consumers_hear_who_is_active() -> None:
    async def scenario() -> None:
        for subscription_type in (EXCLUSIVE, SHARED, KEY_SHARED):
            _, sink = await TopicWorld().consumer(type=subscription_type)
            assert sink.heard == []

    run(scenario)


def test_the_next_failover_consumer_goes_on_where_the_first_one_stopped() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        first, _ = await world.consumer(type=FAILOVER, consumer_name="a")
        _, second = await world.consumer(type=FAILOVER, consumer_name="b")
        await world.publish_many(3)
        assert second.heard == [("active", False)]
        assert second.got == []
        first.acknowledge_run(ack_run((3, 0)))
        first.close()
        await settle()
        assert second.heard == [("active", False), ("active", True)]
        assert second.entries == [1, 2]

    run(scenario)


def test_partition_index_decides_which_failover_consumer_is_active() -> None:
    async def scenario() -> None:
        world = TopicWorld(partition_index=1)
        ends = [(await world.consumer(type=FAILOVER, consumer_name=name))[1] for name in "ab"]
        await settle()
        assert [end.heard[-1] for end in ends] == [("active", False), ("active", True)]

    run(scenario)


def test_key_shared_consumers_with_another_policy_or_overlapping_ranges_are_refused() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        sticky = KeySharedMeta(KeySharedMode.STICKY, ((0, 99),))
        await world.consumer(type=KEY_SHARED, key_shared=sticky)
        assert await refusal(world, type=KEY_SHARED) is ServerError.CONSUMER_BUSY
        assert await refusal(world, type=KEY_SHARED, key_shared=sticky) is ServerError.CONSUMER_ASSIGN
        stats = world.topic.stats().subscriptions["s"]
        assert stats.key_shared_mode == "STICKY"
        assert stats.consumers[0].key_hash_ranges == ((0, 99),)

    run(scenario)


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        (TopicSettings(max_consumers_per_subscription=1), ServerError.CONSUMER_BUSY),
        (TopicSettings(max_consumers_per_topic=1), ServerError.CONSUMER_BUSY),
        (TopicSettings(max_same_address_consumers_per_topic=1), ServerError.CONSUMER_BUSY),
    ],
)
def test_limits_on_consumers_are_held(settings: TopicSettings, code: ServerError) -> None:
    async def scenario() -> None:
        world = TopicWorld(settings=settings)
        await world.consumer(type=SHARED)
        assert await refusal(world, type=SHARED) is code

    run(scenario)


def test_limits_on_subscriptions_and_types_are_held() -> None:
    async def scenario() -> None:
        settings = TopicSettings(max_subscriptions_per_topic=1, subscription_types_enabled=("Exclusive", "Shared"))
        world = TopicWorld(settings=settings)
        await world.consumer(type=SHARED)
        await world.consumer(type=SHARED)
        assert await refusal(world, subscription="other") is ServerError.NOT_ALLOWED
        assert await refusal(world, type=FAILOVER) is ServerError.NOT_ALLOWED

    run(scenario)


def test_an_unknown_subscription_type_in_the_settings_is_refused() -> None:
    with pytest.raises(ValueError, match="KeyShared is none of"):
        TopicSettings(subscription_types_enabled=("KeyShared",))


@pytest.mark.parametrize("name", ["", "  ", "pulsar.dedup", "pulsar.repl.east"])
def test_names_that_are_no_subscriptions_are_refused(name: str) -> None:
    async def scenario() -> None:
        assert await refusal(TopicWorld(), subscription=name) is ServerError.PRODUCER_BUSY

    run(scenario)


def test_read_compacted_needs_one_active_consumer() -> None:
    async def scenario() -> None:
        assert await refusal(TopicWorld(), type=SHARED, read_compacted=True) is ServerError.NOT_ALLOWED

    run(scenario)


def test_without_auto_creation_a_missing_subscription_is_not_found_and_a_reader_is() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        assert await refusal(world, auto_create_subscription=False) is ServerError.SUBSCRIPTION_NOT_FOUND
        await world.consumer(auto_create_subscription=False, durable=False, subscription="reader")

    run(scenario)


def test_a_new_subscription_starts_where_its_initial_position_says_and_keeps_its_properties() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        await world.publish_many(2)
        _, late = await world.consumer(from_earliest=False, subscription="late", subscription_properties={"k": "v"})
        _, early = await world.consumer(from_earliest=True, subscription="early")
        await world.publish_many(1)
        assert (late.entries, early.entries) == ([2], [0, 1, 2])
        assert world.topic.stats().subscriptions["late"].subscription_properties == {"k": "v"}

    run(scenario)


@pytest.mark.parametrize("key", [apache_bucket_key(1, 2), bucket_key(3), COMPACTING])
def test_a_subscriber_cannot_name_ledgers_that_the_broker_would_delete(key: str) -> None:
    async def scenario() -> None:
        world = TopicWorld()
        assert await refusal(world, subscription="mine", subscription_properties={key: "7"}) is ServerError.NOT_ALLOWED
        assert world.topic.subscriptions.get("mine") is None
        await world.consumer(subscription="mine")
        with pytest.raises(BrokerError, match="the broker's own") as refused:
            await world.topic.operations.set_subscription_properties("mine", {"a": "b", key: "7"})
        assert refused.value.code is ServerError.NOT_ALLOWED
        assert world.topic.stats().subscriptions["mine"].subscription_properties == {}

    run(scenario)


def test_subscribers_that_come_together_share_one_new_cursor() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        await asyncio.gather(*[world.consumer(type=SHARED, consumer_name=name) for name in "abc"])
        assert world.topic.stats().subscriptions["s"].consumers[2].consumer_name == "c"

    run(scenario)


def test_cursors_become_subscriptions_again_when_a_topic_is_loaded() -> None:
    async def scenario() -> None:
        ledger = MemoryLedger()
        for name in ("pulsar.dedup", "pulsar.repl.east", "a%2Fb"):
            await ledger.open_cursor(name, EARLIEST)
        world = TopicWorld(ledger)
        assert list(world.topic.stats().subscriptions) == ["a/b"]
        assert world.topic.activity().durable_subscriptions == 1

    run(scenario)


# readers


@pytest.mark.parametrize(
    ("start", "from_earliest", "expected"),
    [
        (EARLIEST, False, [0, 1, 2, 3]),
        (LATEST, False, []),
        (None, False, []),
        (None, True, [0, 1, 2, 3]),
        (Position(3, 2), False, [2, 3]),  # also the entry itself: the client skips what it has had
        (Position(3, 99), False, []),
        (Position(3, 99), True, [0, 1, 2, 3]),
        (Position(99, 0), False, []),
        (Position(-1, 5), False, [0, 1, 2, 3]),
    ],
)
def test_a_reader_starts_at_the_entry_it_names(start: Position | None, from_earliest: bool, expected: list[int]) -> None:
    async def scenario() -> None:
        world = TopicWorld()
        await world.publish_many(4)
        _, sink = await world.consumer(durable=False, start=start, start_batch_index=1, from_earliest=from_earliest)
        assert sink.entries == expected

    run(scenario)


def test_a_readers_subscription_vanishes_with_its_last_consumer() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        await world.publish_many(2)
        reader, _ = await world.consumer(durable=False, start=EARLIEST)
        assert world.topic.activity().durable_subscriptions == 0
        reader.close()
        assert not world.topic.stats().subscriptions
        _, again = await world.consumer(durable=False, start=Position(3, 1))
        assert again.entries == [1]

    run(scenario)


def test_a_refused_consumer_leaves_no_reader_subscription_behind() -> None:
    async def scenario() -> None:
        world = TopicWorld(settings=TopicSettings(max_consumers_per_topic=1))
        await world.consumer()
        assert await refusal(world, durable=False, subscription="reader") is ServerError.CONSUMER_BUSY
        assert list(world.topic.stats().subscriptions) == ["s"]

    run(scenario)


def test_a_name_is_either_durable_or_not() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        await world.consumer(subscription="durable")
        await world.consumer(subscription="reader", durable=False)
        assert await refusal(world, subscription="durable", durable=False) is ServerError.NOT_ALLOWED
        assert await refusal(world, subscription="reader") is ServerError.NOT_ALLOWED

    run(scenario)


def test_a_rollback_starts_at_the_messages_of_that_time() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        world.clock.time_ms = 100_000
        await world.publish(*[payload(publish_time=time) for time in (10_000, 80_000, 90_000, 95_000)])
        _, sink = await world.consumer(start_rollback_seconds=20, from_earliest=False)
        assert sink.entries == [1, 2, 3]

    run(scenario)


# leaving
