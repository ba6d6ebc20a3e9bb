"""Deduplication on a topic: each (producer, sequence id) stored once, whatever is sent again, turned on or off, or fails."""

import asyncio
from array import array
from collections.abc import Sequence
from dataclasses import replace

import pytest

from broker.errors import BrokerError, ServerError
from broker.policies.policies import TopicPolicies
from broker.policies.topic_settings import TopicSettings
from broker.topic.publish.deduplication_driver import CURSOR
from managed_ledger.contract import ManagedLedgerError
from tests.broker.topic.memory_ledger import MemoryLedger
from tests.broker.topic.topic_world import ProducerEnd, TopicWorld, run, send_run, settle
from wire.generated.pulsar_api_pb2 import MessageMetadata
from wire.payloads import message_metadata, payload_section, split_section
from wire.position import Position
from wire.run import FLAG_CHUNK, SendRun

ON, OFF = TopicPolicies(deduplication_enabled=True), TopicPolicies(deduplication_enabled=False)
NOWHERE = Position(-1, -1)


def body(name: str, first: int, **fields: object) -> bytes:
    metadata = MessageMetadata(producer_name=name, sequence_id=first, publish_time=1, **fields)  # type: ignore[arg-type]
    return payload_section(metadata, b"x")


def sends(*ids: int, name: str = "p", flags: int = 0, **fields: object) -> SendRun:
    return send_run(ids, [body(name, each, **fields) for each in ids], flags=flags)


def batches(*spans: tuple[int, int], name: str = "p") -> SendRun:
    bodies = [body(name, first, highest_sequence_id=last, num_messages_in_batch=last - first + 1) for first, last in spans]
    return replace(
        send_run([first for first, _ in spans], bodies), highest_sequence_ids=array("Q", [last for _, last in spans])
    )


def with_messages(run: SendRun, count: int) -> SendRun:
    """The run, of so many messages."""
    return replace(run, entries=replace(run.entries, message_count=count))


def chunks(sequence_id: int, indexes: Sequence[int], count: int = 3, uuid: str = "p-m") -> SendRun:
    bodies = [
        body("p", sequence_id, uuid=uuid, num_chunks_from_msg=count, chunk_id=index, total_chunk_msg_size=99)
        for index in indexes
    ]
    return send_run([sequence_id] * len(indexes), bodies, flags=FLAG_CHUNK)


async def world_with(ledger: MemoryLedger | None = None, settings: TopicSettings | None = None) -> TopicWorld:
    world = TopicWorld(ledger, settings)
    world.topic.upkeep.apply(ON)
    return world


async def again(world: TopicWorld, settings: TopicSettings | None = None) -> TopicWorld:
    """The topic as it is loaded after its broker was killed: what the log and the cursors have stored."""
    return await world_with(world.ledger, settings)


async def contents(world: TopicWorld) -> list[tuple[str, int]]:
    found = []
    for position in world.ledger.positions():
        run = await world.ledger.read(position, 1, 1)
        assert run is not None
        metadata = message_metadata(split_section(run.payload(position.entry_id)))
        found.append((metadata.producer_name, metadata.sequence_id))
    return found


def receipts(sink: ProducerEnd) -> list[tuple[list[int], Position]]:
    return [(heard[1], heard[2]) for heard in sink.heard if heard[0] == "receipts"]


def test_a_message_sent_again_is_answered_and_not_stored_again() -> None:
    async def scenario() -> None:
        world = await world_with()
        producer, sink = await world.producer()
        producer.publish(sends(0, 1, 2))
        await settle()
        producer.publish(sends(1, 2, 3))
        await settle()
        assert receipts(sink) == [([0, 1, 2], Position(3, 0)), ([1, 2], NOWHERE), ([3], Position(3, 3))]
        assert await contents(world) == [("p", each) for each in range(4)]
        assert world.topic.stats().msg_in_counter == 4
        assert world.topic.stats().deduplication_status == "Enabled"

    run(scenario)


def test_a_run_that_is_new_is_one_append_as_it_came() -> None:
    async def scenario() -> None:
        world = await world_with()
        producer, _ = await world.producer()
        producer.publish(sends(*range(500)))
        await settle()
        assert world.ledger.appended_batches == 1
        assert world.ledger.entry_count == 500

    run(scenario)


def test_f28_what_may_yet_be_stored_is_refused_so_that_the_client_asks_again_and_then_gets_its_receipt() -> None:
    """F28: the error of the unknown window; with the reconnection that it causes the producer is well again."""

    async def scenario() -> None:
        world = await world_with()
        world.ledger.hold = True
        producer, sink = await world.producer()
        producer.publish(sends(0))
        producer.publish(sends(0, 1))
        await settle()
        world.ledger.release()
        await settle()
        assert sink.heard[1] == ("send_failed", [0], ServerError.PERSISTENCE)
        assert sink.answered == [0, 0, 1]
        world.ledger.hold = False
        producer.close()
        back, sink = await world.producer(epoch=1)
        assert back.last_sequence_id == 1
        back.publish(sends(0, 1, 2))
        await settle()
        assert receipts(sink) == [([0, 1], NOWHERE), ([2], Position(3, 2))]

    run(scenario)


def test_a_returning_producer_waits_until_its_earlier_messages_are_settled() -> None:
    async def scenario() -> None:
        world = await world_with()
        world.ledger.hold = True
        producer, _ = await world.producer()
        producer.publish(sends(0, 1))
        producer.close()
        arriving = asyncio.ensure_future(world.producer(epoch=1))
        await settle()
        assert not arriving.done()
        other, _ = await world.producer(name="q")
        assert other.last_sequence_id == -1
        world.ledger.release()
        back, _ = await arriving
        assert back.last_sequence_id == 1

    run(scenario)


def test_f25_after_a_failed_write_the_retry_is_stored() -> None:
    """F25: the sequence id was noted, the write failed; the client sends again and the message is there once."""

    async def scenario() -> None:
        world = await world_with()
        producer, sink = await world.producer()
        producer.publish(sends(0))
        await settle()
        world.ledger.append_error = ManagedLedgerError("quorum lost")
        producer.publish(sends(1))
        await settle()
        assert sink.heard[1] == ("send_failed", [1], ServerError.PERSISTENCE)
        assert world.topic.is_closed
        world.ledger.append_error = None
        world = await again(world)
        producer, sink = await world.producer()
        assert producer.last_sequence_id == 0
        producer.publish(sends(0, 1))
        await settle()
        assert receipts(sink) == [([0], NOWHERE), ([1], Position(3, 1))]

    run(scenario)


def test_after_a_kill_the_log_says_what_is_stored() -> None:
    async def scenario() -> None:
        world = await world_with()
        producer, _ = await world.producer()
        other, _ = await world.producer(name="q")
        producer.publish(sends(0, 1))
        other.publish(batches((0, 9), name="q"))
        await settle()
        world = await again(world)
        producer, sink = await world.producer()
        other, others = await world.producer(name="q")
        assert (producer.last_sequence_id, other.last_sequence_id) == (1, 9)
        producer.publish(sends(0, 1, 2))
        other.publish(batches((0, 9), (10, 12), name="q"))
        await settle()
        assert receipts(sink) == [([0, 1], NOWHERE), ([2], Position(3, 3))]
        assert receipts(others) == [([0], NOWHERE), ([10], Position(3, 4))]

    run(scenario)


def test_a_batch_that_does_not_say_its_last_id_counts_as_many_as_it_has_messages() -> None:
    """The C++ client's: were it told the first id of its last batch, it would go on with ids that it has used."""

    async def scenario() -> None:
        world = await world_with()
        producer, _ = await world.producer()
        silent = [body("p", first, num_messages_in_batch=5) for first in (0, 5)]
        producer.publish(with_messages(send_run([0, 5], silent), 10))
        await settle()
        assert producer.last_sequence_id == 9
        world = await again(world)
        producer, sink = await world.producer()
        assert producer.last_sequence_id == 9
        producer.publish(with_messages(send_run([5, 10], [silent[1], body("p", 10)]), 6))
        await settle()
        assert receipts(sink) == [([5], NOWHERE), ([10], Position(3, 2))]

    run(scenario)


def test_f27_what_is_read_again_at_load_does_not_grow_with_restarts() -> None:
    """F27: fewer messages than a snapshot is taken after, then a kill, again and again."""

    async def scenario() -> None:
        settings = TopicSettings(broker_deduplication_entries_interval=100)
        world = await world_with(settings=settings)
        for round_ in range(10):
            producer, _ = await world.producer()
            assert producer.last_sequence_id == round_ * 99 - 1
            assert world.ledger.cursors[CURSOR].backlog_entries() <= 2 * 99
            producer.publish(sends(*range(round_ * 99, round_ * 99 + 99)))
            await asyncio.sleep(1.1)
            world = await again(world, settings)
        assert len(await contents(world)) == 990

    run(scenario)


def test_f27_an_unload_takes_a_snapshot_so_that_nothing_is_read_again() -> None:
    async def scenario() -> None:
        world = await world_with()
        producer, _ = await world.producer()
        producer.publish(sends(*range(99)))
        await settle()
        await world.topic.close()
        cursor = world.ledger.cursors[CURSOR]
        assert (cursor.backlog_entries(), dict(cursor.properties)) == (0, {"p": 98})

    run(scenario)


def test_snapshots_are_taken_by_time_where_the_policies_say_so() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        world.topic.upkeep.apply(ON, TopicPolicies(deduplication_snapshot_seconds=30))
        producer, _ = await world.producer()
        producer.publish(sends(0, 1))
        await asyncio.sleep(29)
        assert dict(world.ledger.cursors[CURSOR].properties) == {}
        await asyncio.sleep(2)
        assert dict(world.ledger.cursors[CURSOR].properties) == {"p": 1}

    run(scenario)


def test_f26_turning_on_is_done_once_however_often_it_is_asked_for() -> None:
    """F26: policies that change and producers that come while the topic is being loaded; one replay, no duplicate."""

    async def scenario() -> None:
        world = await world_with()
        producer, _ = await world.producer()
        producer.publish(sends(0, 1))
        await settle()
        reads = 0
        read = world.ledger.read

        async def counted(*asked: int) -> object:
            nonlocal reads
            reads += 1
            await asyncio.sleep(0.5)
            return await read(*asked)  # type: ignore[arg-type]

        world.ledger.read = counted  # type: ignore[assignment]
        world = await again(world)
        for _ in range(3):
            world.topic.upkeep.apply(ON)
        (producer, sink), _ = await asyncio.gather(world.producer(), world.producer(name="q"))
        producer.publish(sends(0, 1, 2))
        await settle()
        assert reads == 1
        assert receipts(sink) == [([0, 1], NOWHERE), ([2], Position(3, 2))]

    run(scenario)


def test_turned_on_while_producers_publish_it_knows_what_was_on_its_way() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        world.ledger.hold = True
        producer, sink = await world.producer()
        producer.publish(sends(0, 1))
        world.topic.upkeep.apply(ON)
        await settle()
        assert world.topic.stats().deduplication_status == "Recovering"
        producer.publish(sends(2))
        world.ledger.release()
        world.ledger.hold = False
        await settle()
        assert world.topic.stats().deduplication_status == "Enabled"
        producer.publish(sends(0, 1, 2, 3))
        await settle()
        assert [ids for ids, position in receipts(sink) if position == NOWHERE] == [[0, 1, 2]]
        assert [each for _, each in await contents(world)] == [0, 1, 2, 3]

    run(scenario)


def test_turned_off_everything_is_stored_again_and_the_cursor_is_gone() -> None:
    async def scenario() -> None:
        world = await world_with()
        producer, _ = await world.producer()
        producer.publish(sends(0))
        await settle()
        world.topic.upkeep.apply(OFF)
        await settle()
        assert world.topic.stats().deduplication_status == "Disabled"
        assert CURSOR not in world.ledger.cursors
        producer.publish(sends(0))
        await settle()
        assert [each for _, each in await contents(world)] == [0, 0]
        assert producer.last_sequence_id == -1

    run(scenario)


def test_a_cursor_of_before_goes_where_deduplication_is_off_now() -> None:
    async def scenario() -> None:
        ledger = MemoryLedger()
        await ledger.open_cursor(CURSOR)
        world = TopicWorld(ledger)
        world.topic.upkeep.apply(OFF)
        await settle()
        assert CURSOR not in ledger.cursors

    run(scenario)


def test_while_the_log_cannot_be_read_producers_are_refused_and_then_taken() -> None:
    async def scenario() -> None:
        world = await world_with()
        producer, _ = await world.producer()
        producer.publish(sends(0))
        await settle()
        world.ledger.read_error = ManagedLedgerError("no bookie")
        world = await again(world)
        with pytest.raises(BrokerError, match="could not be read for deduplication"):
            await world.producer()
        world.ledger.read_error = None
        producer, _ = await world.producer()
        assert producer.last_sequence_id == 0

    run(scenario)
