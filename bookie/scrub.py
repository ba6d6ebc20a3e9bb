"""Scrub: reads what has lain on disk for long, before somebody needs it, and compares it with its checksums.

A damaged block is told (log, counts, `damages`) and, when there are other replicas to read from, written again from them as a
recovery would: the journal makes it durable and the newest write of an entry is what a read gets. What has no replica to read
stays as it is: a read of it is checked by its reader, and gets EIO when the block itself is not what it should be.
Keys: localScrubInterval, localScrubRateLimit (ScrubberService), localConsistencyCheckOnStartup (BookieImpl).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from bookie.errors import StorageDamaged
from bookie.storage.block_v1 import DamagedBlock
from bookie.storage.span import Span
from bookie.storage.storage import LedgerStorage
from ports.logs import line
from wire.bookie_codes import BookieError
from wire.run import EntryRun

DAMAGES_MAX = 1000
"""Remembered of one round; beyond it they are counted and logged only."""
log = logging.getLogger("bookie.scrub")


@dataclass(frozen=True, slots=True)
class Damage:
    """Entries that could not be read, or whose checksum was wrong."""

    ledger_id: int
    first_entry_id: int
    last_entry_id: int
    place: str


class Replicas(Protocol):
    """The other bookies that hold a ledger."""

    async def fetch(self, ledger_id: int, first_entry_id: int, last_entry_id: int) -> Iterable[EntryRun]:
        """The entries that they have of these, their digests checked. BookieError: none can be read now."""


@dataclass(slots=True)
class ScrubCounts:
    """Since the start, for metrics."""

    rounds: int = 0
    blocks_read: int = 0
    blocks_damaged: int = 0
    entries_repaired: int = 0


class Scrub:
    """Of one ledger directory. `rewrite` stores entries again, as an add of a recovery does."""

    def __init__(
        self,
        storage: LedgerStorage,
        rewrite: Callable[[EntryRun], Awaitable[None]],
        blocks_per_second: float,
        replicas: Replicas | None = None,
    ) -> None:
        self._storage = storage
        self._rewrite = rewrite
        self._pause_seconds = 1 / blocks_per_second if blocks_per_second > 0 else 0.0
        self.replicas = replicas
        self.counts = ScrubCounts()
        self.damages: list[Damage] = []
        """Of the last round, those that were not repaired."""

    async def run(self, interval_seconds: float) -> None:
        """A round at each interval, until cancelled."""
        while True:
            await asyncio.sleep(interval_seconds)
            await self.run_round()

    async def run_round(self) -> list[Damage]:
        """Look at every block once; what is damaged and was not repaired."""
        self.damages = []
        for ledger_id, span in self._storage.index.spans():
            if self._pause_seconds:
                await asyncio.sleep(self._pause_seconds)
            damage = await self._look(ledger_id, span)
            if damage is not None and not await self._repair(damage) and len(self.damages) < DAMAGES_MAX:
                self.damages.append(damage)
        self.counts.rounds += 1
        return self.damages

    async def _look(self, ledger_id: int, span: Span) -> Damage | None:
        if not self._storage.index.holds(ledger_id, span):
            return None
        self.counts.blocks_read += 1
        try:
            await self._storage.read_checked(ledger_id, span)
        except (DamagedBlock, OSError) as error:
            if not self._storage.index.holds(ledger_id, span):
                return None  # deleted, or compacted, while it was read
            self.counts.blocks_damaged += 1
            place = f"entry log {span.log_id:08x} offset {span.offset}: {error}"
            log.error(line("block is damaged", ledger=ledger_id, first=span.first_entry_id, count=span.count, place=place))
            return Damage(ledger_id, span.first_entry_id, span.last_entry_id, place)
        return None

    async def _repair(self, damage: Damage) -> bool:
        """Whether every entry is there again."""
        if self.replicas is None:
            return False
        missing = damage.last_entry_id + 1 - damage.first_entry_id
        try:
            for run in await self.replicas.fetch(damage.ledger_id, damage.first_entry_id, damage.last_entry_id):
                await self._rewrite(run)
                missing -= run.count
                self.counts.entries_repaired += run.count
        except BookieError as error:
            log.warning(line("damage is not repaired", ledger=damage.ledger_id, place=damage.place, error=error))
            return False
        log.info(line("damage is repaired", ledger=damage.ledger_id, place=damage.place, missing=missing))
        return missing == 0


async def check_consistency(storage: LedgerStorage, directory: str) -> None:
    """StorageDamaged unless all that is stored has the right checksums."""
    damages = await Scrub(storage, _never, 0).run_round()
    if damages or storage.suspect:
        raise StorageDamaged(
            f"{directory}: {len(damages)} blocks are damaged, or an entry log cannot be read "
            f"({'; '.join(damage.place for damage in damages[:1])}): put a good copy back, or start with "
            "localConsistencyCheckOnStartup=false and have what is damaged replicated again"
        )


async def _never(run: EntryRun) -> None:
    raise AssertionError(f"nothing is repaired without replicas: {run.ledger_id}")
