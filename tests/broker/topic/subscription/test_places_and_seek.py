"""Redelivery, seeking, the last message id."""

import asyncio
import gc
import weakref

import pytest

from broker.errors import BrokerError, ServerError
from broker.topic.contract import Acknowledgement, LastMessage, SubscriptionType
from managed_ledger.contract import EARLIEST, LATEST, ManagedLedgerError
from tests.broker.topic.topic_world import TopicWorld, ack_run, payload, run, settle
from wire.position import Position

SHARED, FAILOVER = SubscriptionType.SHARED, SubscriptionType.FAILOVER


def test_redelivery_on_shared_counts_and_goes_to_whoever_is_there() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        consumer, sink = await world.consumer(type=SHARED)
        positions = await world.publish_many(3)
        consumer.redeliver([positions[1]], None)
        await settle()
        assert [(d.position.entry_id, d.redelivery_count) for d in sink.got] == [(0, 0), (1, 0), (2, 0), (1, 1)]
        consumer.acknowledge_run(ack_run(positions[0]))
        consumer.redeliver([], None)
        await settle()
        assert sorted((d.position.entry_id, d.redelivery_count) for d in sink.got[4:]) == [(1, 2), (2, 1)]
        assert consumer.counters.redelivered == 3

    run(scenario)


def test_redelivery_on_exclusive_rewinds_and_stamps_the_epoch() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        consumer, sink = await world.consumer()
        positions = await world.publish_many(3)
        consumer.acknowledge_run(ack_run(positions[0]))
        consumer.redeliver([], 7)
        await settle()
        assert [(d.position.entry_id, d.consumer_epoch) for d in sink.got[3:]] == [(1, 7), (2, 7)]
        assert [d.consumer_epoch for d in sink.got[:3]] == [None] * 3

    run(scenario)


@pytest.mark.parametrize("subscription_type", list(SubscriptionType))
def test_seek_closes_every_consumer_after_the_cursor_has_moved(subscription_type: SubscriptionType) -> None:
    async def scenario() -> None:
        world = TopicWorld()
        consumer, sink = await world.consumer(type=subscription_type)
        positions = await world.publish_many(5)
        cursor = world.ledger.cursors["s"]
        cursor.reset_gate = asyncio.Event()
        seeking = asyncio.ensure_future(consumer.seek(positions[3], ()))
        await settle()
        assert ("closed",) not in sink.heard
        with pytest.raises(BrokerError) as refused:
            await world.consumer(type=subscription_type)
        assert refused.value.code is ServerError.SERVICE_NOT_READY
        cursor.reset_gate.set()
        await seeking
        assert sink.heard[-1] == ("closed",)
        _, again = await world.consumer(type=subscription_type)
        assert again.positions == positions[3:]

    run(scenario)


@pytest.mark.parametrize(("target", "expected"), [(EARLIEST, 3), (LATEST, 0)])
def test_seek_to_either_end(target: Position, expected: int) -> None:
    async def scenario() -> None:
        world = TopicWorld()
        consumer, _ = await world.consumer()
        await world.publish_many(3)
        await consumer.seek(target, ())
        _, again = await world.consumer()
        assert len(again.got) == expected

    run(scenario)


def test_seek_into_a_batch_delivers_the_rest_of_it() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        consumer, _ = await world.consumer(type=SHARED)
        positions = await world.publish(payload(batch=4), payload(batch=4))
        await consumer.seek(positions[1], (0b1100,))
        _, again = await world.consumer(type=SHARED)
        assert [(d.position, d.ack_set) for d in again.got] == [(positions[1], (0b1100,))]

    run(scenario)


def test_acknowledgements_during_a_seek_do_not_move_the_place_sought() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        consumer, _ = await world.consumer(type=SHARED)
        positions = await world.publish_many(4)
        await consumer.seek(positions[0], ())
        consumer.acknowledge_run(ack_run(*positions))
        _, again = await world.consumer(type=SHARED)
        assert again.positions == positions

    run(scenario)


def test_acknowledgements_while_a_seek_is_stored_do_not_move_the_place_sought() -> None:
    """A client that groups its acknowledgements sends them when their time has come, a seek or not."""

    async def scenario() -> None:
        world = TopicWorld()
        consumer, _ = await world.consumer()
        positions = await world.publish_many(4)
        cursor = world.ledger.cursors["s"]
        cursor.reset_gate = asyncio.Event()
        seeking = asyncio.ensure_future(consumer.seek(positions[1], ()))
        await settle()
        consumer.acknowledge_run(ack_run(*positions))
        with pytest.raises(BrokerError, match="fenced"):
            consumer.acknowledge(Acknowledgement(True, (positions[3],), ((),), (0,)))
        cursor.reset_gate.set()
        await seeking
        _, again = await world.consumer()
        assert again.positions == positions[1:]

    run(scenario)


def test_two_seeks_at_once_the_second_fails() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        consumer, _ = await world.consumer(type=SHARED)
        other, _ = await world.consumer(type=SHARED)
        await world.publish_many(2)
        world.ledger.cursors["s"].reset_gate = asyncio.Event()
        first = asyncio.ensure_future(consumer.seek(EARLIEST, ()))
        await settle()
        with pytest.raises(BrokerError) as refused:
            await other.seek(EARLIEST, ())
        assert refused.value.code is ServerError.UNKNOWN
        world.ledger.cursors["s"].reset_gate.set()
        await first

    run(scenario)


def test_a_seek_that_fails_says_so_and_the_subscription_goes_on() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        consumer, sink = await world.consumer()
        positions = await world.publish_many(2)
        world.ledger.cursors["s"].reset_error = ManagedLedgerError("no")
        with pytest.raises(BrokerError) as refused:
            await consumer.seek(EARLIEST, ())
        assert refused.value.code is ServerError.UNKNOWN
        assert sink.heard == [("closed",)]
        _, again = await world.consumer()
        assert again.positions == positions

    run(scenario)


@pytest.mark.parametrize(("time", "expected"), [(0, [0, 1, 2]), (150, [1, 2]), (200, [1, 2]), (301, [])])
def test_seek_by_time_goes_to_the_first_message_of_that_time_or_later(time: int, expected: list[int]) -> None:
    async def scenario() -> None:
        world = TopicWorld()
        consumer, _ = await world.consumer()
        await world.publish(*[payload(publish_time=at) for at in (100, 200, 300)])
        await consumer.seek_by_time(time)
        _, again = await world.consumer()
        assert again.entries == expected

    run(scenario)


def test_a_reader_seeks_too_and_keeps_its_place_until_it_is_back() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        await world.publish_many(4)
        reader, _ = await world.consumer(durable=False, start=EARLIEST)
        await reader.seek(Position(3, 2), ())
        back, again = await world.consumer(durable=False, start=EARLIEST)
        assert again.entries == [2, 3]
        back.close()
        assert not world.topic.stats().subscriptions

    run(scenario)


def test_a_reader_that_does_not_come_back_after_a_seek_is_forgotten() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        reader, _ = await world.consumer(durable=False, start=EARLIEST)
        await reader.seek(EARLIEST, ())
        assert len(world.topic.stats().subscriptions) == 1
        await asyncio.sleep(120)
        assert not world.topic.stats().subscriptions

    run(scenario)


def test_a_reader_is_waited_for_from_its_last_seek_on() -> None:
    """The wait for an earlier one threw its place away, and it began at its first place again."""

    async def scenario() -> None:
        world = TopicWorld()
        await world.publish_many(4)
        reader, _ = await world.consumer(durable=False, start=EARLIEST)
        await reader.seek(Position(3, 1), ())
        back, _ = await world.consumer(durable=False, start=EARLIEST)
        await asyncio.sleep(50)
        await back.seek(Position(3, 2), ())
        await asyncio.sleep(20)
        _, again = await world.consumer(durable=False, start=EARLIEST)
        assert again.entries == [2, 3]

    run(scenario)


@pytest.mark.parametrize("end", ["deleted", "unloaded"])
def test_a_topic_that_has_ended_does_not_wait_for_readers_that_sought(end: str) -> None:
    """Each seek kept it in memory for a minute."""

    async def scenario() -> None:
        world = TopicWorld()
        await world.publish_many(4)
        reader, _ = await world.consumer(durable=False, start=EARLIEST)
        await reader.seek(Position(3, 2), ())
        await (world.topic.delete(force=True) if end == "deleted" else world.topic.close())
        topic = weakref.ref(world.topic)
        del world, reader
        await asyncio.sleep(1)
        gc.collect()
        assert topic() is None

    run(scenario)


# the last message


def test_the_last_message_of_an_empty_topic_has_entry_minus_one_and_a_mark() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        consumer, _ = await world.consumer()
        assert await consumer.last_message() == LastMessage(Position(3, -1), -1, Position(3, -1))

    run(scenario)


@pytest.mark.parametrize(("batch", "index"), [(None, -1), (1, 0), (5, 4)])
def test_the_last_message_of_a_batch_is_its_last_index(batch: int | None, index: int) -> None:
    async def scenario() -> None:
        world = TopicWorld()
        consumer, _ = await world.consumer()
        positions = await world.publish(payload(), payload(batch=batch))
        consumer.acknowledge_run(ack_run(positions[0]))
        assert await consumer.last_message() == LastMessage(positions[1], index, positions[0])

    run(scenario)


def test_markers_are_not_the_last_message() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        consumer, _ = await world.consumer()
        positions = await world.publish(payload(), payload(marker=21), payload(marker=21))
        assert (await consumer.last_message()).position == positions[0]

    run(scenario)


def test_only_markers_are_as_good_as_nothing() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        consumer, _ = await world.consumer()
        await world.publish(payload(marker=21))
        assert (await consumer.last_message()).position.entry_id == -1

    run(scenario)


def test_a_message_that_was_trimmed_is_not_the_last_one() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        consumer, _ = await world.consumer()
        positions = await world.publish_many(2)
        consumer.acknowledge_run(ack_run(*positions))
        world.ledger.roll_over()
        world.ledger.drop_first_ledger()
        assert (await consumer.last_message()).position == Position(5, -1)

    run(scenario)


def test_the_last_message_waits_for_nothing_that_is_not_stored() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        consumer, _ = await world.consumer()
        await world.publish_many(1)
        world.ledger.read_error = ManagedLedgerError("bookie down")
        with pytest.raises(BrokerError) as refused:
            await consumer.last_message()
        assert refused.value.code is ServerError.PERSISTENCE

    run(scenario)
