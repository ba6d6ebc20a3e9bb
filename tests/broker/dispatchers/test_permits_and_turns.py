"""The small states of a dispatcher, each by itself: receivers, turns, redelivery counts, and when to be woken."""

from array import array
from collections.abc import Callable

from pyroaring import BitMap

from broker.dispatchers.contract import ConsumerAdded, ConsumerId, DelaysChanged, Effect, WakeAt
from broker.dispatchers.permits import Receiver, Receivers
from broker.dispatchers.reading.held_back import HeldBack
from broker.dispatchers.redeliveries import Redeliveries
from broker.dispatchers.settings import DispatcherSettings
from broker.dispatchers.turns import Turns
from tests.cost import assert_linear
from wire.position import Position
from wire.run import EntryRun


def receiver(number: int) -> Receiver:
    found = Receiver(ConsumerAdded(ConsumerId(number), f"c{number}"))
    found.permits = 100
    return found


def test_while_the_subscription_is_blocked_nobody_may_get_anything_until_it_is_down_to_half() -> None:
    receivers, one = Receivers(DispatcherSettings(max_unacked_messages_per_subscription=4)), receiver(1)
    receivers.add(one)
    receivers.delivered(one, 3, BitMap(range(4)), None, 4)
    receivers.acknowledged(3, BitMap([0]), one.consumer)
    assert (receivers.is_blocked, receivers.room_together(), receivers.room(one)) == (True, 0, 0)
    receivers.acknowledged(3, BitMap([1]), one.consumer)
    assert (receivers.is_blocked, receivers.room_together(), receivers.room(one)) == (False, 2, 2)


def test_when_who_is_next_leaves_the_one_after_has_the_turn() -> None:
    turns, members = Turns(1), [receiver(number) for number in (1, 2, 3)]
    for each in members:
        turns.add(each)
    assert turns.take(lambda _: 10) == (members[0], 1)
    turns.remove(members[1])
    assert turns.take(lambda _: 10) == (members[2], 1)


def counts(redeliveries: Redeliveries, ledger_id: int, count: int) -> list[int] | None:
    return redeliveries.of(EntryRun(ledger_id, 0, b"", array("I", bytes(4 * count + 4))), range(count))


def test_counts_beyond_the_mark_delete_stay() -> None:
    redeliveries = Redeliveries()
    redeliveries.count(2, BitMap([8]))
    redeliveries.count(3, BitMap([2, 4, 5]))
    redeliveries.forget_up_to(Position(3, 4))
    assert counts(redeliveries, 2, 9) is None
    assert counts(redeliveries, 3, 6) == [0, 0, 0, 0, 0, 1]


def test_to_forget_one_count_after_the_other_costs_time_linear_in_their_number() -> None:
    def one_by_one(count: int) -> Callable[[], None]:
        redeliveries, entries = Redeliveries(), [BitMap([entry_id]) for entry_id in range(count)]
        redeliveries.count(3, BitMap(range(count)))

        def forget() -> None:
            for each in entries:
                redeliveries.forget(3, each)

        return forget

    assert_linear(one_by_one, 50)


def test_to_forget_very_much_costs_no_more_than_what_was_counted() -> None:
    def many(count: int) -> Callable[[], None]:
        redeliveries, gone = Redeliveries(), BitMap(range(count))
        redeliveries.count(3, BitMap([7]))
        return lambda: redeliveries.forget(3, gone)

    assert_linear(many, 8000, bound=2.0)


def test_one_is_asked_to_wake_it_once_for_each_time_and_for_none_when_nothing_waits() -> None:
    held_back = HeldBack()
    held_back.change(DelaysChanged(True, 1000, True))

    def asked() -> list[Effect]:
        effects: list[Effect] = []
        held_back.ask_for_time(effects)
        return effects

    assert asked() == []
    held_back.delays.add(3, 0, array("q", [5000]), array("I", [0]), 0)
    assert asked() == [WakeAt(5000)]
    assert asked() == []
    held_back.delays.add(3, 1, array("q", [4000]), array("I", [0]), 0)
    assert asked() == [WakeAt(4000)]
    held_back.remove(3, BitMap([0, 1]))
    assert asked() == []
