"""The small states of a dispatcher, each by itself: receivers, turns, redelivery counts, and when to be woken."""

from array import array

from pyroaring import BitMap

from broker.dispatchers.contract import DelaysChanged, Effect, WakeAt
from broker.dispatchers.reading.held_back import HeldBack


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
