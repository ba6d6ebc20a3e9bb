"""A topic whose bookies take nothing now: its producers are sent away, and it is open to everybody else."""

import asyncio

import pytest

from broker.errors import BrokerError, ServerError
from broker.topic.contract import SubscriptionType
from managed_ledger.append.append_driver import Appender
from managed_ledger.contract import AppendRefused
from managed_ledger.managed_ledger_driver import StoredManagedLedger
from tests.broker.topic.test_topic_on_managed_ledger import StoredWorld
from tests.broker.topic.topic_world import ack_run, run, send_run
from tests.broker.topic.transactions.transaction_world import ONE, TWO, TransactionWorld, send, text_of
from wire.position import Position
from wire.transactions import TxnAction


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_topic_whose_bookies_take_nothing_keeps_its_consumers_and_sends_its_producers_away(is_stored: bool) -> None:
    async def scenario() -> None:
        world = StoredWorld()
        await world.open()
        producer, heard = await world.producer()
        _, others = await world.producer(name="q")
        consumer, sink = await world.consumer(type=SubscriptionType.SHARED)
        await world.publish_many(1)
        store = world.storage.ledger_store
        store.fail_appends, store.fail_creates, store.lose_answers = 1, 1, is_stored
        producer.publish(send_run([0]))
        producer.publish(send_run([1]))
        await asyncio.sleep(1)
        stored = [("receipts", [0], Position(1, 1))] if is_stored else []
        refused = [("send_failed", [number], ServerError.SERVICE_NOT_READY) for number in (0, 1)]
        assert heard.heard == [*stored, ("closed",), *refused[is_stored:]]
        assert others.heard == [("closed",)]
        again, heard = await world.producer()
        again.publish(send_run([0, 1]))
        await asyncio.sleep(1)
        consumer.acknowledge_run(ack_run(*sink.positions))
        assert [len(heard.heard), len(sink.got), sink.heard] == [1, 3 + is_stored, []]
        assert world.topic.stats().subscriptions["s"].msg_backlog == 0

    run(scenario)


def test_messages_published_before_a_refusal_is_heard_do_not_overtake_the_refused_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        world = StoredWorld()
        await world.open()
        producer, heard = await world.producer()
        world.storage.ledger_store.fail_creates = 1
        assert isinstance(world.log, StoredManagedLedger)
        refuse = Appender._refuse_waiting

        def refuse_and_publish(appender: Appender, refusal: AppendRefused) -> None:
            """The producer hears of the failure a turn later."""
            refuse(appender, refusal)
            producer.publish(send_run([1]))

        monkeypatch.setattr(Appender, "_refuse_waiting", refuse_and_publish)
        producer.publish(send_run([0]))
        await asyncio.sleep(1)
        assert world.log.entry_count == 0
        assert [what for what, *_ in heard.heard] == ["closed", "send_failed", "send_failed"]

    run(scenario)


@pytest.mark.parametrize("has_message", [True, False])
def test_a_transaction_whose_marker_no_bookie_takes_stays_open_until_one_does(has_message: bool) -> None:
    async def scenario() -> None:
        world = TransactionWorld()
        await world.open()
        producer, _ = await world.producer()
        _, sink = await world.consumer()
        send(producer, "other", TWO)
        if has_message:
            send(producer, "one", ONE)
        await asyncio.sleep(1)
        store = world.storage.ledger_store
        store.fail_appends, store.fail_creates = 1, 1
        with pytest.raises(BrokerError) as refused:
            await world.topic.end_transaction(ONE, TxnAction.COMMIT, -1)
        assert refused.value.code is ServerError.PERSISTENCE
        assert not world.topic.is_closed
        await world.topic.end_transaction(ONE, TxnAction.ABORT, -1)
        await world.topic.end_transaction(TWO, TxnAction.COMMIT, -1)
        await asyncio.sleep(1)
        assert [text_of(each.body) for each in sink.got] == ["other"]
        await world.kill()
        with pytest.raises(BrokerError, match="aborted"):
            await world.topic.end_transaction(ONE, TxnAction.COMMIT, -1)

    run(scenario)


def test_a_message_of_a_transaction_that_no_bookie_takes_holds_no_reader_up() -> None:
    async def scenario() -> None:
        world = TransactionWorld()
        await world.open()
        producer, heard = await world.producer()
        _, sink = await world.consumer()
        send(producer, "two", TWO)
        await asyncio.sleep(1)
        await world.topic.end_transaction(TWO, TxnAction.COMMIT, -1)
        store = world.storage.ledger_store
        store.fail_appends, store.fail_creates = 1, 9  # the cursor wants a ledger too
        send(producer, "one", ONE)
        await asyncio.sleep(1)
        store.fail_appends = store.fail_creates = 0
        assert [what for what, *_ in heard.heard] == ["receipts", "closed", "send_failed"]
        producer, _ = await world.producer()
        send(producer, "after")
        await asyncio.sleep(1)
        assert [text_of(each.body) for each in sink.got] == ["two", "after"]

    run(scenario)
