"""Shared, by example: the documented order of service, turns, replay, limits."""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyroaring import BitMap

from broker.dispatchers.contract import (
    AcknowledgeMarkers,
    BatchIndexesAcknowledged,
    ConsumerAdded,
    ConsumerId,
    ConsumerRemoved,
    CursorReset,
    Deliver,
    Dispatcher,
    Effect,
    EntriesAcknowledged,
    EntriesAvailable,
    EntriesPicked,
    EntriesRead,
    Event,
    MarkDeleteMoved,
    NothingToRead,
    PermitsAdded,
    Read,
    ReadFailed,
    RedeliveryRequested,
    SetTimer,
    TimerFired,
    WritabilityChanged,
)
from broker.dispatchers.dispatchers import shared_dispatcher
from broker.dispatchers.settings import DispatcherSettings
from wire.position import Position
from wire.run import FLAG_MARKER, EntryRun, RunMetadata

LEDGER = 7


def consumer(number: int) -> ConsumerId:
    return ConsumerId(number)


def read_answer(
    read: Read,
    first: int,
    counts: Sequence[int],
    flags: Sequence[int] = (),
    acknowledged: Sequence[int] = (),
    ack_sets: Mapping[int, Sequence[int]] | None = None,
) -> EntriesRead:
    flags = flags or [0] * len(counts)
    run = EntryRun(LEDGER, first, b"", array("I", [0] * (len(counts) + 1)))
    any_flags = 0
    for flag in flags:
        any_flags |= flag
    metadata = RunMetadata(array("I", counts), array("B", flags), any_flags, sum(counts))
    return EntriesRead(read.read_id, run, metadata, Position(-1, -1), BitMap(acknowledged), ack_sets or {})


def reads(effects: Sequence[Effect]) -> list[Read]:
    return [effect for effect in effects if isinstance(effect, Read)]


def delivered(effects: Sequence[Effect]) -> dict[int, list[int]]:
    """Consumer to entry ids, in order."""
    found: dict[int, list[int]] = {}
    for effect in effects:
        if isinstance(effect, Deliver):
            found.setdefault(effect.consumer, []).extend(effect.run.first_entry_id + index for index in effect.indexes)
    return found


def with_consumers(*permits_and_levels: tuple[int, int], settings: DispatcherSettings | None = None) -> tuple[Dispatcher, Read]:
    """Consumers 1, 2, ... with these permits and levels, and the read that is under way."""
    dispatcher = shared_dispatcher(settings or DispatcherSettings())
    found: list[Read] = []
    for number, (permits, level) in enumerate(permits_and_levels, 1):
        dispatcher.handle(ConsumerAdded(consumer(number), f"c{number}", level), 0)
        found += reads(dispatcher.handle(PermitsAdded(consumer(number), permits), 0))
    assert len(found) == 1
    return dispatcher, found[0]


def take(dispatcher: Dispatcher, event: Event, now_ms: int = 0) -> list[Effect]:
    effects = dispatcher.handle(event, now_ms)
    dispatcher.check_invariants()
    return effects


def test_with_few_permits_messages_go_round_by_priority_as_apache_documents() -> None:
    dispatcher, read = with_consumers((2, 0), (1, 0), (1, 0), (2, 1), (1, 1))
    order = []
    for entry_id in range(7):
        effects = take(dispatcher, read_answer(read, entry_id, [1]))
        (who,) = delivered(effects)
        order.append(who)
        if entry_id < 6:
            (read,) = reads(effects)
    assert order == [1, 2, 3, 1, 4, 5, 4]
    assert reads(effects) == []


def test_the_same_order_holds_when_all_come_in_one_run() -> None:
    dispatcher, read = with_consumers((2, 0), (1, 0), (1, 0), (2, 1), (1, 1))
    assert delivered(take(dispatcher, read_answer(read, 0, [1] * 7))) == {1: [0, 3], 2: [1], 3: [2], 4: [4, 6], 5: [5]}


def test_with_plenty_of_permits_turns_are_spans_of_the_round_robin_batch_size() -> None:
    dispatcher, read = with_consumers((1000, 0), (1000, 0))
    got = delivered(take(dispatcher, read_answer(read, 0, [1] * 100)))
    assert got[1] == [*range(20), *range(40, 60), *range(80, 100)]
    assert got[2] == [*range(20, 40), *range(60, 80)]


def test_a_lone_consumer_gets_the_whole_run_as_a_range() -> None:
    dispatcher, read = with_consumers((1000, 0), (0, 0))
    (deliver,) = [effect for effect in take(dispatcher, read_answer(read, 5, [1] * 100)) if isinstance(effect, Deliver)]
    assert deliver.indexes == range(100)
    assert deliver.message_count == 100


def test_a_batch_is_never_split_and_permits_may_go_below_zero() -> None:
    dispatcher, read = with_consumers((12, 0))
    effects = take(dispatcher, read_answer(read, 0, [10, 10, 10]))
    assert delivered(effects) == {1: [0, 1]}
    state = dispatcher.consumer_state(consumer(1))
    assert state is not None
    assert (state.permits, state.unacked_messages) == (-8, 20)
    assert reads(take(dispatcher, PermitsAdded(consumer(1), 8))) == []
    (read,) = reads(take(dispatcher, PermitsAdded(consumer(1), 1)))
    assert read.position == Position(LEDGER, 2)


def test_acknowledged_parts_of_a_batch_cost_no_permits_and_travel_as_ack_set() -> None:
    dispatcher, read = with_consumers((5, 0))
    effects = take(dispatcher, read_answer(read, 3, [10, 10], ack_sets={3: [0b11]}))
    deliver = next(effect for effect in effects if isinstance(effect, Deliver))
    assert deliver.ack_sets == {0: [0b11]}
    assert deliver.message_count == 12
    take(dispatcher, BatchIndexesAcknowledged(Position(LEDGER, 4), 7))
    assert dispatcher.state().unacked_messages == 5
    take(dispatcher, EntriesAcknowledged(LEDGER, BitMap([3, 4]), consumer(1)))
    assert dispatcher.state().unacked_messages == 0


def test_markers_are_acknowledged_and_acknowledged_entries_skipped() -> None:
    dispatcher, read = with_consumers((50, 0))
    effects = take(dispatcher, read_answer(read, 0, [1] * 6, [0, FLAG_MARKER, 0, FLAG_MARKER, 0, 0], acknowledged=[3, 4]))
    assert delivered(effects) == {1: [0, 2, 5]}
    assert AcknowledgeMarkers(LEDGER, BitMap([1])) in effects


def test_entries_of_a_leaving_consumer_go_to_others_before_new_ones_and_are_not_counted() -> None:
    dispatcher, read = with_consumers((5, 0), (0, 0))
    take(dispatcher, read_answer(read, 0, [1] * 5))
    take(dispatcher, PermitsAdded(consumer(2), 10))
    (replay,) = [*reads(take(dispatcher, NothingToRead(2))), *reads(take(dispatcher, ConsumerRemoved(consumer(1))))]
    assert (replay.position, replay.entries_max, replay.is_replay) == (Position(LEDGER, 0), 5, True)
    effects = take(dispatcher, read_answer(replay, 0, [1] * 5))
    assert delivered(effects) == {2: [0, 1, 2, 3, 4]}
    assert all(effect.redelivery_counts is None for effect in effects if isinstance(effect, Deliver))


def test_a_negative_acknowledgement_counts_and_counts_are_forgotten_when_all_leave() -> None:
    dispatcher, read = with_consumers((100, 0))
    take(dispatcher, read_answer(read, 0, [1] * 10))
    take(dispatcher, NothingToRead(2))
    (replay,) = reads(take(dispatcher, RedeliveryRequested(consumer(1), [Position(LEDGER, 3), Position(LEDGER, 5)])))
    effects = take(dispatcher, read_answer(replay, 3, [1] * 3))
    assert delivered(effects) == {1: [3, 5]}
    assert next(effect for effect in effects if isinstance(effect, Deliver)).redelivery_counts == [1, 1]
    take(dispatcher, ConsumerRemoved(consumer(1)))
    take(dispatcher, ConsumerAdded(consumer(2), "c2"))
    (read,) = reads(take(dispatcher, PermitsAdded(consumer(2), 100)))
    assert read.position is None
    effects = take(dispatcher, read_answer(read, 0, [1] * 10))
    assert next(effect for effect in effects if isinstance(effect, Deliver)).redelivery_counts is None


def test_a_consumer_is_blocked_at_its_limit_and_free_at_half_of_it() -> None:
    dispatcher, read = with_consumers((100, 0), settings=DispatcherSettings(max_unacked_messages_per_consumer=10))
    effects = take(dispatcher, read_answer(read, 0, [1] * 20))
    assert delivered(effects) == {1: list(range(10))}
    assert reads(effects) == []
    assert reads(take(dispatcher, EntriesAcknowledged(LEDGER, BitMap(range(4)), consumer(1)))) == []
    state = dispatcher.consumer_state(consumer(1))
    assert state is not None
    assert state.is_blocked_on_unacked
    (read,) = reads(take(dispatcher, EntriesAcknowledged(LEDGER, BitMap([4]), consumer(1))))
    assert read.position == Position(LEDGER, 10)


def test_the_limit_of_the_subscription_holds_for_all_of_it() -> None:
    settings = DispatcherSettings(max_unacked_messages_per_subscription=10)
    dispatcher, read = with_consumers((100, 0), (100, 0), settings=settings)
    effects = take(dispatcher, read_answer(read, 0, [1] * 100))
    assert sum(map(len, delivered(effects).values())) == 10
    assert reads(effects) == []
    assert dispatcher.state().is_blocked_on_unacked
    assert reads(take(dispatcher, EntriesAcknowledged(LEDGER, BitMap(range(5))))) != []


def test_nothing_is_delivered_to_a_consumer_that_does_not_read() -> None:
    dispatcher, read = with_consumers((100, 0))
    take(dispatcher, WritabilityChanged(consumer(1), False))
    assert take(dispatcher, read_answer(read, 0, [1] * 5)) == []
    (read,) = reads(take(dispatcher, WritabilityChanged(consumer(1), True)))
    assert delivered(take(dispatcher, read_answer(read, 0, [1] * 5))) == {1: [0, 1, 2, 3, 4]}


def test_an_answer_to_an_outdated_read_is_dropped() -> None:
    dispatcher, read = with_consumers((100, 0))
    (newer,) = reads(take(dispatcher, CursorReset()))
    assert take(dispatcher, read_answer(read, 0, [1] * 5)) == []
    assert delivered(take(dispatcher, read_answer(newer, 0, [1] * 5))) == {1: [0, 1, 2, 3, 4]}


def test_a_failed_read_is_tried_again_with_doubling_pauses_up_to_the_maximum() -> None:
    dispatcher, read = with_consumers((100, 0))
    now_ms, pauses = 0, []
    for _ in range(4):
        (timer,) = take(dispatcher, ReadFailed(read.read_id), now_ms)
        assert isinstance(timer, SetTimer)
        pauses.append(timer.at_ms - now_ms)
        assert reads(take(dispatcher, EntriesAvailable(), now_ms)) == []
        now_ms = timer.at_ms
        (read,) = reads(take(dispatcher, TimerFired(), now_ms))
    assert pauses == [15_000, 30_000, 60_000, 60_000]


def test_entries_that_become_available_during_an_empty_read_are_not_missed() -> None:
    dispatcher, read = with_consumers((100, 0))
    assert take(dispatcher, EntriesAvailable()) == []
    (read,) = reads(take(dispatcher, NothingToRead(read.read_id)))
    assert take(dispatcher, NothingToRead(read.read_id)) == []
    assert len(reads(take(dispatcher, EntriesAvailable()))) == 1


def test_mark_delete_takes_skipped_entries_away_from_consumers_and_replay() -> None:
    dispatcher, read = with_consumers((10, 0))
    take(dispatcher, read_answer(read, 0, [1] * 10))
    take(dispatcher, RedeliveryRequested(consumer(1), [Position(LEDGER, 2), Position(LEDGER, 8)]))
    take(dispatcher, MarkDeleteMoved(Position(LEDGER, 7)))
    assert dispatcher.state().unacked_messages == 1
    assert dispatcher.state().entries_in_replay == 1


def test_scattered_redeliveries_are_picked_and_dense_ones_are_read_as_they_stand() -> None:
    dispatcher, read = with_consumers((1000, 0))
    for first in range(0, 500, 100):
        (read,) = reads(take(dispatcher, read_answer(read, first, [1] * 100)))
    take(dispatcher, NothingToRead(read.read_id))
    nacked = [0, 1, 3, 90, 400]
    (replay,) = reads(take(dispatcher, RedeliveryRequested(consumer(1), [Position(LEDGER, entry) for entry in nacked])))
    assert (replay.position, replay.picks) == (Position(LEDGER, 0), [(LEDGER, BitMap(nacked))])
    take(dispatcher, EntriesPicked(replay.read_id, (), replay.picks or ()))
    (replay,) = reads(take(dispatcher, RedeliveryRequested(consumer(1), [Position(LEDGER, entry) for entry in (5, 6, 8)])))
    assert (replay.position, replay.entries_max, replay.picks) == (Position(LEDGER, 5), 4, None)


def test_only_entries_that_can_no_longer_be_picked_are_forgotten() -> None:
    dispatcher, read = with_consumers((1000, 0))
    for first in range(0, 500, 100):
        (read,) = reads(take(dispatcher, read_answer(read, first, [1] * 100)))
    take(dispatcher, NothingToRead(read.read_id))
    nacked = [0, 1, 90, 400]
    (replay,) = reads(take(dispatcher, RedeliveryRequested(consumer(1), [Position(LEDGER, entry) for entry in nacked])))
    take(dispatcher, RedeliveryRequested(consumer(1), [Position(LEDGER, 50)]))
    assert replay.picks == [(LEDGER, BitMap(nacked))]
    gone = [(LEDGER, BitMap([0, 1]))]
    effects = take(dispatcher, EntriesPicked(replay.read_id, [read_answer(replay, 90, [1] * 311)], gone))
    (delivered,) = [effect for effect in effects if isinstance(effect, Deliver)]
    assert list(delivered.indexes) == [0, 310]
    assert dispatcher.state().entries_in_replay == 1, "what came back meanwhile"


def test_one_pick_goes_over_as_many_ledgers_as_it_takes_and_the_next_one_goes_on_behind_it() -> None:
    unlimited = DispatcherSettings(max_unacked_messages_per_consumer=0, max_unacked_messages_per_subscription=0)
    dispatcher, read = with_consumers((60 * 40_001 + 1000, 0), settings=unlimited)
    waiting = [(ledger_id, entry_id) for ledger_id in range(LEDGER, LEDGER + 60) for entry_id in (3, 5000, 40_000)]
    for ledger_id in range(LEDGER, LEDGER + 60):
        whole = read_answer(read, 0, [1] * 40_001)
        (read,) = reads(take(dispatcher, replace(whole, run=replace(whole.run, ledger_id=ledger_id))))
    take(dispatcher, NothingToRead(read.read_id))
    (pick,) = reads(take(dispatcher, RedeliveryRequested(consumer(1), [Position(*each) for each in waiting])))
    assert pick.picks is not None
    assert [(ledger_id, entry_id) for ledger_id, ids in pick.picks for entry_id in ids] == waiting[:100]
    parts = [one_picked(pick, Position(*each)) for each in waiting[:70]]  # no more of it was read now
    (pick,) = reads(take(dispatcher, EntriesPicked(pick.read_id, parts)))
    assert pick.picks is not None
    assert [(ledger_id, entry_id) for ledger_id, ids in pick.picks for entry_id in ids] == waiting[70:170]
    (pick,) = reads(
        take(dispatcher, EntriesPicked(pick.read_id, [one_picked(pick, Position(*each)) for each in waiting[70:170]]))
    )
    assert dispatcher.state().entries_in_replay == 10


def one_picked(read: Read, position: Position) -> EntriesRead:
    answer = read_answer(read, position.entry_id, [1])
    return replace(answer, run=replace(answer.run, ledger_id=position.ledger_id))


def test_a_consumer_without_room_for_all_picked_entries_gets_the_rest_of_them_first() -> None:
    dispatcher, read = with_consumers((100, 0))
    take(dispatcher, read_answer(read, 0, [1] * 100))
    nacked = [0, 30, 60, 90]
    take(dispatcher, RedeliveryRequested(consumer(1), [Position(LEDGER, entry) for entry in nacked]))
    (pick,) = reads(take(dispatcher, PermitsAdded(consumer(1), 2)))
    assert pick.picks == [(LEDGER, BitMap([0, 30]))]
    take(dispatcher, EntriesPicked(pick.read_id, [one_picked(pick, Position(LEDGER, entry)) for entry in (0, 30)]))
    (pick,) = reads(take(dispatcher, PermitsAdded(consumer(1), 50)))
    assert pick.picks == [(LEDGER, BitMap([60, 90]))]
    take(dispatcher, WritabilityChanged(consumer(1), False))
    assert (
        take(dispatcher, EntriesPicked(pick.read_id, [one_picked(pick, Position(LEDGER, entry)) for entry in (60, 90)])) == []
    )
    (pick,) = reads(take(dispatcher, WritabilityChanged(consumer(1), True)))
    assert pick.picks == [(LEDGER, BitMap([60, 90]))]


def test_f24_a_time_out_and_then_a_refusal_of_one_message_count_once_each_and_only_when_it_was_out() -> None:
    """P#6451: a client with a dead letter topic must be told exactly as many redeliveries as there were."""
    dispatcher, read = with_consumers((10, 0))
    (read,) = reads(take(dispatcher, read_answer(read, 0, [1] * 3)))
    take(dispatcher, NothingToRead(read.read_id))
    it = RedeliveryRequested(consumer(1), [Position(LEDGER, 1)])
    (replay,) = reads(take(dispatcher, it))  # the time-out
    assert not reads(take(dispatcher, it)), "the refusal comes while it is not out: it is on its way already"
    (delivered,) = [effect for effect in take(dispatcher, read_answer(replay, 1, [1])) if isinstance(effect, Deliver)]
    assert (list(delivered.indexes), delivered.redelivery_counts) == ([0], [1])
    (replay,) = reads(take(dispatcher, it))  # refused once it was out again
    (delivered,) = [effect for effect in take(dispatcher, read_answer(replay, 1, [1])) if isinstance(effect, Deliver)]
    assert delivered.redelivery_counts == [2]
    take(dispatcher, EntriesAcknowledged(LEDGER, BitMap([1])))  # it is in the dead letter topic
    assert not reads(take(dispatcher, it))
    assert (dispatcher.state().entries_in_replay, dispatcher.state().unacked_messages) == (0, 2)


def test_entries_of_a_replayed_stretch_that_no_longer_exist_are_forgotten() -> None:
    dispatcher, read = with_consumers((10, 0))
    (read,) = reads(take(dispatcher, read_answer(read, 0, [1] * 4)))
    take(dispatcher, NothingToRead(read.read_id))
    (read,) = reads(take(dispatcher, RedeliveryRequested(consumer(1), [Position(LEDGER, each) for each in range(4)])))
    assert (read.is_replay, read.picks, read.position) == (True, None, Position(LEDGER, 0))
    effects = take(dispatcher, read_answer(read, 2, [1] * 2))
    assert delivered(effects) == {1: [2, 3]}
    assert dispatcher.state().entries_in_replay == 0
    assert not any(each.is_replay for each in reads(effects)), "nothing is left to read again"


def test_a_read_that_begins_where_mark_delete_ends_goes_on() -> None:
    dispatcher, read = with_consumers((10, 0))
    (read,) = reads(take(dispatcher, read_answer(read, 0, [1] * 3)))
    assert read.position == Position(LEDGER, 3)
    assert reads(take(dispatcher, MarkDeleteMoved(Position(LEDGER, 2)))) == []
    assert delivered(take(dispatcher, read_answer(read, 3, [1]))) == {1: [3]}


def test_no_hash_is_drained_where_keys_have_no_consumers() -> None:
    dispatcher, _ = with_consumers((10, 0))
    assert dispatcher.state().draining_hashes == 0
