"""Permits, and the consumer whose turn it is."""

from pyroaring import BitMap

from broker.dispatchers.contract import ConsumerAdded, ConsumerId
from broker.dispatchers.permits import Receiver, Receivers
from broker.dispatchers.settings import DispatcherSettings
from broker.dispatchers.turns import Turns


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


def test_the_turn_passes_to_the_one_after_when_the_next_consumer_leaves() -> None:
    turns, members = Turns(1), [receiver(number) for number in (1, 2, 3)]
    for each in members:
        turns.add(each)
    assert turns.take(lambda _: 10) == (members[0], 1)
    turns.remove(members[1])
    assert turns.take(lambda _: 10) == (members[2], 1)
