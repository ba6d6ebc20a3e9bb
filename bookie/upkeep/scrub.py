"""Scrub: reads blocks that have lain on disk for long, before a reader needs them, and compares them with their checksums.

A damaged block is reported (log, counts, `damages`) and, when there are other replicas to read from, written again from them,
as by a recovery: the journal makes it durable and a read gets the newest write of an entry. Entries that no other replica
gives and whose digest is right are written again as they are. Entries left in the block then are lost here: from now on a
read of them gets EIO, and every round looks for a replica again.
Where this cannot be known (a bookie alone, metadata away) the block stays as it is, and a read of it is checked by its reader.
Keys: localScrubInterval, localScrubRateLimit (ScrubberService), localConsistencyCheckOnStartup (BookieImpl).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from bookie.errors import StorageDamaged
from bookie.reads.log_reads import PASSING_ERRORS
from bookie.storage.block_v1 import DamagedBlock
from bookie.storage.span import Span
from bookie.storage.storage import LedgerStorage
from ports.logs import line
from wire.bookie.codes import BookieError
from wire.run import EntryRun

DAMAGES_MAX = 1000
"""Remembered of one round; beyond it they are counted and logged only."""
log = logging.getLogger("bookie.upkeep.scrub")


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
        """The entries that they have of these, their digests checked; none when they have none. BookieError: not known."""

    async def sound(self, run: EntryRun) -> Iterable[EntryRun]:
        """Entries stored here that have the right digest. BookieError: not known."""


@dataclass(slots=True)
class ScrubCounts:
    """Since the start, for metrics."""

    rounds: int = 0
    blocks_read: int = 0
    blocks_damaged: int = 0
    entries_repaired: int = 0


class Scrub:
    """Scrub of one ledger directory. `rewrite` stores entries again, as an add of a recovery does."""

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
        """Damages that the last round found and did not repair."""

    async def run(self, interval_seconds: float) -> None:
        """A round at each interval, until cancelled."""
        while True:
            await asyncio.sleep(interval_seconds)
            await self.run_round()

    async def run_round(self) -> list[Damage]:
        """Look at every block once; returns damage that was not repaired."""
        self.damages = []
        for ledger_id, span in self._storage.index.spans():
            if self._pause_seconds:
                await asyncio.sleep(self._pause_seconds)
            damage = await self._look(ledger_id, span)
            if damage is not None and not await self._repair(ledger_id, span, damage) and len(self.damages) < DAMAGES_MAX:
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
            if isinstance(error, OSError) and error.errno in PASSING_ERRORS:
                log.warning(line("block cannot be read now", ledger=ledger_id, first=span.first_entry_id, error=error))
                return None
            self.counts.blocks_damaged += 1
            place = f"entry log {span.log_id:08x} offset {span.offset}: {error}"
            log.error(line("block is damaged", ledger=ledger_id, first=span.first_entry_id, count=span.count, place=place))
            return Damage(ledger_id, span.first_entry_id, span.last_entry_id, place)
        return None

    async def _repair(self, ledger_id: int, span: Span, damage: Damage) -> bool:
        """Whether every entry is there again."""
        if self.replicas is None:
            return False
        missing = set(range(span.first_entry_id, span.last_entry_id + 1))
        try:
            for run in await self.replicas.fetch(ledger_id, span.first_entry_id, span.last_entry_id):
                await self._write_again(run, missing)
            for run in await self._sound_here(ledger_id, span, self.replicas) if missing else ():
                if missing.issuperset(range(run.first_entry_id, run.last_entry_id + 1)):
                    await self._write_again(run, missing)
        except (BookieError, OSError) as error:
            log.warning(line("damage is not repaired", ledger=ledger_id, place=damage.place, error=error))
            return False
        if missing:
            self._storage.distrust(span)
            lost = f"{min(missing)}..{max(missing)}"
            log.error(line("entries are lost here", ledger=ledger_id, count=len(missing), within=lost, place=damage.place))
            return False
        log.info(line("damage is repaired", ledger=ledger_id, place=damage.place))
        return True

    async def _write_again(self, run: EntryRun, missing: set[int]) -> None:
        await self._rewrite(run)
        missing.difference_update(range(run.first_entry_id, run.last_entry_id + 1))
        self.counts.entries_repaired += run.count

    async def _sound_here(self, ledger_id: int, span: Span, replicas: Replicas) -> Iterable[EntryRun]:
        try:
            return await replicas.sound(await self._storage.read_unchecked(ledger_id, span))
        except DamagedBlock as error:
            log.warning(line("nothing of a block can be read", ledger=ledger_id, offset=span.offset, error=error))
            return ()


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
