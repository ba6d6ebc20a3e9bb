"""Long work in slices: all of it is done, in order, and others have their turn between."""

import asyncio
import gc
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from itertools import chain, pairwise
from typing import Any

import pytest

from ports.loop.slices import SLICE, aside, do_in_slices, in_slices, let_go
from tests.simulation.worlds import run


def turns_of_others_during(work: Callable[[], Coroutine[Any, Any, None]]) -> int:
    """Number of turns that other work had meanwhile."""

    async def run() -> int:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        others = asyncio.create_task(other())
        await work()
        others.cancel()
        return turns

    return asyncio.run(run())


def test_each_thing_comes_once_and_in_order_with_a_turn_for_others_after_each_slice() -> None:
    seen: list[int] = []

    async def work() -> None:
        seen.extend([each async for each in in_slices(range(100), 10)])

    assert turns_of_others_during(work) >= 9
    assert seen == list(range(100))


def test_few_things_take_one_turn() -> None:
    async def work() -> None:
        async for _ in in_slices(range(10), 10):
            pass

    assert turns_of_others_during(work) <= 1


def test_works_are_called_in_slices_the_first_at_once_and_the_end_is_told() -> None:
    done: list[int | str] = []

    async def work() -> None:
        end = asyncio.Event()
        do_in_slices([*(partial(done.append, number) for number in range(35)), partial(done.append, "last")], end.set, 10)
        assert done == list(range(10))
        await end.wait()

    assert turns_of_others_during(work) >= 2
    assert done == [*range(35), "last"]


def test_a_single_slice_ends_at_once() -> None:
    async def run() -> list[str]:
        done: list[str] = []
        do_in_slices([partial(done.append, "one")], partial(done.append, "end"), 10)
        return done

    assert asyncio.run(run()) == ["one", "end"]


def test_later_slices_keep_nothing_of_the_slices_before_them() -> None:
    """A wrapper around the rest after each slice made the work of n things cost n * n."""

    async def run() -> int:
        end = asyncio.get_running_loop().create_future()
        do_in_slices((partial(int, number) for number in range(300)), partial(end.set_result, None), 1)
        for _ in range(200):
            await asyncio.sleep(0)
        kept = sum(type(each) is chain for each in gc.get_objects())
        await end
        return kept

    before = sum(type(each) is chain for each in gc.get_objects())
    assert asyncio.run(run()) <= before + 1


@pytest.mark.parametrize("is_long", [False, True])
def test_a_long_calculation_is_done_in_another_thread(is_long: bool) -> None:
    async def scenario() -> bool:
        return await aside(threading.current_thread, is_long=is_long) is threading.current_thread()

    assert asyncio.run(scenario()) is not is_long


def test_work_aside_is_done_at_once_in_simulation() -> None:
    async def scenario() -> None:
        assert await aside(threading.current_thread, is_long=True) is threading.current_thread()

    run(lambda _: scenario())


def test_an_exception_of_work_aside_is_raised() -> None:
    async def scenario() -> None:
        with pytest.raises(ValueError, match="invalid literal"):
            await aside(lambda: int("x"), is_long=True)

    asyncio.run(scenario())


def test_things_are_let_go_some_in_a_turn() -> None:
    counts = list[int]()

    async def work() -> None:
        things = list(range(10 * SLICE))
        letting_go = asyncio.create_task(let_go(things))
        while things:
            counts.append(len(things))
            await asyncio.sleep(0)
        await letting_go

    asyncio.run(work())
    assert max(before - after for before, after in pairwise(counts)) == SLICE
