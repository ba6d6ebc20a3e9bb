"""Waiting for something to be so that a node of a metadata store says: looked at now, and again at each change of it."""

import asyncio
from collections.abc import Awaitable, Callable

from metadata.store import MetadataStore


async def until(store: MetadataStore, path: str, is_so: Callable[[], Awaitable[bool]], seconds_max: float) -> bool:
    """False when it was not so within the time. Whatever `is_so` raises."""
    changed = asyncio.Event()
    unwatch = store.watch(path, lambda _: changed.set())
    try:
        async with asyncio.timeout(seconds_max):
            while not await is_so():
                await changed.wait()
                changed.clear()
    except TimeoutError:
        return False
    finally:
        unwatch()
    return True
