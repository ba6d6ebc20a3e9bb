"""ReadingPlaces: places where readers go on, known by their reads alone."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from managed_ledger.cache.places import PLACES_MAX, ReadingPlaces
from wire.position import Position


def at(entry_id: int) -> Position:
    return Position(1, entry_id)


def test_a_place_is_left_when_its_last_reader_goes_on() -> None:
    places = ReadingPlaces()
    places.moved(at(0), at(5))
    places.moved(at(0), at(5))
    assert not places.moved(at(5), at(9)), "another reader is still there"
    assert places.moved(at(5), at(9))
    assert at(5) not in places
    assert at(9) in places


def test_a_reader_that_steps_back_into_its_last_read_leaves_the_end_of_that_read() -> None:
    places = ReadingPlaces()
    places.moved(at(0), at(10))
    assert places.moved(at(7), at(12))
    assert at(10) not in places
    assert places.slowest(at(0)) == at(12)


def test_a_new_reader_before_the_last_read_leaves_the_place_of_another() -> None:
    places = ReadingPlaces()
    places.moved(at(5), at(10))
    places.moved(at(5), at(6))
    assert at(10) in places


def test_the_slowest_place_is_the_first_at_or_after_the_minimum() -> None:
    places = ReadingPlaces()
    for end in (30, 10, 20):
        places.moved(at(1000 + end), at(end))
    assert [places.slowest(at(minimum)) for minimum in (0, 10, 11, 30, 31)] == [at(10), at(10), at(20), at(30), None]


def test_the_place_farthest_behind_is_forgotten_at_the_bound() -> None:
    places = ReadingPlaces()
    for number in range(PLACES_MAX + 1):
        places.moved(at(100_000 + number), at(number))
        places.check_invariants()
    assert at(0) not in places
    assert at(1) in places


@given(st.lists(st.integers(1, 9), max_size=40), st.data())
def test_readers_that_only_go_on_are_counted_as_a_naive_twin_counts_them(steps: list[int], data: st.DataObject) -> None:
    """Each reader begins at a place of its own, so that no read is taken for a step back."""
    places, readers = ReadingPlaces(), [at(-1 - number) for number in range(4)]
    counted: Counter[Position] = Counter()
    for step in steps:
        number = data.draw(st.integers(0, 3))
        old = readers[number]
        new = at(max(old.entry_id, 0) + step)
        if old in counted or not any(place > old for place in counted):
            counted[old] -= counted[old] > 0
            counted[new] += 1
            counted = +counted
            readers[number] = new
            assert places.moved(old, new) == (old not in counted)
        places.check_invariants()
        assert {place for place in map(at, range(500)) if place in places} == set(counted)
