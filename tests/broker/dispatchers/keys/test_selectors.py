"""Owners of slots: every slot has one owner, few move, ranges are shared out as Apache documents."""

from array import array
from collections.abc import Callable
from random import Random

import pytest

from broker.dispatchers.contract import ConsumerAdded, ConsumerId
from broker.dispatchers.keys.selectors import (
    LAST_SLOT,
    NOBODY,
    Assignment,
    AutoSplit,
    ConsistentHashing,
    ExclusiveRanges,
    Selector,
    SlotsTaken,
)
from tests.cost import assert_linear


def added(consumer: int, name: str = "", *ranges: tuple[int, int]) -> ConsumerAdded:
    return ConsumerAdded(ConsumerId(consumer), name or f"c{consumer}", hash_ranges=ranges)


def table(assignment: Assignment) -> list[int]:
    """The owner of each slot, slot by slot."""
    found: list[int] = []
    for bound, owner in zip(assignment.bounds, assignment.owners, strict=True):
        found += [owner] * (bound + 1 - len(found))
    assert len(found) == LAST_SLOT + 1
    return found


@pytest.mark.parametrize("selector", [ConsistentHashing(100), ConsistentHashing(1), AutoSplit()])
def test_every_slot_has_one_owner_and_ranges_say_the_same(selector: Selector) -> None:
    rng = Random(1)
    present: list[int] = []
    for number in range(1, 20):
        if present and rng.random() < 0.4:
            gone = present.pop(rng.randrange(len(present)))
            selector.remove(ConsumerId(gone))
        else:
            selector.add(added(number, rng.choice(("a", "b", ""))))
            present.append(number)
        assignment = selector.assignment()
        owners = table(assignment)
        assert set(owners) <= set(present) if present else set(owners) == {NOBODY}
        for consumer in present:
            slots = [slot for start, end in assignment.ranges(ConsumerId(consumer)) for slot in range(start, end + 1)]
            assert slots == [slot for slot, owner in enumerate(owners) if owner == consumer]


def test_consistent_hashing_shares_out_evenly_and_moves_only_what_the_newcomer_gets() -> None:
    selector = ConsistentHashing(100)
    for number in range(1, 5):
        selector.add(added(number))
    before = table(selector.assignment())
    for number in range(1, 5):
        assert 0.15 < before.count(number) / len(before) < 0.35
    selector.add(added(5))
    after = table(selector.assignment())
    assert {new for old, new in zip(before, after, strict=True) if old != new} == {5}
    selector.remove(ConsumerId(5))
    assert table(selector.assignment()) == before


def test_consistent_hashing_depends_on_names_and_not_on_the_order_of_joining() -> None:
    one, other = ConsistentHashing(100), ConsistentHashing(100)
    for number in (1, 2, 3):
        one.add(added(number))
    for number in (3, 1, 2):
        other.add(added(number))
    assert one.assignment() == other.assignment()


def test_consumers_of_one_name_share_too() -> None:
    selector = ConsistentHashing(100)
    selector.add(added(1, "same"))
    selector.add(added(2, "same"))
    owners = table(selector.assignment())
    assert owners.count(1) > 20_000
    assert owners.count(2) > 20_000


def test_auto_split_halves_the_widest_range_and_a_leaver_leaves_to_its_neighbour() -> None:
    selector = AutoSplit()
    for number in (1, 2, 3):
        selector.add(added(number))
    assert selector.assignment().ranges(ConsumerId(2)) == ((16384, 32767),)
    assert selector.assignment().ranges(ConsumerId(3)) == ((0, 16383),)
    assert selector.assignment().ranges(ConsumerId(1)) == ((32768, 65535),)
    selector.remove(ConsumerId(1))
    assert selector.assignment().ranges(ConsumerId(2)) == ((16384, 65535),)
    selector.remove(ConsumerId(3))
    assert selector.assignment().ranges(ConsumerId(2)) == ((0, 65535),)


def test_exclusive_ranges_leave_gaps_to_nobody_and_take_no_overlap() -> None:
    selector = ExclusiveRanges()
    selector.add(added(1, "", (10, 19), (30, 39)))
    with pytest.raises(SlotsTaken):
        selector.add(added(2, "", (0, 5), (19, 20)))
    selector.add(added(2, "", (20, 29)))
    owners = table(selector.assignment())
    assert owners[9:41] == [NOBODY] + [1] * 10 + [2] * 10 + [1] * 10 + [NOBODY]
    selector.remove(ConsumerId(1))
    selector.add(added(3, "", (0, 19)))
    assert table(selector.assignment())[19:21] == [3, 2]


def test_exclusive_ranges_that_overlap_each_other_are_refused_and_leave_nothing() -> None:
    selector = ExclusiveRanges()
    with pytest.raises(SlotsTaken, match="overlaps"):
        selector.add(added(1, "", (30, 39), (10, 30)))
    selector.add(added(2, "", (0, LAST_SLOT)))


def test_the_ranges_of_a_consumer_cost_time_linear_in_their_number() -> None:
    def ranges(count: int) -> Callable[[], None]:
        selector, newcomer = ExclusiveRanges(), added(2, "", *((2 * each, 2 * each) for each in range(count)))
        selector.add(added(1, "", *((2 * each + 1, 2 * each + 1) for each in range(count))))
        return lambda: selector.add(newcomer)

    assert_linear(ranges, 200)


def test_a_consumer_has_as_many_points_on_the_ring_as_are_set() -> None:
    selector = ConsistentHashing(1)
    for number in range(1, 9):
        selector.add(added(number))
    ranges = [selector.assignment().ranges(ConsumerId(number)) for number in range(1, 9)]
    assert sum(map(len, ranges)) == 9, "a point each, and what is after the last belongs to the first"


def test_the_fourth_consumer_gets_the_lower_half_of_the_only_range_that_is_whole() -> None:
    selector = AutoSplit()
    for number in (1, 2, 3, 4):
        selector.add(added(number))
    assert selector.assignment().ranges(ConsumerId(4)) == ((32768, 49151),)


def test_slots_after_the_last_range_are_nobodys() -> None:
    assert Assignment(array("I", [9]), array("q", [1])).owner(9) == 1
    assert Assignment(array("I", [9]), array("q", [1])).owner(10) == NOBODY
