"""Collections taken apart: things come in order, and none that was taken stays in memory."""

import asyncio
import gc
import weakref

from ports.loop.slices import do_in_slices
from ports.loop.taking_apart import items_taken_apart, taken_apart


class Thing:
    """Can be watched."""


def test_objects_ended_in_a_slice_leave_memory_in_its_turn() -> None:
    class Ending:
        def end(self) -> None: ...

    async def run() -> list[int]:
        things = [Ending() for _ in range(30)]
        living = [weakref.ref(each) for each in things]
        ends = (each.end for each in taken_apart(things))
        del things
        counts: list[int] = []
        done = asyncio.Event()
        do_in_slices(ends, done.set, 10)
        while not done.is_set():
            counts.append(sum(each() is not None for each in living))
            await asyncio.sleep(0)
        return counts

    assert asyncio.run(run()) == [20, 10]


def test_items_come_in_order_and_none_that_was_taken_stays() -> None:
    things = {number: Thing() for number in range(100)}
    watched = [weakref.ref(each) for each in things.values()]
    taken = items_taken_apart(things)
    things.clear()
    for expected in range(100):
        key, thing = next(taken)
        assert key == expected
        assert thing is watched[key]()
        del thing
        assert watched[key]() is None
    assert next(taken, None) is None


def test_the_pairs_of_items_are_made_one_by_one() -> None:
    """Pairs that are made together would have the cycle collector look at all new objects."""
    things = {str(number): number for number in range(30_000)}
    gc.disable()
    try:
        before = sum(gc.get_count())
        taken = items_taken_apart(things)
        assert sum(gc.get_count()) - before < 100
        assert next(taken) == ("0", 0)
    finally:
        gc.enable()
