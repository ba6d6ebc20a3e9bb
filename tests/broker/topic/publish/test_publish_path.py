"""Publishing: receipts in order and only for what is durable, failures with the code that each client needs, fencing."""

import asyncio
from typing import Any

import pytest

from broker.errors import BrokerError, ServerError
from broker.policies.topic_settings import TopicSettings
from broker.topic.contract import AccessMode
from broker.topic.publish.admission_events import EpochStored, ProducerKey
from broker.topic.publish.producer import TopicProducer
from broker.topic.publish.publishers import TOPIC_EPOCH_PROPERTY
from managed_ledger.contract import ManagedLedgerError, ManagedLedgerFenced
from tests.broker.topic.memory_ledger import MemoryLedger
from tests.broker.topic.topic_world import ProducerEnd, TopicWorld, run, send_run, settle
from wire.position import Position
from wire.run import FLAG_CHUNK


async def held() -> tuple[TopicWorld, TopicProducer, ProducerEnd]:
    """A topic whose log stores nothing until the test releases it."""
    world = TopicWorld()
    world.ledger.hold = True
    return world, *await world.producer()


def test_no_receipt_before_the_run_is_stored() -> None:
    async def scenario() -> None:
        world, producer, sink = await held()
        producer.publish(send_run([0]))
        producer.publish(send_run([1]))
        await settle()
        assert sink.heard == []
        world.ledger.release(count=1)
        await settle()
        assert sink.answered == [0]
        world.ledger.release()
        await settle()
        assert sink.answered == [0, 1]

    run(scenario)


def test_one_append_per_run() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        producer, _ = await world.producer()
        producer.publish(send_run(range(500)))
        await settle()
        assert world.ledger.appended_batches == 1

    run(scenario)


def test_a_bad_checksum_is_answered_in_its_place_and_not_stored() -> None:
    async def scenario() -> None:
        world, producer, sink = await held()
        producer.publish(send_run([0]))
        producer.publish(send_run([1], bad_checksum_index=0))
        producer.publish(send_run([2]))
        await settle()
        assert sink.heard == []
        world.ledger.release()
        await settle()
        assert sink.answered == [0, 1, 2]
        assert sink.heard[1] == ("send_failed", [1], ServerError.CHECKSUM)
        assert world.ledger.entry_count == 2

    run(scenario)


def test_after_a_storage_failure_no_later_run_gets_a_receipt_and_the_topic_closes() -> None:
    async def scenario() -> None:
        world, producer, sink = await held()
        for sequence_id in range(4):
            producer.publish(send_run([sequence_id]))
        world.ledger.release(count=1)
        world.ledger.release(ManagedLedgerError("quorum lost"), count=1)
        world.ledger.release()
        await settle()
        assert [heard[0] for heard in sink.heard] == ["receipts", "send_failed", "closed", "send_failed", "send_failed"]
        assert sink.heard[1] == ("send_failed", [1], ServerError.PERSISTENCE)
        assert sink.answered == [0, 1, 2, 3]
        assert world.topic.is_closed
        await world.topic.close()
        assert world.ledger.is_closed

    run(scenario)


def test_a_fenced_log_closes_the_producer_before_its_runs_are_let_go() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        world.ledger.append_error = ManagedLedgerFenced("another owner")
        producer, sink = await world.producer()
        _, consumer = await world.consumer()
        producer.publish(send_run([0]))
        await settle()
        assert [heard[0] for heard in sink.heard] == ["closed", "send_failed"]
        assert consumer.heard == [("closed",)]
        assert world.topic.is_closed
        with pytest.raises(BrokerError) as refused:
            await world.producer(name="q")
        assert refused.value.code is ServerError.SERVICE_NOT_READY

    run(scenario)


def test_a_run_of_a_producer_that_left_is_answered_even_when_storage_fails() -> None:
    async def scenario() -> None:
        world, producer, sink = await held()
        producer.publish(send_run([0]))
        producer.publish(send_run([1]))
        producer.close()
        world.ledger.release(ManagedLedgerFenced("gone"))
        await settle()
        assert sink.answered == [0, 1]

    run(scenario)


def test_closing_by_the_client_still_gets_receipts_for_what_it_published() -> None:
    async def scenario() -> None:
        world, producer, sink = await held()
        producer.publish(send_run([0]))
        producer.close()
        producer.close()
        world.ledger.release()
        await settle()
        assert sink.heard == [("receipts", [0], Position(3, 0))]
        assert world.topic.activity().producers == 0

    run(scenario)


def test_unloading_waits_for_runs_under_way_and_fails_later_ones_after_the_close() -> None:
    async def scenario() -> None:
        world, producer, sink = await held()
        producer.publish(send_run([0]))
        closing = asyncio.ensure_future(world.topic.close())
        await settle()
        producer.publish(send_run([1]))
        assert sink.heard == []
        world.ledger.release()
        await closing
        assert [heard[0] for heard in sink.heard] == ["receipts", "closed", "send_failed"]
        assert world.ledger.entry_count == 1

    run(scenario)


def test_the_topic_epoch_is_stored_under_apaches_name_beside_other_properties() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        world.ledger.properties = {"other": "kept"}
        producer, _ = await world.producer(access_mode=AccessMode.EXCLUSIVE)
        assert producer.topic_epoch == 0
        assert world.ledger.properties == {"other": "kept", TOPIC_EPOCH_PROPERTY: "0"}
        assert TOPIC_EPOCH_PROPERTY == "pulsar.topic.epoch"

    run(scenario)


def test_the_topic_epoch_survives_unloading() -> None:
    async def scenario() -> None:
        ledger = MemoryLedger()
        for expected in range(3):
            world = TopicWorld(ledger)
            producer, _ = await world.producer(access_mode=AccessMode.EXCLUSIVE_WITH_FENCING)
            assert producer.topic_epoch == expected
            await world.topic.close()

    run(scenario)


def test_wait_for_exclusive_becomes_ready_when_the_topic_is_free() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        first, _ = await world.producer()
        waiting, sink = await world.producer(name="w", access_mode=AccessMode.WAIT_FOR_EXCLUSIVE)
        ready_at_first = waiting.is_ready
        first.close()
        await settle()
        assert (ready_at_first, waiting.is_ready) == (False, True)
        assert sink.heard == [("ready", 0)]
        waiting.publish(send_run([0]))
        await settle()
        assert sink.answered == [0]

    run(scenario)


def test_fencing_closes_the_owner_and_refuses_who_waits() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        owner, owner_sink = await world.producer(access_mode=AccessMode.EXCLUSIVE)
        _, waiting_sink = await world.producer(name="w", access_mode=AccessMode.WAIT_FOR_EXCLUSIVE)
        fencing, _ = await world.producer(name="f", access_mode=AccessMode.EXCLUSIVE_WITH_FENCING)
        assert owner_sink.heard == [("closed",)]
        assert waiting_sink.heard == [("refused", ServerError.PRODUCER_FENCED)]
        assert fencing.topic_epoch == 1
        owner.publish(send_run([9]))
        await settle()
        assert world.ledger.entry_count == 0, "the old owner can store nothing any more"

    run(scenario)


def test_a_producer_fenced_out_while_it_is_admitted_is_refused() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        world.ledger.properties_gate = asyncio.Event()
        slow = asyncio.ensure_future(world.producer(name="a", access_mode=AccessMode.EXCLUSIVE))
        await settle()
        fencing = asyncio.ensure_future(world.producer(name="b", access_mode=AccessMode.EXCLUSIVE_WITH_FENCING))
        await settle()
        world.ledger.properties_gate.set()
        with pytest.raises(BrokerError) as refused:
            await slow
        assert refused.value.code is ServerError.PRODUCER_FENCED
        producer, _ = await fencing
        assert producer.topic_epoch == 1
        assert world.ledger.properties[TOPIC_EPOCH_PROPERTY] == "1"

    run(scenario)


def test_an_epoch_that_cannot_be_stored_refuses_the_producer() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        world.ledger.properties_error = ManagedLedgerError("no metadata")
        with pytest.raises(BrokerError) as refused:
            await world.producer(access_mode=AccessMode.EXCLUSIVE)
        assert refused.value.code is ServerError.PERSISTENCE
        world.ledger.properties_error = None
        producer, _ = await world.producer(access_mode=AccessMode.EXCLUSIVE)
        assert producer.topic_epoch == 1

    run(scenario)


def test_an_admission_whose_client_goes_away_leaves_room_for_others() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        world.ledger.properties_gate = asyncio.Event()
        asking = asyncio.ensure_future(world.producer(access_mode=AccessMode.EXCLUSIVE))
        await settle()
        asking.cancel()
        await settle()
        world.ledger.properties_gate.set()
        await settle()
        _, sink = await world.producer(name="q")
        assert sink.heard == []
        assert world.topic.activity().producers == 1

    run(scenario)


def test_a_topic_that_closes_refuses_whoever_is_being_admitted() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        world.ledger.properties_gate = asyncio.Event()
        asking = asyncio.ensure_future(world.producer(access_mode=AccessMode.EXCLUSIVE))
        await settle()
        await world.topic.close()
        with pytest.raises(BrokerError) as refused:
            await asking
        assert refused.value.code is ServerError.SERVICE_NOT_READY

    run(scenario)


def test_a_producer_admitted_at_the_moment_of_closing_is_asked_to_come_back() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        world.ledger.properties_gate = asyncio.Event()
        asking = asyncio.ensure_future(world.producer(access_mode=AccessMode.EXCLUSIVE))
        await settle()
        publishers = world.topic.publishers
        publishers._perform(publishers._admission.handle(EpochStored(ProducerKey(1), 0)))
        await publishers.end_all("now")
        with pytest.raises(BrokerError) as refused:
            await asking
        assert refused.value.code is ServerError.SERVICE_NOT_READY

    run(scenario)


def test_a_replaced_producers_runs_are_still_answered_and_it_hears_nothing_else() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        world.ledger.hold = True
        old, old_sink = await world.producer(epoch=0)
        old.publish(send_run([0]))
        await world.producer(epoch=1)
        world.ledger.release()
        await settle()
        assert old_sink.heard == [("receipts", [0], Position(3, 0))]
        old.close()
        assert world.topic.activity().producers == 1

    run(scenario)


@pytest.mark.parametrize(
    ("settings", "fields", "code"),
    [
        (TopicSettings(encryption_require_on_producer=True), {}, ServerError.METADATA),
        (
            TopicSettings(allow_auto_subscription_creation=False),
            {"initial_subscription_name": "s"},
            ServerError.NOT_ALLOWED,
        ),
    ],
)
def test_producers_are_refused_as_the_settings_say(settings: TopicSettings, fields: dict[str, Any], code: ServerError) -> None:
    async def scenario() -> None:
        world = TopicWorld(settings=settings)
        with pytest.raises(BrokerError) as refused:
            await world.producer(**fields)
        assert refused.value.code is code

    run(scenario)


def test_the_initial_subscription_is_made_before_the_first_message() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        await world.publish_many(2)
        await world.producer(initial_subscription_name="dlq sub")
        assert world.ledger.cursors["dlq+sub"].backlog_entries() == 2
        assert list(world.topic.stats().subscriptions) == ["dlq sub"]

    run(scenario)


def test_publishing_is_counted_and_sampled() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        producer, _ = await world.producer()
        producer.publish(send_run([0, 1, 2], flags=FLAG_CHUNK))
        await settle()
        stats = world.topic.stats()
        assert stats.msg_in_counter == 3
        assert stats.bytes_in_counter == world.ledger.size_bytes
        assert stats.msg_chunk_published
        assert stats.publishers[0].access_mode == "Shared"
        assert stats.last_publish_time_stamp == world.clock.time_ms

    run(scenario)
