"""Upkeep: the care of a bookie's entry logs beside serving them: compaction and scrub.

Each is made, and its code loaded, when it is first wanted: neither is before the first client is served.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import TYPE_CHECKING

from bookie.disk_space.disk_watch import Room
from bookie.settings import BookieSettings
from bookie.storage.storage import LedgerStorage
from ports.clock import Clock
from wire.run import EntryRun

if TYPE_CHECKING:
    from bookie.upkeep.compactor import Compactor
    from bookie.upkeep.scrub import Scrub


class Upkeep:
    """Upkeep of one bookie. `start` when it serves, `stop` before its storage is closed."""

    def __init__(
        self,
        storage: LedgerStorage,
        settings: BookieSettings,
        clock: Clock,
        room: Callable[[], Room],
        rewrite: Callable[[EntryRun], Awaitable[None]],
    ) -> None:
        self._storage, self._settings, self._clock, self._room, self._rewrite = storage, settings, clock, room, rewrite
        self._loop = asyncio.get_running_loop()
        self._started_at = self._loop.time()
        self._scrubber: asyncio.Task[None] | None = None

    @cached_property
    def compactor(self) -> "Compactor":
        """Compactor; its intervals count from the start of the bookie, not from the first use."""
        from bookie.upkeep.compactor import Compactor

        return Compactor(self._storage, self._settings, self._room, self._loop.time, self._clock, self._started_at)

    @cached_property
    def scrub(self) -> "Scrub":
        from bookie.upkeep.scrub import Scrub

        return Scrub(self._storage, self._rewrite, self._settings.local_scrub_rate_limit)

    def start(self) -> None:
        if self._settings.local_scrub_interval > 0:
            self._scrubber = self._loop.create_task(self.scrub.run(self._settings.local_scrub_interval), name="bookie-scrub")

    async def stop(self) -> None:
        """Stopping twice is fine."""
        scrubber, self._scrubber = self._scrubber, None
        if scrubber is not None:
            scrubber.cancel()
            await asyncio.wait([scrubber])
