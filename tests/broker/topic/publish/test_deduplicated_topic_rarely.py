"""Deduplication on a topic, in the less common cases: parts of batches, chunks, markers, absurd ids, names, an early end."""

import asyncio
from dataclasses import replace

import pytest
import uvloop

from broker.errors import BrokerError, ServerError
from broker.policies.topic_settings import TopicSettings
from broker.topic.publish.deduplication_driver import CURSOR
from tests.broker.topic.publish.test_deduplication_driver import (
    NOWHERE,
    again,
    batches,
    chunks,
    contents,
    receipts,
    sends,
    world_with,
)
from tests.broker.topic.topic_world import run, settle
from wire.position import Position
from wire.run import FLAG_MARKER


def test_a_batch_of_which_a_part_is_stored_is_an_error_and_the_rest_is_not_lost() -> None:
    async def scenario() -> None:
        world = await world_with()
        producer, sink = await world.producer()
        producer.publish(batches((0, 4)))
        await settle()
        producer.publish(batches((3, 7), (8, 9)))
        await settle()
        assert sink.heard[1:] == [
            ("send_failed", [3], ServerError.NOT_ALLOWED),
            ("send_failed", [8], ServerError.PERSISTENCE),
        ]
        producer.close()
        producer, sink = await world.producer()
        producer.publish(batches((5, 7), (8, 9)))
        await settle()
        assert receipts(sink) == [([5, 8], Position(3, 1))]

    run(scenario)


def test_nothing_above_a_message_with_a_bad_checksum_is_stored_before_it_comes_again() -> None:
    async def scenario() -> None:
        world = await world_with()
        producer, sink = await world.producer()
        producer.publish(replace(sends(0), bad_checksum_index=0))
        producer.publish(sends(1))
        await settle()
        assert [heard[2] for heard in sink.heard] == [ServerError.CHECKSUM, ServerError.PERSISTENCE]
        producer.publish(sends(0, 1))
        await settle()
        assert await contents(world) == [("p", 0), ("p", 1)]

    run(scenario)


def test_f23_chunks_that_are_sent_again_after_a_kill_are_stored_once() -> None:
    """F23: a broker dies between the chunks of a message, whose producer sends them all again."""

    async def scenario() -> None:
        world = await world_with()
        producer, _ = await world.producer()
        producer.publish(sends(0))
        producer.publish(chunks(1, [0, 1]))
        await settle()
        world = await again(world)
        producer, sink = await world.producer()
        assert producer.last_sequence_id == 0
        producer.publish(chunks(1, [0, 1, 2]))
        producer.publish(sends(2))
        await settle()
        assert receipts(sink) == [([1, 1], NOWHERE), ([1], Position(3, 3)), ([2], Position(3, 4))]
        producer.publish(chunks(1, [0, 1, 2]))
        await settle()
        assert receipts(sink)[-1] == ([1, 1, 1], NOWHERE)
        assert world.ledger.entry_count == 5

    run(scenario)


def test_markers_and_what_replicators_bring_is_never_a_repeat() -> None:
    async def scenario() -> None:
        world = await world_with()
        producer, _ = await world.producer()
        replicator, _ = await world.producer(name="pulsar.repl.west-->east")
        producer.publish(sends(0))
        producer.publish(sends(0, 0, flags=FLAG_MARKER, marker_type=10))
        replicator.publish(sends(0, name="far"))
        replicator.publish(sends(0, name="near"))
        await settle()
        assert world.ledger.entry_count == 5
        assert replicator.last_sequence_id == -1

    run(scenario)


def test_sequence_ids_that_go_back_are_repeats_and_absurd_ones_harm_nobody() -> None:
    async def scenario() -> None:
        world = await world_with()
        producer, sink = await world.producer()
        producer.publish(sends(5))
        await settle()
        producer.publish(sends(3))
        producer.publish(sends((1 << 64) - 7))  # Java's -7
        producer.publish(sends((1 << 63) - 1))
        await settle()
        producer.publish(sends(6))
        await settle()
        assert receipts(sink)[1:] == [
            ([3], NOWHERE),
            ([(1 << 64) - 7], NOWHERE),
            ([(1 << 63) - 1], Position(3, 1)),
            ([6], NOWHERE),
        ]
        world = await again(world)
        producer, _ = await world.producer()
        assert producer.last_sequence_id == (1 << 63) - 1

    run(scenario)


def test_a_topic_that_closes_while_it_reads_leaves_nobody_waiting() -> None:
    async def scenario() -> None:
        world = await world_with()
        producer, _ = await world.producer()
        producer.publish(sends(0))
        await settle()
        world.ledger.read_seconds = lambda: 60.0
        world = await again(world)
        arriving = asyncio.ensure_future(world.producer())
        await settle()
        await world.topic.close()
        with pytest.raises(BrokerError):
            await arriving

    run(scenario)


def test_names_that_nobody_uses_are_forgotten_after_their_time() -> None:
    async def scenario() -> None:
        world = await world_with(settings=TopicSettings(broker_deduplication_producer_inactivity_timeout_minutes=3))
        for name in ("gone", "here"):
            producer, _ = await world.producer(name=name)
            producer.publish(sends(0, name=name))
            await settle()
            if name == "gone":
                producer.close()
        for _ in range(6):
            world.clock.time_ms += 60_000
            await asyncio.sleep(60)
        producer.publish(sends(1, name="here"))
        await settle()
        await world.topic.close()
        assert dict(world.ledger.cursors[CURSOR].properties) == {"here": 1}

    run(scenario)


def test_a_snapshot_that_is_overdue_is_planned_once_on_the_loop_that_serves() -> None:
    """A timer of uvloop's that is due already cannot say when: what follows the second run's receipts was left undone."""
    failures: list[object] = []

    async def scenario() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
        world = await world_with(settings=TopicSettings(broker_deduplication_entries_interval=2))
        producer, sink = await world.producer()
        world.topic.publishers.deduplication._snapshot_at = -1e6
        producer.publish(sends(0, 1))
        producer.publish(sends(2, 3))
        await settle()
        assert [each[1] for each in sink.heard] == [[0, 1], [2, 3]]
        await settle()
        assert world.ledger.cursors[CURSOR].mark_delete == Position(3, 3)
        await world.topic.close()

    uvloop.run(scenario())
    assert failures == []
