"""Garbage collection: forgets ledgers whose metadata is gone, so that their entry logs can go.

A listing may come back partial or empty, and once deleted nothing brings the entries back (apache/bookkeeper#870). So a ledger
goes only when, in two rounds, a listing lacked it and a direct read of its node said that there is none. A round in which
anything failed, or in which the metadata seems to hold nothing at all, proves nothing.
Rounds are gcWaitTime apart; while disks have no room a second, or ten times what the last one took: who deletes a topic then
wants room now. (Apache's rounds stay gcWaitTime apart, and one of them is proof enough.)
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Protocol

from metadata.store import MetadataError, MetadataStore
from ports.logs import line

ROUND_SECONDS_MIN = 60.0
"""Between two rounds that prove something together."""
LOOK_SECONDS, FULL_ROUND_SECONDS_MIN, FULL_ROUND_TIMES = 5.0, 1.0, 10
"""Interval between looks at the room; without room, the least time between two rounds, in seconds and in multiples of the time
that one takes."""
log = logging.getLogger("bookie.upkeep.garbage")


class LedgerKeeper(Protocol):
    """Operations of a bookie that the collector needs."""

    def ledger_ids(self) -> list[int]: ...
    async def delete(self, ledger_ids: Iterable[int]) -> None: ...
    async def compact(self, forced: str | None = None) -> None:
        """Compact when due, or now when `forced` is "major" or "minor". Never raises OSError."""


class GarbageCollector:
    """Compares a bookie's ledgers with the metadata. `ledger_path` gives a ledger's node, `root` is above all."""

    def __init__(
        self,
        bookie: LedgerKeeper,
        store: MetadataStore,
        ledger_path: Callable[[int], str],
        root: str,
        wait_seconds: float,
        *,
        lacks_room: Callable[[], bool] = lambda: False,
        forces_when_full: bool = False,
    ) -> None:
        """`forces_when_full`: also compaction begins at once when there is no room (isForceGCAllowWhenNoSpace)."""
        self._lacks_room, self._forces_when_full = lacks_room, forces_when_full
        self._was_full = False
        self._round_seconds = 0.0
        self._bookie = bookie
        self._store = store
        self._ledger_path = ledger_path
        self._root = root
        self._wait_seconds = wait_seconds
        self._absent_before: frozenset[int] = frozenset()
        self._forced: str | None = None
        self._wake = asyncio.Event()

    @property
    def is_forced(self) -> bool:
        """A run that was triggered has not ended."""
        return self._forced is not None

    def trigger(self, kind: str | None) -> None:
        """Run now, with a compaction of this kind ("major" when none is named)."""
        self._forced = kind or "major"
        self._wake.set()

    async def run(self) -> None:
        """A round every gcWaitTime, and then compaction when it is due, until cancelled; both at once when triggered.

        A triggered round that comes too soon after another only compacts: two rounds are a proof when there is time between.
        """
        loop = asyncio.get_running_loop()
        last_round_at = loop.time()
        while True:
            await self._wait(last_round_at)
            if self._is_due(last_round_at) or (self.is_forced and self._may_prove(last_round_at)):
                last_round_at = loop.time()
                await self.run_round()
                self._round_seconds = loop.time() - last_round_at
                last_round_at = loop.time()
            await self._bookie.compact(self._forced)
            self._forced = None

    def _is_due(self, last_round_at: float) -> bool:
        seconds = self._wait_seconds
        if self._lacks_room():
            seconds = min(seconds, max(FULL_ROUND_SECONDS_MIN, FULL_ROUND_TIMES * self._round_seconds))
        return asyncio.get_running_loop().time() - last_round_at >= seconds

    def _may_prove(self, last_round_at: float) -> bool:
        return asyncio.get_running_loop().time() - last_round_at >= min(self._wait_seconds, ROUND_SECONDS_MIN)

    async def _wait(self, last_round_at: float) -> None:
        """Until a round is due, or one is triggered."""
        while not (self._is_due(last_round_at) or self.is_forced):
            seconds = FULL_ROUND_SECONDS_MIN if self._lacks_room() else LOOK_SECONDS
            with suppress(TimeoutError):
                async with asyncio.timeout(min(seconds, self._wait_seconds)):
                    await self._wake.wait()
            self._wake.clear()
            self._look_whether_full()

    def _look_whether_full(self) -> None:
        """GarbageCollectorThread.enableForceGC."""
        was_full, self._was_full = self._was_full, self._lacks_room()
        if self._was_full and not was_full and self._forces_when_full:
            self._forced = self._forced or "major"

    async def run_round(self) -> list[int]:
        """One round; the ledgers that were deleted. A failure is logged, and the next round begins from nothing."""
        before, self._absent_before = self._absent_before, frozenset()
        try:
            absent = await self._find_absent()
            deleted = [ledger_id for ledger_id in absent if ledger_id in before]
            if deleted:
                await self._bookie.delete(deleted)
                log.info(line("ledgers collected", count=len(deleted), first=deleted[0], last=deleted[-1]))
        except (MetadataError, OSError) as error:
            log.warning(line("garbage collection gave up this round", error=error))
            return []
        self._absent_before = frozenset(absent)
        return deleted

    async def _find_absent(self) -> list[int]:
        """Ledgers here that neither the listing nor a direct read finds in the metadata."""
        if not await self._store.children(self._root):
            return []
        listed: dict[str, frozenset[str]] = {}
        absent = []
        for ledger_id in self._bookie.ledger_ids():
            path = self._ledger_path(ledger_id)
            parent, _, name = path.rpartition("/")
            if parent not in listed:
                listed[parent] = frozenset(await self._store.children(parent))
            if name not in listed[parent] and await self._store.get(path) is None:
                absent.append(ledger_id)
        return absent
