"""DataIntegrity: a bookie that lost entries gets them back from the others, ledger by ledger (BP-46).

The steps of BookKeeper's DataIntegrityCheckImpl, newest ledgers first: a ledger that is not closed, and has the bookie in its
last segment, is recovered, because no other node can tell what the bookie had answered; then entries that the bookie lacks are
copied. Theirs ends limbo before it copies; here a ledger is in limbo until all of it is here again, so that no miss is said to
be "no such entry" meanwhile. A ledger with entries that no other bookie has stays in limbo, and they are looked for again.

It may be cut off anywhere: which ledgers are in limbo is stored, and a copy is on disk before the next one is made.
Bounds: one ledger at a time, one run of entries in memory, LOST_MAX entries asked for in vain, rounds ever further apart.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

from bookkeeper.ledger_metadata.codec import LedgerState
from bookkeeper.ledger_metadata.registry import RegisteredLedger
from bookkeeper.ledgers import LedgerError
from cli.bookie.missing_entries import is_named, missing_entries
from cli.bookie.replicas import BookieReplicas, NoReplica
from ports.logs import line
from wire.bookie.codes import BookieCode, BookieError
from wire.run import EntryRun

BYTES_PER_SECOND_MAX = 50 << 20
"""Copied. A bookie that repairs itself serves its clients meanwhile."""
RETRY_SECONDS_MIN, RETRY_SECONDS_MAX = 1.0, 300.0
LOST_MAX = 1000
LEAVE_TOGETHER_MAX = 100
LEAVE_SECONDS_MAX = 1.0
"""Ledgers leave limbo together, since each time is a flush."""
log = logging.getLogger("bookie.integrity")


class LimboBookie(Protocol):
    """The bookie, as the check uses it."""

    def limbo_ids(self) -> list[int]: ...
    def held_ranges(self, ledger_id: int) -> list[tuple[int, int]]: ...
    async def rewrite(self, run: EntryRun) -> None: ...
    async def leave_limbo(self, ledger_ids: Iterable[int]) -> None: ...


class DataIntegrity:
    """Check of the bookie called `bookie_id`. `recover` closes a ledger as a reader would, or raises LedgerError."""

    def __init__(
        self,
        bookie: LimboBookie,
        bookie_id: str,
        replicas: BookieReplicas,
        recover: Callable[[RegisteredLedger], Awaitable[RegisteredLedger]],
        bytes_per_second: int = BYTES_PER_SECOND_MAX,
    ) -> None:
        self._bookie, self._bookie_id, self._replicas, self._recover = bookie, bookie_id, replicas, recover
        self._bytes_per_second = bytes_per_second
        self.entries_copied = 0

    async def run(self) -> None:
        """Runs rounds until no ledger is in limbo."""
        pause = RETRY_SECONDS_MIN
        while waiting := len(self._bookie.limbo_ids()):
            log.info(line("data integrity check", ledgersInLimbo=waiting))
            left = await self.run_round()
            pause = RETRY_SECONDS_MIN if left else min(2 * pause, RETRY_SECONDS_MAX)
            if self._bookie.limbo_ids():
                await asyncio.sleep(pause)
        log.info(line("data integrity check has ended: no ledger is in limbo", entriesCopied=self.entries_copied))

    async def run_round(self) -> int:
        """Look at every ledger in limbo once; return how many left it. Failures are logged, and leave a ledger in it."""
        loop, whole, left = asyncio.get_running_loop(), list[int](), 0
        last_left_at = loop.time()
        for ledger_id in reversed(self._bookie.limbo_ids()):
            try:
                if await self._make_whole(ledger_id):
                    whole.append(ledger_id)
            except (BookieError, LedgerError) as error:
                log.warning(line("ledger stays in limbo", ledger=ledger_id, reason=error))
            if len(whole) >= LEAVE_TOGETHER_MAX or loop.time() - last_left_at > LEAVE_SECONDS_MAX:
                left += await self._leave(whole)
                whole, last_left_at = [], loop.time()
        return left + await self._leave(whole)

    async def _leave(self, ledger_ids: list[int]) -> int:
        try:
            if ledger_ids:
                await self._bookie.leave_limbo(ledger_ids)
        except OSError as error:
            log.warning(line("the end of limbo of ledgers is not stored yet", ledgers=len(ledger_ids), error=error))
        return len(ledger_ids)

    async def _make_whole(self, ledger_id: int) -> bool:
        """Whether everything is here that should be; False: nothing can be said of the ledger, which may be on its way out."""
        try:
            ledger = await self._replicas.ledger(ledger_id)
        except BookieError as error:
            if error.code != BookieCode.ENOLEDGER:
                raise
            return False  # garbage collection proves that it is deleted, and removes it
        metadata = ledger.metadata
        if metadata.state != LedgerState.CLOSED and self._bookie_id in metadata.segments[-1].bookies:
            ledger = await self._recover(ledger)
        if not is_named(ledger.metadata, self._bookie_id):
            return False  # others have it, and it will be collected
        return await self._copy(ledger)

    async def _copy(self, ledger: RegisteredLedger) -> bool:
        lost, copied = 0, self.entries_copied
        held = self._bookie.held_ranges(ledger.ledger_id)
        for first, last in missing_entries(ledger.metadata, self._bookie_id, held):
            while first <= last and lost < LOST_MAX:
                try:
                    first += await self._copy_run(ledger, first, last)
                except NoReplica as error:
                    if not error.is_lost:
                        raise
                    log.error(line("entry is lost here, and no other bookie has it", ledger=ledger.ledger_id, reason=error))
                    lost, first = lost + 1, first + 1
        if self.entries_copied > copied:
            log.info(line("ledger copied", ledger=ledger.ledger_id, entries=self.entries_copied - copied, lost=lost))
        return lost == 0

    async def _copy_run(self, ledger: RegisteredLedger, first: int, last: int) -> int:
        """Count of entries, from the first on, that are durable here now."""
        run = await self._replicas.read(ledger.ledger_id, ledger.metadata, first, last + 1 - first)
        if self._bytes_per_second > 0:
            await asyncio.sleep(run.size_bytes / self._bytes_per_second)
        await self._bookie.rewrite(run)
        self.entries_copied += run.count
        return run.count
