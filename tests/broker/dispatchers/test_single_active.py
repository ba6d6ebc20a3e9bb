"""Exclusive and Failover, by example: who is active, who is told, what a switch waits for, epochs."""

from array import array
from collections.abc import Sequence

from pyroaring import BitMap

from broker.dispatchers.contract import (
    ConsumerAdded,
    ConsumerId,
    ConsumerRemoved,
    CursorReset,
    Deliver,
    Dispatcher,
    Effect,
    EntriesRead,
    MarkDeleteMoved,
    NothingToRead,
    NotifyActive,
    PermitsAdded,
    Read,
    RedeliveryRequested,
    RefuseConsumer,
    SetTimer,
    TimerFired,
)
from broker.dispatchers.dispatchers import exclusive_dispatcher, failover_dispatcher
from broker.dispatchers.settings import DispatcherSettings
from broker.errors import ServerError
from wire.position import Position
from wire.run import EntryRun, RunMetadata

ONE, TWO, THREE = ConsumerId(1), ConsumerId(2), ConsumerId(3)


def failover(partition_index: int = -1) -> Dispatcher:
    return failover_dispatcher(DispatcherSettings(), partition_index)


def notices(effects: Sequence[Effect]) -> list[tuple[int, bool]]:
    return [(effect.consumer, effect.is_active) for effect in effects if isinstance(effect, NotifyActive)]


def reads(effects: Sequence[Effect]) -> list[Read]:
    return [effect for effect in effects if isinstance(effect, Read)]


def answer(read: Read, first: int, count: int) -> EntriesRead:
    run = EntryRun(3, first, b"", array("I", bytes(4 * count + 4)))
    metadata = RunMetadata(array("I", [1] * count), array("B", bytes(count)), 0, count)
    return EntriesRead(read.read_id, run, metadata, Position(-1, -1), BitMap(), {})


def active_with_entries(dispatcher: Dispatcher, consumer: ConsumerId, name: str, level: int = 0) -> None:
    """A consumer that is active and has got entries 0..4."""
    dispatcher.handle(ConsumerAdded(consumer, name, level), 0)
    (read,) = reads(dispatcher.handle(PermitsAdded(consumer, 5), 0))
    (deliver,) = dispatcher.handle(answer(read, 0, 5), 0)
    assert isinstance(deliver, Deliver)
    assert deliver.consumer == consumer


def test_a_second_exclusive_consumer_is_refused_as_busy() -> None:
    dispatcher = exclusive_dispatcher(DispatcherSettings())
    assert dispatcher.handle(ConsumerAdded(ONE, "a"), 0) == []
    (refusal,) = dispatcher.handle(ConsumerAdded(TWO, "b"), 0)
    assert isinstance(refusal, RefuseConsumer)
    assert (refusal.consumer, refusal.code) == (TWO, ServerError.CONSUMER_BUSY)
    assert dispatcher.consumer_state(TWO) is None
    dispatcher.handle(ConsumerRemoved(ONE), 0)
    assert dispatcher.handle(ConsumerAdded(TWO, "b"), 0) == []


def test_a_newcomer_is_told_at_once_that_it_is_not_active() -> None:
    dispatcher = failover()
    assert notices(dispatcher.handle(ConsumerAdded(ONE, "a"), 0)) == [(1, True)]
    assert notices(dispatcher.handle(ConsumerAdded(TWO, "b"), 0)) == [(2, False)]


def test_the_lowest_priority_level_is_active_then_the_first_name() -> None:
    dispatcher = failover()
    for consumer, name, level in ((ONE, "c", 1), (TWO, "b", 0), (THREE, "a", 0)):
        dispatcher.handle(ConsumerAdded(consumer, name, level), 0)
    assert dispatcher.state().active_consumer == THREE
    dispatcher.handle(ConsumerRemoved(THREE), 0)
    assert dispatcher.state().active_consumer == TWO
    dispatcher.handle(ConsumerRemoved(TWO), 0)
    assert dispatcher.state().active_consumer == ONE


def test_partitions_spread_over_the_consumers_of_the_highest_priority() -> None:
    chosen = []
    for partition_index in range(4):
        dispatcher = failover(partition_index)
        for consumer, name, level in ((ONE, "a", 0), (TWO, "b", 0), (THREE, "0", 1)):
            dispatcher.handle(ConsumerAdded(consumer, name, level), 0)
        chosen.append(dispatcher.state().active_consumer)
    assert chosen == [ONE, TWO, ONE, TWO]


def test_a_demoted_consumer_has_the_failover_delay_to_acknowledge_before_the_next_one_reads() -> None:
    dispatcher = failover()
    active_with_entries(dispatcher, ONE, "b")
    effects = dispatcher.handle(ConsumerAdded(TWO, "a"), 50)
    assert effects == [SetTimer(1050)]
    assert dispatcher.handle(PermitsAdded(TWO, 10), 60) == []
    effects = dispatcher.handle(TimerFired(), 1050)
    assert sorted(notices(effects)) == [(1, False), (2, True)]
    assert [read.position for read in reads(effects)] == [None]


def test_the_switch_does_not_wait_when_all_that_was_delivered_is_acknowledged() -> None:
    dispatcher = failover()
    active_with_entries(dispatcher, ONE, "b")
    dispatcher.handle(ConsumerAdded(TWO, "a"), 0)
    assert notices(dispatcher.handle(MarkDeleteMoved(Position(3, 3)), 10)) == []
    assert sorted(notices(dispatcher.handle(MarkDeleteMoved(Position(3, 4)), 20))) == [(1, False), (2, True)]


def test_the_next_consumer_starts_at_once_when_the_active_one_leaves() -> None:
    dispatcher = failover()
    active_with_entries(dispatcher, ONE, "a")
    dispatcher.handle(ConsumerAdded(TWO, "b"), 0)
    dispatcher.handle(PermitsAdded(TWO, 10), 0)
    effects = dispatcher.handle(ConsumerRemoved(ONE), 5)
    assert notices(effects) == [(2, True)]
    assert [read.position for read in reads(effects)] == [None]


def test_a_successor_that_leaves_during_the_wait_changes_nothing() -> None:
    dispatcher = failover()
    active_with_entries(dispatcher, ONE, "b")
    dispatcher.handle(ConsumerAdded(TWO, "a"), 0)
    assert notices(dispatcher.handle(ConsumerRemoved(TWO), 10)) == []
    (read,) = reads(dispatcher.handle(PermitsAdded(ONE, 10), 20))
    assert read.position == Position(3, 5)


def test_redelivery_goes_back_to_the_first_unacknowledged_and_stamps_the_new_epoch() -> None:
    dispatcher = exclusive_dispatcher(DispatcherSettings())
    active_with_entries(dispatcher, ONE, "a")
    (outdated,) = reads(dispatcher.handle(PermitsAdded(ONE, 10), 0))
    (read,) = reads(dispatcher.handle(RedeliveryRequested(ONE, None, 1), 0))
    assert read.position is None
    assert dispatcher.handle(answer(outdated, 5, 5), 0) == []
    deliver, _ = dispatcher.handle(answer(read, 0, 5), 0)
    assert isinstance(deliver, Deliver)
    assert deliver.consumer_epoch == 1


def test_a_standby_cannot_rewind_the_cursor() -> None:
    dispatcher = failover()
    active_with_entries(dispatcher, ONE, "a")
    dispatcher.handle(ConsumerAdded(TWO, "b"), 0)
    (read,) = reads(dispatcher.handle(PermitsAdded(ONE, 10), 0))
    assert dispatcher.handle(RedeliveryRequested(TWO, None, 1), 0) == []
    assert len(dispatcher.handle(answer(read, 5, 5), 0)) == 2


def test_an_exclusive_consumer_that_names_hash_ranges_gets_their_keys_alone() -> None:
    """Readers ask for this by `keyHashRange`: other entries are passed over, and cost no permits."""
    dispatcher = exclusive_dispatcher(DispatcherSettings())
    dispatcher.handle(ConsumerAdded(ONE, "one", hash_ranges=((0, 9), (20, 29))), 0)
    needed = [dispatcher.needs_key_hashes]
    (read,) = reads(dispatcher.handle(PermitsAdded(ONE, 3), 0))
    answered = answer(read, 0, 5)
    hashes = array("I", [9, 10, 65536 + 20, 30, 29])
    found = EntriesRead(read.read_id, answered.run, answered.metadata, Position(-1, -1), BitMap(), {}, hashes)
    (deliver,) = [effect for effect in dispatcher.handle(found, 0) if isinstance(effect, Deliver)]
    assert (list(deliver.indexes), deliver.message_count) == ([0, 2, 4], 3)
    dispatcher.handle(ConsumerRemoved(ONE), 0)
    dispatcher.handle(ConsumerAdded(TWO, "two"), 0)
    needed.append(dispatcher.needs_key_hashes)
    assert needed == [True, False]


def test_a_newest_run_is_read_for_a_consumer_that_names_hash_ranges() -> None:
    dispatcher = exclusive_dispatcher(DispatcherSettings())
    dispatcher.handle(ConsumerAdded(ONE, "one", hash_ranges=((0, 9),)), 0)
    (read,) = reads(dispatcher.handle(PermitsAdded(ONE, 3), 0))
    dispatcher.handle(NothingToRead(read.read_id), 0)
    newest = answer(read, 0, 1)
    assert dispatcher.take_newest(newest.run, newest.metadata) is None


def test_after_a_seek_the_active_consumer_reads_from_there() -> None:
    dispatcher = failover()
    active_with_entries(dispatcher, ONE, "a")
    dispatcher.handle(PermitsAdded(ONE, 5), 0)
    effects = dispatcher.handle(CursorReset(), 0)
    dispatcher.check_invariants()
    (read,) = reads(effects)
    assert read.position is None
    (deliver, *_) = dispatcher.handle(answer(read, 0, 5), 0)
    assert isinstance(deliver, Deliver)
    assert deliver.consumer == ONE


def test_after_a_seek_a_successor_waits_no_more() -> None:
    dispatcher = failover()
    active_with_entries(dispatcher, TWO, "b")
    dispatcher.handle(ConsumerAdded(ONE, "a"), 0)
    dispatcher.handle(PermitsAdded(ONE, 5), 0)
    effects = dispatcher.handle(CursorReset(), 0)
    dispatcher.check_invariants()
    assert (ONE, True) in notices(effects)
    assert len(reads(effects)) == 1
