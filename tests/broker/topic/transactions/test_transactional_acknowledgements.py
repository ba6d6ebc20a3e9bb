"""Acknowledgements in transactions on a topic with real ledgers: they count when it is committed, whatever happens between."""

import asyncio
from unittest.mock import patch

import pytest

from broker.errors import BrokerError, ServerError
from broker.topic.contract import Acknowledgement, SubscriptionType
from broker.topic.subscription.consumer import TopicConsumer
from managed_ledger.contract import ManagedLedgerError
from ports.loop.promise import Promise
from tests.broker.topic.topic_world import ConsumerEnd, ack_run, run
from tests.broker.topic.transactions.transaction_world import ONE, THREE, TWO, TransactionWorld, body
from tests.managed_ledger.ledger_world import NAME
from wire.position import Position
from wire.transactions import TxnAction, TxnId

COMMIT, ABORT = TxnAction.COMMIT, TxnAction.ABORT
LOG = "-s__transaction_pending_ack"


def acks(*positions: Position, ack_set: tuple[int, ...] = (), size: int = 0, cumulative: bool = False) -> Acknowledgement:
    return Acknowledgement(cumulative, positions, (ack_set,) * len(positions), (size,) * len(positions))


async def opened(
    subscription_type: SubscriptionType = SubscriptionType.SHARED, batch: int | None = None, count: int = 10
) -> tuple[TransactionWorld, TopicConsumer, ConsumerEnd]:
    world = TransactionWorld()
    await world.open()
    consumer, sink = await world.consumer(type=subscription_type)
    await world.publish(*[body(str(number), batch=batch) for number in range(count)])
    await asyncio.sleep(1)
    assert len(sink.got) == count
    return world, consumer, sink


async def conflict(consumer: TopicConsumer, txn_id: TxnId, acknowledgement: Acknowledgement) -> None:
    with pytest.raises(BrokerError) as refused:
        await consumer.acknowledge_in(txn_id, acknowledgement)
    assert refused.value.code is ServerError.TRANSACTION_CONFLICT


async def end(world: TransactionWorld, txn_id: TxnId, action: TxnAction, mark: int = -1) -> None:
    await world.topic.end_acknowledgements("s", txn_id, action, mark)


async def delivered_to_the_next(world: TransactionWorld, kind: SubscriptionType) -> list[Position]:
    consumer, sink = await world.consumer(type=kind)
    await asyncio.sleep(1)
    consumer.close()
    return sink.positions


TYPES = [SubscriptionType.SHARED, SubscriptionType.EXCLUSIVE, SubscriptionType.FAILOVER, SubscriptionType.KEY_SHARED]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("killed", ["before", "after"])
@pytest.mark.parametrize("action", [COMMIT, ABORT])
def test_they_count_when_it_is_committed_also_after_a_kill(kind: SubscriptionType, killed: str, action: TxnAction) -> None:
    async def scenario() -> None:
        world, consumer, sink = await opened(kind)
        taken = sink.positions[2:7:2]
        await consumer.acknowledge_in(ONE, acks(*taken))
        consumer.acknowledge_run(ack_run(sink.positions[0]))
        await consumer.acknowledgements_stored()
        if killed == "before":
            await world.kill()
            rest = [position for position in sink.positions[1:] if position not in taken]
            assert await delivered_to_the_next(world, kind) == rest, "what is pending is given to nobody"
        await end(world, ONE, action)
        if killed == "after":
            await world.kill()
        gone = taken if action is COMMIT else []
        rest = [position for position in sink.positions[1:] if position not in gone]
        assert await delivered_to_the_next(world, kind) == rest

    run(scenario)


def test_a_second_acknowledgement_in_a_transaction_conflicts_and_acknowledges_nothing() -> None:
    async def scenario() -> None:
        world, consumer, sink = await opened()
        one, two, three, *_ = sink.positions
        consumer.acknowledge_run(ack_run(three))
        await consumer.acknowledge_in(ONE, acks(one))
        await conflict(consumer, TWO, acks(two, one))
        await conflict(consumer, ONE, acks(one))
        await conflict(consumer, TWO, acks(two, three))
        await consumer.acknowledge_in(THREE, acks(two))
        await end(world, ONE, ABORT)
        await consumer.acknowledge_in(TWO, acks(one))
        await end(world, THREE, COMMIT)
        await end(world, TWO, COMMIT)
        assert await delivered_to_the_next(world, SubscriptionType.SHARED) == []
        await conflict(consumer, TxnId(8, 1), acks(one))
        assert world.topic.stats().subscriptions["s"].msg_backlog == 7

    run(scenario)


@pytest.mark.parametrize("kind", [SubscriptionType.SHARED, SubscriptionType.KEY_SHARED])
@pytest.mark.parametrize("asked", [False, True])
def test_entries_acknowledged_in_an_aborted_transaction_are_delivered_again(kind: SubscriptionType, asked: bool) -> None:
    """Also when its consumer has asked for everything again meanwhile."""

    async def scenario() -> None:
        world, consumer, sink = await opened(kind, count=6)
        await consumer.acknowledge_in(ONE, acks(*sink.positions[:2]))
        if asked:
            consumer.redeliver((), None)
            await asyncio.sleep(1)
            assert sink.positions[6:] == sink.positions[2:6]
        sink.got.clear()
        await end(world, ONE, ABORT)
        await asyncio.sleep(1)
        again = {position.entry_id for position in sink.positions}
        assert again == {0, 1}, "nothing else"

    run(scenario)


def test_an_abort_returns_the_pending_entries_of_a_consumer_that_left() -> None:
    async def scenario() -> None:
        world, consumer, sink = await opened(count=4)
        _, other = await world.consumer(type=SubscriptionType.SHARED, consumer_id=2)
        await consumer.acknowledge_in(ONE, acks(*sink.positions[:2]))
        consumer.close()
        await asyncio.sleep(1)
        assert [position.entry_id for position in other.positions] == [2, 3]
        await end(world, ONE, ABORT)
        await asyncio.sleep(1)
        assert [position.entry_id for position in other.positions] == [2, 3, 0, 1]

    run(scenario)


@pytest.mark.parametrize("killed", [False, True])
def test_parts_of_batches_are_acknowledged_in_transactions(killed: bool) -> None:
    async def scenario() -> None:
        world, consumer, sink = await opened(batch=4, count=2)
        first, second = sink.positions
        await consumer.acknowledge_in(ONE, acks(first, ack_set=(0b1110,), size=4))
        await consumer.acknowledge_in(TWO, acks(first, ack_set=(0b1101,), size=4))
        await consumer.acknowledge_in(TWO, acks(second, ack_set=(0b0001,), size=4))
        await conflict(consumer, TWO, acks(first, ack_set=(0b1100,), size=4))
        await conflict(consumer, THREE, acks(first))
        if killed:
            await world.kill()
        else:
            consumer.close()
        again, rest = await world.consumer(type=SubscriptionType.SHARED)
        await asyncio.sleep(1)
        assert [(each.position, each.ack_set) for each in rest.got] == [(first, (0b1100,)), (second, (0b0001,))]
        await again.acknowledge_in(THREE, acks(first, ack_set=(0b0011,), size=4))
        await end(world, TWO, COMMIT)
        await end(world, THREE, COMMIT)
        again.close()
        await asyncio.sleep(1)
        last, rest = await world.consumer(type=SubscriptionType.SHARED)
        await asyncio.sleep(1)
        assert [(each.position, each.ack_set) for each in rest.got] == [(second, (0b0001,))], "of the first all is taken"
        await end(world, ONE, ABORT)
        await asyncio.sleep(1)
        assert [(each.position, each.ack_set) for each in rest.got][1:] == [(first, (0b0001,))]
        last.acknowledge(acks(first, second))
        await asyncio.sleep(1)
        assert world.topic.stats().subscriptions["s"].msg_backlog == 0

    run(scenario)


@pytest.mark.parametrize("action", [COMMIT, ABORT])
@pytest.mark.parametrize("killed", [False, True])
def test_a_cumulative_one_moves_the_place_when_it_is_committed(action: TxnAction, killed: bool) -> None:
    async def scenario() -> None:
        world, consumer, sink = await opened(SubscriptionType.EXCLUSIVE)
        await consumer.acknowledge_in(ONE, acks(sink.positions[3], cumulative=True))
        await consumer.acknowledge_in(ONE, acks(sink.positions[5], cumulative=True))
        await conflict(consumer, ONE, acks(sink.positions[4], cumulative=True))
        await conflict(consumer, TWO, acks(sink.positions[7], cumulative=True))
        if killed:
            await world.kill()
        await end(world, ONE, action)
        await world.kill()
        rest = sink.positions[6:] if action is COMMIT else sink.positions
        assert await delivered_to_the_next(world, SubscriptionType.EXCLUSIVE) == rest

    run(scenario)


def test_shared_subscriptions_take_no_cumulative_ones() -> None:
    async def scenario() -> None:
        _, consumer, sink = await opened()
        with pytest.raises(BrokerError) as refused:
            await consumer.acknowledge_in(ONE, acks(sink.positions[3], cumulative=True))
        assert refused.value.code is ServerError.NOT_ALLOWED

    run(scenario)


def test_a_transaction_its_coordinator_forgot_returns_its_entries_and_is_refused_afterwards() -> None:
    async def scenario() -> None:
        world, consumer, sink = await opened(count=3)
        await consumer.acknowledge_in(ONE, acks(sink.positions[0]))
        await consumer.acknowledge_in(TWO, acks(sink.positions[1]))
        await end(world, TWO, COMMIT, ONE.least)
        with pytest.raises(BrokerError) as refused:
            await consumer.acknowledge_in(ONE, acks(sink.positions[2]))
        assert refused.value.code is ServerError.NOT_ALLOWED
        with pytest.raises(BrokerError) as refused:
            await consumer.acknowledge_in(TWO, acks(sink.positions[2]))
        assert refused.value.code is ServerError.NOT_ALLOWED
        await asyncio.sleep(1)
        assert [each.position.entry_id for each in sink.got[3:]] == [0]

    run(scenario)


@pytest.mark.parametrize("first", [COMMIT, ABORT])
@pytest.mark.parametrize("meanwhile", ["nothing", "killed", "at once"])
def test_one_that_has_ended_is_not_ended_otherwise_and_who_asks_is_told(first: TxnAction, meanwhile: str) -> None:
    async def scenario() -> None:
        world, consumer, sink = await opened(count=3)
        await consumer.acknowledge_in(ONE, acks(sink.positions[0]))
        other = ABORT if first is COMMIT else COMMIT
        if meanwhile == "at once":
            told = await asyncio.gather(end(world, ONE, first), end(world, ONE, other), return_exceptions=True)
            assert [type(each) for each in told] == [type(None), BrokerError]
        else:
            await end(world, ONE, first)
        if meanwhile == "killed":
            await world.kill()
            await world.open()
        with pytest.raises(BrokerError, match="on subscription s; it cannot be") as refused:
            await end(world, ONE, other)
        assert refused.value.code is ServerError.TRANSACTION_CONFLICT
        await end(world, ONE, first)
        if meanwhile != "killed":
            consumer.close()
        left = sink.positions[1:3] if first is COMMIT else sink.positions[:3]
        assert await delivered_to_the_next(world, SubscriptionType.SHARED) == left

    run(scenario)


async def ended_twice(world: TransactionWorld) -> tuple[Promise[Position], list["asyncio.Task[None]"]]:
    """A commit that is asked for a second time while its record is written, which is over when the promise is."""
    subscription = world.topic.subscriptions.get("s")
    assert subscription is not None
    log = subscription.transactions._log
    assert log is not None
    written: Promise[Position] = Promise()
    with patch.object(log, "append", lambda record: written):
        asked = [asyncio.create_task(end(world, ONE, COMMIT)) for _ in range(2)]
        await asyncio.sleep(0.1)
    assert not any(each.done() for each in asked)
    return written, asked


def test_everybody_who_asks_for_an_end_hears_that_it_is_not_stored() -> None:
    """A coordinator that was told otherwise would forget a transaction whose acknowledgements are lost later."""

    async def scenario() -> None:
        world, consumer, sink = await opened()
        await consumer.acknowledge_in(ONE, acks(*sink.positions[:3]))
        written, asked = await ended_twice(world)
        written.set_exception(ManagedLedgerError("it is lost"))
        told = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(each) for each in told] == [BrokerError, BrokerError]
        await world.kill()
        await end(world, ONE, COMMIT)
        assert await delivered_to_the_next(world, SubscriptionType.SHARED) == sink.positions[3:10]

    run(scenario)


def test_an_end_goes_on_when_the_first_who_asked_gives_up_and_nobody_is_told_before_it_is_done() -> None:
    async def scenario() -> None:
        world, consumer, sink = await opened()
        await consumer.acknowledge_in(ONE, acks(*sink.positions[:3]))
        written, asked = await ended_twice(world)
        asked[0].cancel()
        await asyncio.sleep(0.1)
        assert not asked[1].done()
        written.set_result(Position(0, 0))
        await asked[1]
        assert world.topic.stats().subscriptions["s"].msg_backlog == 7

    run(scenario)


def test_the_log_does_not_grow_with_what_is_done() -> None:
    async def scenario() -> None:
        world, consumer, sink = await opened(count=1)
        for number in range(700):
            await consumer.acknowledge_in(TxnId(1, number), acks(sink.positions[0]))
            await end(world, TxnId(1, number), ABORT)
        log = await world.storage.ledgers.open(world.log.name + LOG)
        assert log.cursors["__pending_ack_state"].backlog_entries() < 1100
        await world.kill()
        assert await delivered_to_the_next(world, SubscriptionType.SHARED) == sink.positions[:1]

    run(scenario)


def test_a_subscription_takes_its_log_with_it_and_the_next_of_its_name_knows_nothing_of_it() -> None:
    async def scenario() -> None:
        world, consumer, sink = await opened(count=3)
        await consumer.acknowledge_in(ONE, acks(sink.positions[0]))
        assert await world.storage.ledgers.exists(world.log.name + LOG)
        await world.topic.delete_subscription("s", force=True)
        assert not await world.storage.ledgers.exists(world.log.name + LOG)
        again, rest = await world.consumer(type=SubscriptionType.SHARED)
        await asyncio.sleep(1)
        assert rest.positions == sink.positions[:3]
        await again.acknowledge_in(TWO, acks(sink.positions[0]))
        await world.topic.delete(force=True)
        assert not await world.storage.ledgers.exists(world.log.name + LOG)

    run(scenario)


def test_a_reader_acknowledges_in_transactions_without_a_log() -> None:
    async def scenario() -> None:
        world = TransactionWorld()
        await world.open()
        await world.publish(body("one"))
        reader, sink = await world.consumer(subscription="r", durable=False)
        await reader.acknowledge_in(ONE, acks(sink.positions[0]))
        await world.topic.end_acknowledgements("r", ONE, COMMIT, -1)
        assert world.topic.stats().subscriptions["r"].msg_backlog == 0
        assert not await world.storage.ledgers.exists(world.log.name + "-r__transaction_pending_ack")

    run(scenario)


@pytest.mark.parametrize(("ledger_id", "entry_id", "size"), [(3, 0, (1 << 31) - 1), (3, 1 << 40, 0), (3, -1, 0), (-1, 0, 0)])
def test_an_impossible_acknowledgement_is_refused_with_the_rest_of_its_command(
    ledger_id: int, entry_id: int, size: int
) -> None:
    async def scenario() -> None:
        world, consumer, sink = await opened()
        asked = Position(ledger_id, entry_id)
        with pytest.raises(BrokerError, match="cannot be") as refused:
            await consumer.acknowledge_in(ONE, acks(sink.positions[1], asked, ack_set=(2,) if size else (), size=size))
        assert refused.value.code is ServerError.NOT_ALLOWED
        await end(world, ONE, COMMIT)
        consumer.close()
        assert len(await delivered_to_the_next(world, SubscriptionType.SHARED)) == 10

    run(scenario)


@pytest.mark.parametrize("steps", range(12))
def test_no_log_is_made_for_a_subscription_that_is_deleted_meanwhile(steps: int) -> None:
    """The log was made after the subscription was gone, and stayed when the topic was deleted, too."""

    async def scenario() -> None:
        world, consumer, sink = await opened()
        acknowledging = asyncio.create_task(consumer.acknowledge_in(ONE, acks(sink.positions[0])))
        for _ in range(steps):
            await asyncio.sleep(0)
        await consumer.unsubscribe(True)
        await asyncio.wait([acknowledging])
        assert not acknowledging.cancelled()
        assert acknowledging.exception() is None or isinstance(acknowledging.exception(), BrokerError)
        await asyncio.sleep(1)
        assert not await world.storage.ledgers.exists(f"{NAME}{LOG}")

    run(scenario)
