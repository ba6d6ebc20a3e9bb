"""Messages in transactions on a topic with real ledgers: all of one are seen, or none, whatever happens to the broker."""

import asyncio
from dataclasses import replace

import pytest

from broker.errors import BrokerError, ServerError
from broker.policies.topic_settings import TopicSettings
from broker.topic.contract import SubscriptionType
from broker.transaction.snapshots.messages import Keyed
from broker.transaction.snapshots.schemas import Kind
from broker.transaction.snapshots.snapshot_topic import SnapshotTopic
from tests.broker.topic.topic_world import TOPIC, ConsumerEnd, ack_run, run
from tests.broker.topic.transactions.transaction_world import ONE, THREE, TWO, TransactionWorld, send, text_of
from wire.position import Position
from wire.transactions import TxnAction

COMMIT, ABORT = TxnAction.COMMIT, TxnAction.ABORT
SEGMENTED = TopicSettings(transaction_buffer_segmented_snapshot_enabled=True, transaction_buffer_snapshot_segment_size=60)
"""Settings that seal a snapshot segment at seven aborted transactions."""


def texts(sink: ConsumerEnd) -> list[str]:
    return [text_of(delivery.body) for delivery in sink.got]


def test_messages_are_read_when_their_transaction_is_committed_and_nothing_passes_them() -> None:
    async def scenario() -> None:
        world = TransactionWorld()
        await world.open()
        producer, heard = await world.producer()
        _, sink = await world.consumer()
        send(producer, "before")
        send(producer, "one", ONE)
        send(producer, "after")
        send(producer, "two", TWO)
        await asyncio.sleep(1)
        assert heard.answered == [0, 0, 0, 0], "stored and answered"
        assert texts(sink) == ["before"]
        await world.topic.end_transaction(TWO, COMMIT, -1)
        await asyncio.sleep(1)
        assert texts(sink) == ["before"], "the first transaction is still open"
        await world.topic.end_transaction(ONE, COMMIT, -1)
        await asyncio.sleep(1)
        assert texts(sink) == ["before", "one", "after", "two"], "in the order of the log, without markers"

    run(scenario)


def test_a_topic_is_not_terminated_while_a_transaction_is_open_which_could_not_end_any_more() -> None:
    async def scenario() -> None:
        world = TransactionWorld()
        await world.open()
        producer, heard = await world.producer()
        _, sink = await world.consumer()
        send(producer, "one", ONE)
        with pytest.raises(BrokerError, match="has open transactions") as refused:
            await world.topic.terminate()  # also while its first message is on its way
        assert refused.value.code is ServerError.TRANSACTION_CONFLICT
        await asyncio.sleep(1)
        send(producer, "after")
        with pytest.raises(BrokerError, match="has open transactions"):
            await world.topic.terminate()
        await world.topic.end_transaction(ONE, COMMIT, -1)
        await world.topic.terminate()
        await world.topic.terminate()
        await asyncio.sleep(1)
        assert texts(sink) == ["one", "after"]
        assert heard.answered == [0, 0]
        await world.topic.end_transaction(ONE, COMMIT, -1)  # asked again, and another that had nothing here
        await world.topic.end_transaction(TWO, ABORT, -1)

    run(scenario)


def test_transactions_ended_before_a_topic_was_loaded_are_not_counted_again() -> None:
    async def scenario() -> None:
        world = TransactionWorld()
        await world.open()
        producer, _ = await world.producer()
        for txn_id, action in ((ONE, ABORT), (TWO, COMMIT)):
            send(producer, "one", txn_id)
            await asyncio.sleep(1)
            await world.topic.end_transaction(txn_id, action, -1)
        assert (world.topic.stats().aborted_txn_count, world.topic.stats().committed_txn_count) == (1, 1)
        await world.kill()
        await world.open()
        assert (world.topic.stats().aborted_txn_count, world.topic.stats().committed_txn_count) == (0, 0)

    run(scenario)


def test_messages_of_an_aborted_transaction_are_never_read_and_leave_no_backlog() -> None:
    async def scenario() -> None:
        world = TransactionWorld()
        await world.open()
        producer, _ = await world.producer()
        consumer, sink = await world.consumer(type=SubscriptionType.SHARED)
        send(producer, "one", ONE)
        send(producer, "plain")
        send(producer, "one again", ONE)
        await asyncio.sleep(1)
        assert texts(sink) == []
        await world.topic.end_transaction(ONE, ABORT, -1)
        await asyncio.sleep(1)
        assert texts(sink) == ["plain"]
        consumer.acknowledge_run(ack_run(*sink.positions))
        await asyncio.sleep(1)
        assert world.topic.stats().subscriptions["s"].msg_backlog == 0

    run(scenario)


@pytest.mark.parametrize("settings", [TopicSettings(), SEGMENTED], ids=["single", "segmented"])
@pytest.mark.parametrize("action", [COMMIT, ABORT, None])
@pytest.mark.parametrize("after_seconds", [0, 10])
def test_a_killed_broker_knows_again_what_was_decided(
    action: TxnAction | None, after_seconds: int, settings: TopicSettings
) -> None:
    """With a snapshot since, or without; None: nothing was, and it is afterwards."""

    async def scenario() -> None:
        world = TransactionWorld(settings)
        await world.open()
        producer, _ = await world.producer()
        await world.topic.create_subscription("s", from_earliest=True, properties={})
        send(producer, "before", TWO)
        await asyncio.sleep(1)
        await world.topic.end_transaction(TWO, ABORT, -1)
        for number in range(12):  # more than one ledger
            send(producer, f"one {number}", ONE)
            send(producer, f"plain {number}")
        await asyncio.sleep(1)
        if action is not None:
            await world.topic.end_transaction(ONE, action, -1)
        await asyncio.sleep(after_seconds)
        await world.kill()
        _, sink = await world.consumer()
        await asyncio.sleep(1)
        if action is None:
            assert texts(sink) == []
            await world.topic.end_transaction(ONE, COMMIT, -1)
            await asyncio.sleep(1)
        kinds = ["one", "plain"] if action is not ABORT else ["plain"]
        assert texts(sink) == [f"{kind} {number}" for number in range(12) for kind in kinds]

    run(scenario)


def test_an_end_is_repeated_without_harm_and_a_commit_of_what_was_aborted_is_refused() -> None:
    async def scenario() -> None:
        world = TransactionWorld()
        await world.open()
        producer, _ = await world.producer()
        send(producer, "one", ONE)
        send(producer, "two", TWO)
        await asyncio.sleep(1)
        await asyncio.gather(*(world.topic.end_transaction(ONE, COMMIT, -1) for _ in range(2)))
        await world.topic.end_transaction(ONE, COMMIT, -1)
        await world.topic.end_transaction(TWO, ABORT, -1)
        await world.topic.end_transaction(TWO, ABORT, -1)
        assert world.log.entry_count == 4, "one marker each"
        await world.kill()
        with pytest.raises(BrokerError) as refused:
            await world.topic.end_transaction(TWO, COMMIT, -1)
        assert refused.value.code is ServerError.TRANSACTION_CONFLICT

    run(scenario)


def test_a_committed_transaction_stays_so_and_only_the_first_of_two_ends_at_once_is_done() -> None:
    async def scenario() -> None:
        world = TransactionWorld()
        await world.open()
        producer, _ = await world.producer()
        _, sink = await world.consumer()
        for txn_id in (ONE, TWO, THREE):
            send(producer, str(txn_id.least), txn_id)
        await asyncio.sleep(1)
        await world.topic.end_transaction(ONE, COMMIT, -1)
        with pytest.raises(BrokerError, match=r"was committed on .*; it cannot be aborted") as refused:
            await world.topic.end_transaction(ONE, ABORT, -1)
        assert refused.value.code is ServerError.TRANSACTION_CONFLICT
        ends = [(TWO, ABORT), (TWO, COMMIT), (THREE, COMMIT), (THREE, ABORT)]
        told = await asyncio.gather(*(world.topic.end_transaction(*each, -1) for each in ends), return_exceptions=True)
        assert [type(each) for each in told] == [type(None), BrokerError, type(None), BrokerError]
        await asyncio.sleep(1)
        assert texts(sink) == ["1", "3"]
        assert world.log.entry_count == 6, "one marker each"

    run(scenario)


def test_a_message_for_a_transaction_that_has_ended_is_refused() -> None:
    async def scenario() -> None:
        world = TransactionWorld()
        await world.open()
        producer, heard = await world.producer()
        _, sink = await world.consumer()
        send(producer, "one", ONE)
        await asyncio.sleep(1)
        await world.topic.end_transaction(ONE, ABORT, -1)
        await world.topic.end_transaction(TWO, COMMIT, -1)  # without a message here
        send(producer, "one, too late", ONE, 1)
        send(producer, "two, too late", TWO, 2)
        send(producer, "plain", None, 3)
        await asyncio.sleep(1)
        failed = [(ids, code) for what, ids, code in heard.heard if what == "send_failed"]
        assert failed == [([1], ServerError.NOT_ALLOWED), ([2], ServerError.NOT_ALLOWED)]
        assert heard.answered == [0, 1, 2, 3]
        assert texts(sink) == ["plain"]
        assert not world.topic.is_closed

    run(scenario)


def test_a_transaction_that_its_coordinator_forgot_is_aborted() -> None:
    async def scenario() -> None:
        world = TransactionWorld()
        await world.open()
        producer, heard = await world.producer()
        _, sink = await world.consumer()
        send(producer, "one", ONE)
        send(producer, "two", TWO)
        send(producer, "three", THREE)
        await asyncio.sleep(1)
        await world.topic.end_transaction(THREE, COMMIT, ONE.least)
        send(producer, "one, too late", ONE, 9)
        await asyncio.sleep(1)
        assert texts(sink) == []
        assert world.topic.transactions.buffer.open_count == 1, "the second is above the mark"
        await world.topic.end_transaction(TWO, COMMIT, ONE.least)
        await asyncio.sleep(1)
        assert texts(sink) == ["two", "three"]
        assert ("send_failed", [9], ServerError.NOT_ALLOWED) in heard.heard

    run(scenario)


def test_the_last_message_is_the_last_that_is_committed() -> None:
    async def scenario() -> None:
        world = TransactionWorld()
        await world.open()
        producer, _ = await world.producer()
        consumer, _ = await world.consumer()
        send(producer, "plain")
        send(producer, "one", ONE)
        await asyncio.sleep(1)
        assert (await consumer.last_message()).position.entry_id == 0
        await world.topic.end_transaction(ONE, ABORT, -1)
        assert (await consumer.last_message()).position.entry_id == 0
        send(producer, "two", TWO)
        await asyncio.sleep(1)
        await world.topic.end_transaction(TWO, COMMIT, -1)
        assert (await consumer.last_message()).position.entry_id == 3

    run(scenario)


@pytest.mark.parametrize("messages", [0, 1, 2])
def test_killed_while_a_snapshot_is_written_the_next_one_knows_all_that_were_aborted(
    messages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the segment, between it and the index, and after that."""
    sound, left = SnapshotTopic.append, [messages]

    async def so_many(self: SnapshotTopic, keyed: Keyed, *, is_made: bool = True) -> Position | None:
        if not left[0]:
            await asyncio.get_running_loop().create_future()
        left[0] -= 1
        return await sound(self, keyed, is_made=is_made)

    async def scenario() -> None:
        world = TransactionWorld(SEGMENTED)
        await world.open()
        producer, _ = await world.producer()
        await world.topic.create_subscription("s", from_earliest=True, properties={})
        ids = [ONE._replace(least=number) for number in range(40)]
        for txn_id in ids:
            send(producer, "x", txn_id)
            await asyncio.sleep(0.01)
            await world.topic.end_transaction(txn_id, ABORT, -1)
        monkeypatch.setattr(SnapshotTopic, "append", so_many)
        writing = asyncio.create_task(world.topic.transactions._snapshot())
        await asyncio.sleep(1)
        assert writing.done() is (messages == 2)
        await world.kill()
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        assert [txn_id for txn_id in ids if txn_id not in world.topic.transactions.buffer.aborted] == []
        assert bool(world.topic.transactions.buffer.aborted.sealed) is (messages == 2)

    run(scenario)


@pytest.mark.parametrize("is_segmented", [False, True], ids=["single", "segmented"])
def test_a_long_aborted_list_is_forgotten_with_its_messages(is_segmented: bool) -> None:
    settings = replace(
        SEGMENTED,
        transaction_buffer_snapshot_max_transaction_count=7,
        transaction_buffer_segmented_snapshot_enabled=is_segmented,
    )

    async def scenario() -> None:
        world = TransactionWorld(settings)
        await world.open()
        producer, _ = await world.producer()
        await world.topic.create_subscription("s", from_earliest=True, properties={})
        ids = [ONE._replace(least=number * 1_000_003) for number in range(60)]
        for txn_id in ids:
            send(producer, "x", txn_id)
            await asyncio.sleep(0.01)
            await world.topic.end_transaction(txn_id, ABORT, -1)
        assert len(world.topic.transactions.buffer.aborted.segments) > 5
        assert bool(world.topic.transactions.buffer.aborted.sealed) is is_segmented
        await world.kill()
        aborted = world.topic.transactions.buffer.aborted
        assert all(txn_id in aborted for txn_id in ids)
        assert len(aborted) == 60
        aborted.check_invariants()
        consumer, sink = await world.consumer()
        send((await world.producer())[0], "plain")
        await asyncio.sleep(1)
        assert texts(sink) == ["plain"]
        consumer.acknowledge_run(ack_run(*sink.positions))
        await asyncio.sleep(1)
        await world.topic.trim()
        world.topic.transactions._changes += 1
        await asyncio.sleep(10)
        await world.kill()
        assert len(world.topic.transactions.buffer.aborted) < 10

    run(scenario)


@pytest.mark.parametrize("settings", [TopicSettings(), SEGMENTED], ids=["single", "segmented"])
def test_a_topic_takes_its_snapshots_with_it(settings: TopicSettings) -> None:
    async def scenario() -> None:
        world = TransactionWorld(settings)
        await world.open()
        producer, _ = await world.producer()
        await world.topic.create_subscription("s", from_earliest=True, properties={})
        kind = Kind.INDEXES if settings is SEGMENTED else Kind.SINGLE
        for number in range(8):
            send(producer, "one", ONE._replace(least=number), number)
            await asyncio.sleep(1)
            await world.topic.end_transaction(ONE._replace(least=number), ABORT, -1)
        await asyncio.sleep(10)
        keys = [TOPIC] if kind is Kind.SINGLE else [TOPIC, f"multiple-0-{TOPIC}"]
        kinds = [kind, Kind.SEGMENTS][: len(keys)]
        assert all([await world.snapshots.topics[each].latest(key) for each, key in zip(kinds, keys, strict=True)])
        await world.topic.delete(force=True)
        assert not any([await world.snapshots.topics[each].latest(key) for each, key in zip(kinds, keys, strict=True)])

    run(scenario)


def test_without_its_snapshots_the_whole_topic_is_read() -> None:
    """A segment is gone, a record is unreadable: aborted transactions stay aborted."""

    async def scenario() -> None:
        world = TransactionWorld(replace(SEGMENTED, transaction_buffer_snapshot_max_transaction_count=1))
        await world.open()
        producer, _ = await world.producer()
        await world.topic.create_subscription("s", from_earliest=True, properties={})
        ids = [ONE._replace(least=number) for number in range(9)]
        for txn_id in ids:
            send(producer, "x", txn_id, txn_id.least)
            await asyncio.sleep(1)
            await world.topic.end_transaction(txn_id, ABORT, -1)
        await asyncio.sleep(1)
        for record in (b"\xff", b"\2\2\1\1\1\1\1\0\0\0"):
            await world.snapshots.topics[Kind.INDEXES].append(Keyed(TOPIC, record))
            await world.kill()
            assert all(txn_id in world.topic.transactions.buffer.aborted for txn_id in ids)
            assert world.topic.transactions.has_been_used

    run(scenario)
