"""Probe: asks bookies whether they have their copies. `plan` interprets the answers.

Bounds: PROBES_MAX reads at once, each with a time limit.
"""

import asyncio
from collections.abc import Collection, Mapping

from bookkeeper.ledger_metadata.codec import LedgerMetadata
from bookkeeper.ledger_metadata.registry import RegisteredLedger
from bookkeeper.ports import BookieClient
from bookkeeper.read.reader import DamagedEntry, sound_entries
from bookkeeper.repair.ledger.fragments import Fragment, probed_entries, quorum_of
from bookkeeper.repair.ledger.plan import Findings, Lack, asked_copies
from ports.loop.side_by_side import together
from ports.rng import Rng
from wire.bookie.codes import BookieCode, BookieError

PROBES_MAX = 128
LACKING_CODES = frozenset(
    {BookieCode.ENOENTRY, BookieCode.ENOLEDGER, BookieCode.EIO, BookieCode.EUNKNOWNLEDGERSTATE},
)
"""Codes by which a bookie says that it does not have an entry that it should have. Other codes: it could not be asked."""


class Probe:
    """`percentage` of the entries between the first and the last of each copy are read too."""

    def __init__(self, bookies: Mapping[str, BookieClient], percentage: int, rng: Rng, timeout_seconds: float) -> None:
        self._bookies, self._percentage, self._rng, self._timeout = bookies, percentage, rng, timeout_seconds
        self._turns = asyncio.Semaphore(PROBES_MAX)

    async def findings(self, ledger: RegisteredLedger, present: Collection[str]) -> Findings:
        """Faults of the copies on bookies that are there."""
        copies = asked_copies(ledger.metadata, present)
        lacks = await together(*(self._ask(ledger, fragment, index) for fragment, index in copies))
        return {
            (fragment.first_entry_id, index): lack
            for (fragment, index), lack in zip(copies, lacks, strict=True)
            if lack is not None
        }

    async def _ask(self, ledger: RegisteredLedger, fragment: Fragment, index: int) -> Lack | None:
        quorum = quorum_of(ledger.metadata)
        for entry_id in probed_entries(quorum, fragment, index, self._percentage, self._rng.random):
            lack = await self._read(ledger.ledger_id, ledger.metadata, fragment.bookies[index], entry_id)
            if lack is not None:
                return lack
        return None

    async def _read(self, ledger_id: int, metadata: LedgerMetadata, name: str, entry_id: int) -> Lack | None:
        bookie = self._bookies.get(name)
        if bookie is None:
            return Lack.SILENT
        try:
            async with self._turns, asyncio.timeout(self._timeout):
                sound_entries(await bookie.read(ledger_id, entry_id, 1, 1), ledger_id, entry_id, metadata)
        except DamagedEntry:
            return Lack.LACKING
        except BookieError as error:
            return Lack.LACKING if error.code in LACKING_CODES else Lack.SILENT
        except TimeoutError:
            return Lack.SILENT
        return None
