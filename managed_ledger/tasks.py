"""Work that must not stop half-way, and work done side by side. Owns no task longer than its work takes."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


async def unbroken(work: Coroutine[Any, Any, T]) -> T:
    """Do it to its end even if the caller is cancelled: what was written and not noted looks like another owner's work."""
    task = asyncio.get_running_loop().create_task(work)
    task.add_done_callback(take_error)
    return await asyncio.shield(task)


async def all_tried(work: Sequence[Coroutine[Any, Any, None]]) -> list[BaseException]:
    """Do all of it at once; what failed, in the order given."""
    results = await asyncio.gather(*work, return_exceptions=True)
    return [result for result in results if isinstance(result, BaseException)]


def take_error(done: "asyncio.Future[Any]") -> None:
    """Whoever waits for it gets the error; nobody may be left who does."""
    if not done.cancelled():
        done.exception()
