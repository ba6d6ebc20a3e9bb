"""FollowedTree: reads a part of the metadata again whenever something in it has changed, and until it could be read.

Owns the watch and the task; its owner reads and keeps the values. Changes that come during a read are one more read.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from metadata.store import MetadataError, MetadataStore, Notification
from ports.logs import line

log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0


class FollowedTree:
    """`open` first, `close` last. `what` is its name in the log."""

    def __init__(self, store: MetadataStore, path: str, refresh: Callable[[], Awaitable[None]], what: str) -> None:
        self._store, self._path, self._refresh, self._what = store, path, refresh, what
        self._changed = asyncio.Event()
        self._follower: asyncio.Task[None] | None = None
        self._unwatch: Callable[[], None] = lambda: None

    async def open(self) -> None:
        """Read it for the first time. MetadataError."""
        self._unwatch = self._store.watch(self._path, self._on_change)
        await self._refresh()
        self._follower = asyncio.create_task(self._follow(), name=f"follow {self._what}")

    async def close(self) -> None:
        """Closing twice is fine."""
        self._unwatch()
        if self._follower is not None:
            self._follower.cancel()
            await asyncio.wait([self._follower])
            self._follower = None

    def _on_change(self, change: Notification) -> None:
        self._changed.set()

    async def _follow(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._refresh()
            except MetadataError as error:
                log.warning(line(f"{self._what} unknown, trying again", reason=error))
                await asyncio.sleep(RETRY_SECONDS)
                self._changed.set()
