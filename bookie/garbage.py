"""Garbage collection: forgets ledgers whose metadata is gone, so that their entry logs can go.

A listing may come back partial or empty, and once deleted nothing brings the entries back (apache/bookkeeper#870). So a ledger
goes only when, in two rounds gcWaitTime apart, a listing lacked it and a direct read of its node said that there is none. A
round in which anything failed, or in which the metadata seems to hold nothing at all, proves nothing.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Protocol

from metadata.store import MetadataError, MetadataStore
from ports.logs import line

ROUND_SECONDS_MIN = 60.0
"""Between two rounds that prove something together."""
log = logging.getLogger("bookie.garbage")


class LedgerKeeper(Protocol):
    """What the collector needs of a bookie."""

    def ledger_ids(self) -> list[int]: ...
    async def delete(self, ledger_ids: Iterable[int]) -> None: ...
    async def compact(self, forced: str | None = None) -> None:
        """When that is due, or now what is `forced`: "major" or "minor". Never raises OSError."""


class GarbageCollector:
    """Compares a bookie's ledgers with the metadata. `ledger_path` gives a ledger's node, `root` is above all."""

    def __init__(
        self, bookie: LedgerKeeper, store: MetadataStore, ledger_path: Callable[[int], str], root: str, wait_seconds: float
    ) -> None:
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
            await self._wait()
            if not self.is_forced or loop.time() - last_round_at >= min(self._wait_seconds, ROUND_SECONDS_MIN):
                last_round_at = loop.time()
                await self.run_round()
            await self._bookie.compact(self._forced)
            self._forced = None

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(self._wait_seconds):
                await self._wake.wait()
        except TimeoutError:
            return  # which is what it waits for
        finally:
            self._wake.clear()

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
