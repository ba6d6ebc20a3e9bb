"""A subscription's life: consumers leave and are paused, it is deleted, reads fail."""

import asyncio

import pytest

from broker.errors import BrokerError, ServerError
from broker.topic.contract import SubscriptionType
from managed_ledger.contract import ManagedLedgerError
from tests.broker.topic.topic_world import TopicWorld, ack_run, run, settle

EXCLUSIVE, SHARED = SubscriptionType.EXCLUSIVE, SubscriptionType.SHARED
FAILOVER, KEY_SHARED = SubscriptionType.FAILOVER, SubscriptionType.KEY_SHARED


def test_unacknowledged_entries_of_a_shared_consumer_that_leaves_go_to_the_others() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        first, got = await world.consumer(type=SHARED)
        await world.publish_many(4)
        first.acknowledge_run(ack_run((3, 1)))
        _, other = await world.consumer(type=SHARED)
        first.close()
        await settle()
        assert got.entries == [0, 1, 2, 3]
        assert sorted(other.entries) == [0, 2, 3]

    run(scenario)


def test_requests_of_a_closed_consumer_do_nothing() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        await world.publish_many(2)
        consumer, _ = await world.consumer(permits=0)
        consumer.close()
        consumer.close()
        consumer.flow(10)
        consumer.acknowledge_run(ack_run((3, 0)))
        consumer.redeliver([], None)
        consumer.writable()
        await settle()
        assert world.topic.stats().subscriptions["s"].msg_backlog == 2
        with pytest.raises(BrokerError) as refused:
            await consumer.last_message()
        assert refused.value.code is ServerError.METADATA

    run(scenario)


def test_unsubscribing_deletes_the_cursor_and_tells_nobody_else() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        consumer, sink = await world.consumer()
        await consumer.unsubscribe(force=False)
        assert sink.heard == [], "the answer is SUCCESS, not CLOSE_CONSUMER"
        assert not world.ledger.cursors
        assert not world.topic.stats().subscriptions

    run(scenario)


def test_unsubscribing_while_others_are_there_needs_force() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        consumer, sink = await world.consumer(type=SHARED)
        _, other = await world.consumer(type=SHARED)
        with pytest.raises(BrokerError) as refused:
            await consumer.unsubscribe(force=False)
        assert refused.value.code is ServerError.METADATA
        await consumer.unsubscribe(force=True)
        assert (sink.heard, other.heard) == ([], [("closed",)])
        assert not world.ledger.cursors

    run(scenario)


def test_deleting_a_subscription_with_consumers_needs_force() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        _, sink = await world.consumer()
        with pytest.raises(BrokerError) as busy:
            await world.topic.delete_subscription("s", force=False)
        assert busy.value.code is ServerError.CONSUMER_BUSY
        await world.topic.delete_subscription("s", force=True)
        assert sink.heard == [("closed",)]
        with pytest.raises(BrokerError) as missing:
            await world.topic.delete_subscription("s", force=True)
        assert missing.value.code is ServerError.SUBSCRIPTION_NOT_FOUND

    run(scenario)


def test_creating_a_subscription_twice_is_one_subscription() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        await world.publish_many(1)
        for _ in range(2):
            await world.topic.create_subscription("made", from_earliest=True, properties={"a": "b"})
        assert world.topic.stats().subscriptions["made"].msg_backlog == 1
        _, sink = await world.consumer(subscription="made")
        assert sink.entries == [0]

    run(scenario)


# reading


def test_a_failed_read_is_tried_again_and_loses_nothing() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        await world.publish_many(2)
        world.ledger.read_error = ManagedLedgerError("bookie down")
        _, sink = await world.consumer()
        assert sink.got == []
        world.ledger.read_error = None
        await asyncio.sleep(16)
        assert sink.entries == [0, 1]

    run(scenario)


def test_a_consumer_whose_connection_is_full_is_paused_until_it_can_take_more() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        consumer, sink = await world.consumer()
        sink.room = 2
        await world.publish_many(2)
        await world.publish_many(2)
        assert sink.entries == [0, 1]
        sink.room, sink.is_writable = 100, True
        consumer.writable()
        await settle()
        assert sink.entries == [0, 1, 2, 3]

    run(scenario)


def test_nothing_is_delivered_to_a_consumer_that_is_not_writable() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        await world.publish_many(2)
        consumer, sink = await world.consumer(is_writable=False)
        assert sink.got == []
        sink.is_writable = True
        consumer.writable()
        await settle()
        assert sink.entries == [0, 1]

    run(scenario)
