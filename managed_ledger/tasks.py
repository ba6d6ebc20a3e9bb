"""Work that must not stop half-way, and work done side by side. Owns no task longer than its work takes."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from ports.loop.side_by_side import side_by_side

T = TypeVar("T")


async def unbroken(work: Coroutine[Any, Any, T]) -> T:
    """Do it to its end even if the caller is cancelled: what was written and not noted looks like another owner's work."""
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
