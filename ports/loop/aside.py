"""Work aside: a long calculation in a thread, so that the event loop goes on; a short one, or one in simulation, at once.

For pure functions over values that nobody changes meanwhile. The thread and the loop share the interpreter: others wait for
a few milliseconds at a time (`sys.getswitchinterval`) and not for the whole of it.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def aside(work: Callable[[], T], *, is_long: bool) -> T:
    """Result or error of the calculation."""
    if is_long and getattr(asyncio.get_running_loop(), "has_threads", True):
        return await asyncio.to_thread(work)
    return work()
