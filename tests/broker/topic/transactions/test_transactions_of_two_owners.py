"""A topic that goes from one broker to another amid transactions: what comes late, and an owner of before that goes on."""

import asyncio

import pytest

from broker.errors import BrokerError, ServerError
from broker.topic.contract import Acknowledgement, SubscriptionType
from tests.broker.topic.topic_world import run
from tests.broker.topic.transactions.transaction_world import ONE, THREE, TWO, TransactionWorld, body, send, text_of
from wire.position import Position
from wire.transactions import TxnAction

COMMIT, ABORT = TxnAction.COMMIT, TxnAction.ABORT


def acks(position: Position) -> Acknowledgement:
    return Acknowledgement(False, (position,), ((),), (0,))


async def second_owner(first: TransactionWorld) -> TransactionWorld:
    """Has opened the topic while the first one lives on."""
    second = TransactionWorld()
    second.storage.tree, second.storage.shared = first.storage.tree, first.storage.shared
    second.storage.start()
    await second.open()
    return second


@pytest.mark.parametrize("action", [COMMIT, ABORT])
@pytest.mark.parametrize("was_used", [False, True])
def test_a_message_that_comes_after_its_transaction_has_ended_without_one_is_refused_by_the_next_owner_too(
    action: TxnAction, was_used: bool
) -> None:
    """The transaction would be open for ever: its coordinator has forgotten it, and nothing behind it would be read."""

    async def scenario() -> None:
        world = TransactionWorld()
        await world.open()
        if was_used:
            producer, _ = await world.producer()
            send(producer, "two", TWO)
            await asyncio.sleep(1)
            await world.topic.end_transaction(TWO, ABORT, -1)
        await world.topic.end_transaction(ONE, action, -1)
        stored = world.log.entry_count
        await world.topic.end_transaction(ONE, action, -1)
        assert world.log.entry_count == stored, "one marker"
        await world.kill()
        producer, heard = await world.producer()
        _, sink = await world.consumer()
        send(producer, "one, too late", ONE, 1)
        send(producer, "plain", None, 2)
        await asyncio.sleep(1)
        assert ("send_failed", [1], ServerError.NOT_ALLOWED) in heard.heard
        assert [text_of(delivery.body) for delivery in sink.got] == ["plain"]

    run(scenario)


def test_an_owner_of_before_does_not_say_that_there_is_nothing_to_end() -> None:
    """The second owner has the acknowledgements; told that there is nothing to end, the coordinator would forget them."""

    async def scenario() -> None:
        first = TransactionWorld()
        await first.open()
        consumer, sink = await first.consumer(type=SubscriptionType.SHARED)
        await first.publish(*[body(str(number)) for number in range(3)])
        await asyncio.sleep(1)
        at = sink.positions
        await consumer.acknowledge_in(THREE, acks(at[0]))
        await first.topic.end_acknowledgements("s", THREE, COMMIT, -1)
        subscription = first.topic.subscriptions.get("s")
        assert subscription is not None
        second = await second_owner(first)
        producer, _ = await second.producer()
        send(producer, "one", ONE)
        again, _ = await second.consumer(type=SubscriptionType.SHARED)
        await asyncio.sleep(1)
        await again.acknowledge_in(ONE, acks(at[1]))
        for asked in (first.topic.transactions, subscription.transactions):
            with pytest.raises(BrokerError):
                await asked.end(ONE, COMMIT, -1)
        await second.topic.end_transaction(ONE, COMMIT, -1)
        await second.topic.end_acknowledgements("s", ONE, COMMIT, -1)
        assert second.topic.transactions.buffer.committed_count == 1
        assert second.topic.stats().subscriptions["s"].msg_backlog == 2, "the third, and the one of the transaction"

    run(scenario)


def test_an_owner_of_before_does_not_take_the_log_of_acknowledgements_that_the_second_has_made() -> None:
    async def scenario() -> None:
        first = TransactionWorld()
        await first.open()
        await first.topic.create_subscription("s", from_earliest=True, properties={})
        await first.kill()
        consumer, sink = await first.consumer(type=SubscriptionType.SHARED)
        await first.publish(*[body(str(number)) for number in range(3)])
        await asyncio.sleep(1)
        second = await second_owner(first)
        again, _ = await second.consumer(type=SubscriptionType.SHARED)
        await again.acknowledge_in(ONE, acks(sink.positions[0]))
        with pytest.raises(BrokerError):
            await consumer.acknowledge_in(TWO, acks(sink.positions[1]))
        await second.kill()
        await second.topic.end_acknowledgements("s", ONE, COMMIT, -1)
        assert second.topic.stats().subscriptions["s"].msg_backlog == 2

    run(scenario)
