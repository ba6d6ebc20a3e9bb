"""Work side by side: the first failure ends the rest and is raised as it is; nothing is left running."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def together(*works: Coroutine[Any, Any, T]) -> list[T]:
    """All at once; what each returned."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in works]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures
    return [task.result() for task in tasks]


async def side_by_side(ids: AsyncIterator[int], work: Callable[[int], Awaitable[None]], at_once_max: int) -> None:
    """`work` for each id, so many at once."""
    turns = asyncio.Semaphore(at_once_max)

    async def one(each: int) -> None:
        try:
            await work(each)
        finally:
            turns.release()

    try:
        async with asyncio.TaskGroup() as group:
            async for each in ids:
                await turns.acquire()
                group.create_task(one(each))
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures
