"""Go over very many things in slices: between two of them others on the loop have their turn.

For every loop over a collection without a bound (topics, partitions, subscriptions, cursors, consumers), also one with `await`
in it: what is in memory comes without a wait. Counted, not timed, so that a simulation does the same each time.

`aside` runs a long calculation in a thread, and a short one, or one in simulation, at once. It is for pure functions over
values that do not change meanwhile. The thread and the loop share the interpreter: others wait for a few milliseconds at a
time (`sys.getswitchinterval`), not for the whole calculation.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

SLICE = 50
"""Number of things in a slice. Each takes up to 100 us, so a slice takes 5 ms, and a pause between two a few us."""


class _Slices(AsyncIterator[T]):
    def __init__(self, things: Iterable[T], at_a_time: int) -> None:
        self._things = iter(things)
        self._at_a_time = self._left = at_a_time

    async def __anext__(self) -> T:
        if not self._left:
            self._left = self._at_a_time
            await asyncio.sleep(0)
        self._left -= 1
        try:
            return next(self._things)
        except StopIteration:
            raise StopAsyncIteration from None


def in_slices(things: Iterable[T], at_a_time: int = SLICE) -> AsyncIterator[T]:
    """`async for` each of them; give a copy of a collection that may change meanwhile."""
    return _Slices(things, at_a_time)


def do_in_slices(works: Iterable[Callable[[], object]], then: Callable[[], object], at_a_time: int = SLICE) -> None:
    """Call all of them, the first slice at once and each other in a turn of its own; then `then`. For plain functions."""
    waiting = iter(works)
    _do_slice(next(waiting, None), waiting, then, at_a_time)


def _do_slice(
    first: Callable[[], object] | None, waiting: Iterator[Callable[[], object]], then: Callable[[], object], at_a_time: int
) -> None:
    """One slice: the first work and those after it; `then` where there is no first one."""
    if first is None:
        then()
        return
    first()
    for work in islice(waiting, at_a_time - 1):
        work()
    following = next(waiting, None)
    if following is None:
        then()
    else:
        asyncio.get_running_loop().call_soon(_do_slice, following, waiting, then, at_a_time)


async def let_go(things: list[T]) -> None:
    """Takes all things off a list that nobody else has: those of a slice leave memory in its turn."""
    while things:
        del things[-SLICE:]
        await asyncio.sleep(0)


async def aside(work: Callable[[], T], *, is_long: bool) -> T:
    """Result or error of the calculation."""
    if is_long and getattr(asyncio.get_running_loop(), "has_threads", True):
        return await asyncio.to_thread(work)
    return work()
