"""Over-replicated ledgers: removes those that are here although the metadata says that they are elsewhere.

As ScanAndCompareGarbageCollector.removeOverReplicatedledgers, every gcOverreplicatedLedgerWaitTime: only ledgers that are
closed, and each under the lock of the repairs, with its metadata read again there. A copy by hand (`recover`) takes no lock and
names the bookie after it has copied (apache/bookkeeper#4668): so a ledger goes only when nothing of it was written here between
two looks, LOOK_SECONDS apart, and all of it is in entry logs. A later copy to this bookie finds it gone, and writes it anew.
"""

import asyncio
import logging
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from metadata.store import MetadataError
from ports.logs import line

LOOK_SECONDS = 60.0
log = logging.getLogger("bookie.upkeep.garbage")


class Places(Protocol):
    """Places of ledgers by the metadata. Every method may raise MetadataError."""

    async def is_elsewhere(self, ledger_id: int) -> bool:
        """The ledger is there and closed, and this bookie is in none of its ensembles."""

    def repair_lock(self, ledger_id: int) -> AbstractAsyncContextManager[bool]:
        """Take the ledger's repair lock. False: another process has it."""


class Keeper(Protocol):
    """Operations of the bookie that are needed."""

    def ledger_ids(self) -> list[int]: ...
    def at_rest(self, ledger_id: int) -> int | None: ...
    async def delete(self, ledger_ids: Iterable[int], *, are_elsewhere: bool = False) -> None: ...


class OverReplication:
    """Over-replicated ledgers of one bookie, one at a time."""

    def __init__(self, bookie: Keeper, places: Places, wait_seconds: float) -> None:
        self._bookie, self._places, self._wait_seconds = bookie, places, wait_seconds

    async def run(self) -> None:
        """A round at each interval, until cancelled; none when the interval is 0."""
        while self._wait_seconds > 0:
            await asyncio.sleep(self._wait_seconds)
            await self.run_round()

    async def run_round(self) -> list[int]:
        """The ledgers that were removed. A failure is logged and ends the round."""
        removed = []
        try:
            seen = {ledger_id: self._bookie.at_rest(ledger_id) for ledger_id in await self._elsewhere()}
            if seen:
                await asyncio.sleep(min(self._wait_seconds, LOOK_SECONDS))
            for ledger_id, before in seen.items():
                if before is not None and await self._remove(ledger_id, before):
                    removed.append(ledger_id)
        except (MetadataError, OSError) as error:
            log.warning(line("removal of over-replicated ledgers gave up this round", error=error))
        if removed:
            log.info(line("over-replicated ledgers removed", count=len(removed), first=removed[0], last=removed[-1]))
        return removed

    async def _elsewhere(self) -> list[int]:
        return [ledger_id for ledger_id in self._bookie.ledger_ids() if await self._places.is_elsewhere(ledger_id)]

    async def _remove(self, ledger_id: int, before: int) -> bool:
        async with self._places.repair_lock(ledger_id) as is_mine:
            if not is_mine or not await self._places.is_elsewhere(ledger_id):
                return False
            if self._bookie.at_rest(ledger_id) != before:
                return False
            await self._bookie.delete([ledger_id], are_elsewhere=True)  # no await between the look and the removal
        return True
