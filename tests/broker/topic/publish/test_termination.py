"""Producers of a topic that ends: what is on its way is answered, and they are closed before they could hear otherwise."""

import asyncio

import pytest

from broker.errors import BrokerError, ServerError
from managed_ledger.contract import ManagedLedgerError
from tests.broker.topic.publish.test_publish_path import held
from tests.broker.topic.topic_world import run, send_run, settle


def test_producers_of_a_terminated_topic_are_sent_away_and_told_why_when_they_come_back() -> None:
    async def scenario() -> None:
        world, producer, sink = await held()
        producer.publish(send_run([0]))
        ending = asyncio.ensure_future(world.topic.terminate())
        await settle()
        producer.publish(send_run([1]))
        world.ledger.release()
        await ending
        assert [heard[0] for heard in sink.heard] == ["receipts", "closed", "send_failed"]
        assert sink.answered == [0, 1]
        assert not world.topic.is_closed
        with pytest.raises(BrokerError) as refused:
            await world.producer(name="late")
        assert refused.value.code is ServerError.TOPIC_TERMINATED

    run(scenario)


def test_a_producer_is_sent_away_before_it_hears_that_its_message_met_the_end_of_the_topic() -> None:
    """Go's client takes a producer whose SEND_ERROR says so out of its list, and then never hears of CLOSE_PRODUCER."""

    async def scenario() -> None:
        world, producer, sink = await held()
        producer.publish(send_run([0]))
        await world.ledger.terminate()  # the topic does not know of it yet
        producer.publish(send_run([1]))
        world.ledger.release()
        await settle()
        assert [heard[0] for heard in sink.heard] == ["receipts", "closed", "send_failed"]
        assert sink.answered == [0, 1]
        assert world.topic.publishers.count == 0
        await world.topic.terminate()
        assert len(sink.heard) == 3

    run(scenario)


def test_messages_of_a_producer_that_left_are_still_answered_at_the_end_of_the_topic() -> None:
    async def scenario() -> None:
        world, producer, sink = await held()
        producer.publish(send_run([0]))
        await world.ledger.terminate()
        producer.publish(send_run([1]))
        producer.close()
        world.ledger.release()
        await settle()
        assert [heard[0] for heard in sink.heard] == ["receipts", "send_failed"]

    run(scenario)


def test_a_topic_whose_end_could_not_be_stored_is_loaded_anew() -> None:
    async def scenario() -> None:
        world, producer, sink = await held()
        world.ledger.properties_error = ManagedLedgerError("no metadata")
        producer.publish(send_run([0]))
        with pytest.raises(BrokerError) as refused:
            await world.topic.terminate()
        assert refused.value.code is ServerError.PERSISTENCE
        await settle()
        assert sink.heard[0] == ("closed",)
        assert world.topic.is_closed

    run(scenario)
