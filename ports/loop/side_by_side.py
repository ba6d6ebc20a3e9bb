"""Work on many things side by side, some at a time: however many there are, others on the loop have their turn.

Work for each of a collection without a bound (topics, partitions, subscriptions, cursors, bundles, producers) is done by this
and not by `asyncio.gather`: that begins all of it in one turn of the loop, and holds a task for each.
"""

import asyncio
from collections.abc import Coroutine, Iterable, Iterator
from itertools import chain, islice
from typing import Any, TypeVar, cast

T = TypeVar("T")

AT_ONCE_MAX = 32
"""Enough for one write of metadata or one read of a bookie to serve many; a turn of the loop ends at most so many of them."""
_IN_A_ROW = 2
"""Works that one of these does before others have their turn: works that wait for nothing would all be done in one turn."""


async def side_by_side(works: Iterable[Coroutine[Any, Any, T]], at_once_max: int = AT_ONCE_MAX) -> list[T | BaseException]:
    """Do all works; their results or errors, in the order given. Give a generator: each work is made when its turn comes.

    When the caller is cancelled, works under way are cancelled too, and the rest does not begin.
    """
    found: list[T | BaseException] = []
    waiting = enumerate(works)
    first = list(islice(waiting, at_once_max))
    try:
        if len(first) == 1:
            await _work_off(first[0], waiting, found)
        elif first:
            await asyncio.gather(*(_work_off(each, waiting, found) for each in first))
    finally:
        if isinstance(works, list | tuple):
            for work in works[len(first) :]:
                work.close()  # nothing happens to one that has ended
    return found


async def _work_off(
    own: tuple[int, Coroutine[Any, Any, T]],
    waiting: Iterator[tuple[int, Coroutine[Any, Any, T]]],
    found: list[T | BaseException],
) -> None:
    """Does its own work first, then works that have not begun."""
    task = asyncio.current_task()
    assert task is not None
    for number, (place, work) in enumerate(chain((own,), waiting), 1):
        found.extend([cast(T, None)] * (place + 1 - len(found)))
        try:
            found[place] = await work
        except BaseException as error:  # the caller's to judge, as with gather
            if not isinstance(error, Exception) and (not isinstance(error, asyncio.CancelledError) or task.cancelling()):
                raise
            trace = error.__traceback__
            found[place] = error.with_traceback(None if trace is None else trace.tb_next)  # this frame holds it: no ring
        if number % _IN_A_ROW == 0:
            await asyncio.sleep(0)


async def together(*works: Coroutine[Any, Any, T]) -> list[T]:
    """All at once; what each returned. The first failure ends the rest and is raised as it is; nothing is left running."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in works]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures
    return [task.result() for task in tasks]


async def unbroken(work: Coroutine[Any, Any, T]) -> T:
    """Do it to its end even if the caller is cancelled: a write that was not noted looks like another owner's."""
    task = asyncio.get_running_loop().create_task(work)
    task.add_done_callback(take_error)
    try:
        return await asyncio.shield(task)
    finally:
        del task  # an error of it has this frame in its traceback: together they would stay


async def all_tried(work: Iterable[Coroutine[Any, Any, None]]) -> list[BaseException]:
    """Do all of it, some at a time (`ports.loop.side_by_side`); what failed, in the order given."""
    return [result for result in await side_by_side(work) if isinstance(result, BaseException)]


def take_error(done: "asyncio.Future[Any]") -> None:
    """Retrieve the error of work that may have no waiter left; waiters get it too."""
    if not done.cancelled():
        done.exception()
