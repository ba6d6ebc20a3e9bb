"""The counter of costs sees what makes work quadratic, in Python and in C, and takes linear work for linear."""

import asyncio
import gc
from array import array
from bisect import insort
from collections.abc import Callable
from itertools import compress
from typing import Any

import pytest
from pyroaring import BitMap

from tests.cost import SEES_OPERANDS, Counter, assert_linear, steps

N = 100


def _pairs(n: int) -> None:
    for _ in range(n):
        for _ in range(n):
            pass


def _growing_bytes(n: int) -> None:
    data = b""
    for _ in range(n):
        data += b"x"


def _growing_set(n: int) -> None:
    known: set[int] = set()
    for each in range(n):
        known = known | {each}


def _dropped_from_the_front(n: int) -> None:
    items = list(range(n))
    while items:
        items.pop(0)


def _deleted_from_the_front(n: int) -> None:
    items = list(range(n))
    while items:
        del items[0]


def _rest_of_a_slice(n: int) -> None:
    items = list(range(n))
    while items:
        items = items[1:]


def _kept_sorted(n: int) -> None:
    items: list[int] = []
    for each in range(n):
        insort(items, -each)


def _picked(n: int) -> None:
    ledger_ids, entry_ids = array("Q", range(n)), array("Q", range(n))
    for each in range(n):
        array("Q", compress(entry_ids, map(each.__eq__, ledger_ids)))


def _spread(n: int) -> None:
    for _ in range(n):
        max(*range(n))


def _formatted(n: int) -> None:
    names = ["x"] * n
    for _ in range(n):
        f"{names}"


def _bits_of_one_integer(n: int) -> None:
    bits = 0
    for each in range(n * 64):
        bits |= 1 << each


def _growing_list(n: int) -> None:
    found: list[int] = []
    for each in range(n):
        found.append(found[-1] + each if found else each)


def _used_up_from_the_front(n: int) -> None:
    data = bytearray(n)
    while data:
        del data[:1]


def _growing_bitmap(n: int) -> None:
    found = BitMap()
    for each in range(n):
        found.add(each)


QUADRATIC: dict[str, Callable[[int], Any]] = {
    "a loop in a loop": _pairs,
    "in a list": lambda n: [each in list_ for list_ in [list(range(n))] for each in range(n)],
    "list.count": lambda n: [list_.count(each) for list_ in [list(range(n))] for each in range(n)],
    "list.index": lambda n: [list_.index(each) for list_ in [list(range(n))] for each in range(n)],
    "sorted": lambda n: [sorted(list_) for list_ in [list(range(n))] for _ in range(n)],
    "sum of a generator": lambda n: [sum(each for each in range(n)) for _ in range(n)],
    "min of a dict": lambda n: [min(known) for known in [dict.fromkeys(range(n))] for _ in range(n)],
    "bytes that grow": _growing_bytes,
    "a set that is copied": _growing_set,
    "pop(0)": _dropped_from_the_front,
    "del [0]": _deleted_from_the_front,
    "a slice of the rest": _rest_of_a_slice,
    "insort": _kept_sorted,
    "compress and map": _picked,
    "arguments of a call": _spread,
    "a list in a text": _formatted,
    "an integer of many words": _bits_of_one_integer,
    "a bitmap of a range": lambda n: [BitMap(range(n)) for _ in range(n)],
}

LINEAR: dict[str, Callable[[int], Any]] = {
    "a loop": lambda n: [each + 1 for each in range(n)],
    "a dict": lambda n: [known.get(each) for known in [dict.fromkeys(range(n))] for each in range(n)],
    "in a set": lambda n: [each in known for known in [set(range(n))] for each in range(n)],
    "a list that is sorted once": lambda n: sorted(range(n), key=lambda each: -each),
    "join": lambda n: b"".join([b"x" for _ in range(n)]),
    "a list that grows": _growing_list,
    "a bitmap that grows": _growing_bitmap,
    "a bytearray used up from the front": _used_up_from_the_front,
}


@pytest.mark.parametrize("name", QUADRATIC)
def test_quadratic_work_is_found(name: str) -> None:
    if not SEES_OPERANDS and name != "a loop in a loop":
        pytest.skip("work in C is weighed on CPython 3.11 alone")
    with pytest.raises(AssertionError, match="8 times the input cost"):
        assert_linear(lambda n: lambda: QUADRATIC[name](n), N)


@pytest.mark.parametrize("name", LINEAR)
def test_linear_work_passes(name: str) -> None:
    assert_linear(lambda n: lambda: LINEAR[name](n), N)


def test_the_same_work_costs_the_same_steps() -> None:
    assert steps(lambda: _picked(N)) == steps(lambda: _picked(N))


def test_the_longest_turn_is_that_of_the_largest_slice() -> None:
    async def work(slices: int) -> None:
        for _ in range(slices):
            _pairs(N)
            await asyncio.sleep(0)

    def longest(slices: int) -> int:
        with Counter() as counter:
            asyncio.run(work(slices))
        return counter.longest

    assert longest(8) < 1.1 * longest(1)


def test_a_call_costs_the_same_the_first_time_and_the_second() -> None:
    def work() -> int:
        return sum(each for each in range(100))

    assert steps(work) == steps(work) > 100


def test_objects_freed_by_the_collector_meanwhile_are_not_counted() -> None:
    class Cycle:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            sum(each for each in range(1000))

    def work() -> int:
        return len(list(map(list, [()] * 1000)))

    gc.collect()
    alone, thresholds = steps(work), gc.get_threshold()
    Cycle()
    gc.set_threshold(500, 1, 1)
    try:
        beside = steps(work)
    finally:
        gc.set_threshold(*thresholds)
    assert beside == alone, "another's end was counted"
    assert gc.isenabled()
