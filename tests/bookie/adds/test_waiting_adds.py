"""Adds that wait for room keep their order; beyond the bound an add keeps its place without its entries."""

import asyncio
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from bookie.adds.waiting_adds import WaitingAdd, WaitingAdds
from tests.bookie.runs import KEY, sealed
from tests.invariants import checked_after_each_step

checked_machines = checked_after_each_step(WaitingAdds)

NO_FUTURE = cast("asyncio.Future[None]", None)


def add(entry_id: int, size: int) -> WaitingAdd:
    """An add of so many bytes in all."""
    return WaitingAdd(1, sealed(1, entry_id, size=size - 36), KEY, False, NO_FUTURE)


@given(st.lists(st.integers(36, 120)), st.integers(0, 300))
def test_the_entries_that_are_kept_are_those_of_a_walk_with_a_budget(sizes: list[int], bytes_max: int) -> None:
    waiting, kept, left = WaitingAdds(bytes_max), list[bool](), bytes_max
    for entry_id, size in enumerate(sizes):
        waiting.append(add(entry_id, size))
        kept.append(size <= left or not entry_id)
        left -= size if kept[-1] else 0
    assert len(waiting) == len(sizes)
    assert [each.run is not None for each in waiting.take_all()] == kept


def test_one_add_larger_than_the_bound_waits_whole_and_the_next_waits_without_entries() -> None:
    waiting = WaitingAdds(100)
    waiting.append(add(0, 500))
    waiting.append(add(1, 40))
    first, second = waiting.take_all()
    assert (first.run is None, second.run is None) == (False, True)


def test_after_all_are_taken_there_is_room_for_as_many_again() -> None:
    waiting = WaitingAdds(100)
    for _ in range(2):
        waiting.append(add(0, 60))
        waiting.append(add(1, 40))
        assert all(each.run is not None for each in waiting.take_all())
        assert not waiting


def test_an_add_that_came_without_entries_takes_no_room() -> None:
    waiting = WaitingAdds(100)
    waiting.append(add(0, 60)._replace(run=None))
    waiting.append(add(1, 100))
    assert [each.run is None for each in waiting.take_all()] == [True, False]
