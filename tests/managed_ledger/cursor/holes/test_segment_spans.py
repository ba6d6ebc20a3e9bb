"""Parts of holes, their weights and cuts, beside sets of numbers that are looked through one by one."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap
from sortedcontainers import SortedDict

from managed_ledger.cursor.holes.segment_format_v1 import Span
from managed_ledger.cursor.holes.segment_spans import (
    CONTAINER,
    END,
    FIRST,
    SEGMENT_WEIGHT_MAX,
    containers,
    cuts,
    limits,
    next_bit,
    part,
    parts,
    ranges,
    weight,
)
from wire.position import Position

NUMBERS = st.sets(st.integers(0, 40) | st.integers(CONTAINER - 3, CONTAINER + 3))
LEDGERS = st.dictionaries(st.integers(1, 4), NUMBERS)
POSITIONS = st.builds(Position, st.integers(0, 5), st.integers(-1, 45))


@given(NUMBERS, st.integers(-1, CONTAINER + 5), st.integers(-1, CONTAINER + 5))
def test_a_part_has_the_numbers_between_its_ends(numbers: set[int], first: int, last: int) -> None:
    bits = BitMap(numbers)
    assert set(part(bits, first, last)) == {each for each in numbers if first <= each <= last}


def test_a_part_is_a_copy_even_when_it_is_everything() -> None:
    bits = BitMap([1, 2])
    part(bits, 0, 10).add(3)
    assert set(bits) == {1, 2}


@given(LEDGERS, POSITIONS, POSITIONS)
def test_a_span_has_the_positions_from_its_start_on_and_before_its_end(
    ledgers: dict[int, set[int]], start: Position, end: Position
) -> None:
    by_ledger = SortedDict({ledger_id: BitMap(numbers) for ledger_id, numbers in ledgers.items()})
    found = parts(by_ledger, Span(start, end))
    there = {
        (ledger_id, each) for ledger_id, numbers in ledgers.items() for each in numbers if start <= (ledger_id, each) < end
    }
    assert {(ledger_id, each) for ledger_id, bits in found.items() for each in bits} == there
    assert all(found.values()), "no ledger without holes is in it"


def test_the_span_of_everything_has_every_position() -> None:
    by_ledger = SortedDict({0: BitMap([0]), (1 << 62): BitMap([(1 << 32) - 1])})
    assert parts(by_ledger, Span(FIRST, END)) == dict(by_ledger)


def test_a_span_that_begins_before_a_ledger_has_it_from_entry_0_on() -> None:
    assert limits(Span(Position(3, -1), Position(5, 0)), 3) == (0, (1 << 32) - 1)
    assert limits(Span(Position(3, 7), Position(5, 2)), 4) == (0, (1 << 32) - 1)
    assert limits(Span(Position(3, 7), Position(5, 2)), 5) == (0, 1)


@given(NUMBERS, st.integers(0, CONTAINER + 5))
def test_the_next_bit_is_the_smallest_number_from_there_on(numbers: set[int], at: int) -> None:
    assert next_bit(BitMap(numbers), at) == min((each for each in numbers if each >= at), default=None)


@given(NUMBERS)
def test_each_container_with_a_hole_is_weighed_once(numbers: set[int]) -> None:
    firsts = [first for first, _ in containers(BitMap(numbers))]
    assert firsts == sorted({each - each % CONTAINER for each in numbers})


def test_scattered_holes_weigh_two_bytes_each_and_a_run_weighs_four() -> None:
    assert weight({1: BitMap(range(0, 200, 2))}) == 16 + 200
    assert weight({1: BitMap(range(1000))}) == 16 + 4
    assert weight({1: BitMap(range(0, CONTAINER, 2))}) == 16 + 8192, "a bit set at most"


def test_ranges_of_all_ledgers_are_counted() -> None:
    assert ranges({1: BitMap([0, 1, 5]), 2: BitMap([7]), 3: BitMap()}) == 3


@settings(max_examples=30)
@given(st.dictionaries(st.integers(0, 2), st.sets(st.integers(0, 4))))
def test_no_segment_between_two_cuts_is_heavier_than_the_bound(containers_of: dict[int, set[int]]) -> None:
    """Each container drawn here is as heavy as one can be."""
    holes = {
        ledger_id: BitMap(each for number in numbers for each in range(number * CONTAINER, (number + 1) * CONTAINER, 2))
        for ledger_id, numbers in sorted(containers_of.items())
    }
    starts = [FIRST, *cuts(holes), END]
    weights = [weight(parts(SortedDict(holes), Span(start, end))) for start, end in pairwise(starts)]
    assert all(each <= SEGMENT_WEIGHT_MAX for each in weights)
    assert sum(weights) == weight(holes)
    assert len(starts) == 2 or all(weights), "no segment is empty"
