"""Marking: looks at all ledgers, and marks those that lack copies. Owns the three looks that an auditor takes.

`lost_bookies` reads metadata only: which ledgers name a bookie that is not there. `all_copies` asks the bookies too.
`placement` marks nothing: it counts ledgers whose copies could be further apart than they are.
Bound: auditorMaxNumberOfConcurrentOpenLedgerOperations ledgers at once.
"""

import logging
from collections.abc import Awaitable, Callable, Collection

from bookkeeper.ledger_metadata.registry import RegisteredLedger
from bookkeeper.ledgers import LedgerError
from bookkeeper.repair.all_ledgers import for_each_ledger
from bookkeeper.repair.client import RepairClient
from bookkeeper.repair.counters import RepairCounters
from bookkeeper.repair.ledger.fragments import could_spread_more
from bookkeeper.repair.ledger.ledger_repair import LedgerRepair
from ports.logs import line

_log = logging.getLogger(__name__)


class Marking:
    """Marking by one auditor. Each look ends with a MetadataError or LedgerError when it could not be whole."""

    def __init__(self, client: RepairClient, counters: RepairCounters) -> None:
        self._client, self._counters = client, counters
        self._repair = LedgerRepair(client, counters)
        self._at_once_max = client.settings.auditor_max_number_of_concurrent_open_ledger_operations

    async def named_bookies(self) -> set[str]:
        """All that ledgers name."""
        named: set[str] = set()

        async def look(ledger: RegisteredLedger) -> None:
            named.update(bookie for segment in ledger.metadata.segments for bookie in segment.bookies)

        await self._for_each(look)
        return named

    async def lost_bookies(self, present: Collection[str]) -> int:
        """Mark ledgers that name a bookie that is not present; the number marked."""
        marked = 0

        async def look(ledger: RegisteredLedger) -> None:
            nonlocal marked
            named = [bookie for segment in ledger.metadata.segments for bookie in segment.bookies]
            lost = dict.fromkeys(bookie for bookie in named if bookie not in present)
            if lost:
                await self._client.marks.mark_missing(ledger.ledger_id, list(lost))
                marked += 1

        await self._for_each(look)
        self._counters.auditor_num_under_replicated_ledgers += marked
        return marked

    async def all_copies(self) -> int:
        """Mark ledgers of which a present bookie lacks an entry; the number marked. Bookies that are not
        there have a delay of their own."""
        marked = 0

        async def look(ledger: RegisteredLedger) -> None:
            nonlocal marked
            plan = await self._repair.look(ledger)
            self._counters.auditor_num_ledgers_checked += 1
            self._counters.auditor_num_fragments_per_ledger += len(ledger.metadata.segments)
            failed = plan.failed_replicas
            if failed:
                await self._client.marks.mark_missing(ledger.ledger_id, failed)
                _log.warning(line("a ledger lacks copies", ledger=ledger.ledger_id, bookies=", ".join(failed)))
                marked += 1

        await self._for_each(look)
        self._counters.auditor_num_under_replicated_ledgers += marked
        return marked

    async def placement(self, writable: Collection[str]) -> int:
        """Number of ledgers with a segment whose copies share a rack though there are enough racks."""
        found = 0
        place_of = self._client.racks.place_of
        racks = {place_of(bookie) for bookie in writable}

        async def look(ledger: RegisteredLedger) -> None:
            nonlocal found
            found += could_spread_more(ledger.metadata, place_of, min(len(racks), self._racks_min))

        await self._for_each(look)
        self._counters.auditor_num_ledgers_not_adhering_to_placement_policy = found
        return found

    @property
    def _racks_min(self) -> int:
        return self._client.settings.min_num_racks_per_write_quorum

    async def _for_each(self, look: Callable[[RegisteredLedger], Awaitable[None]]) -> None:
        client = self._client
        await for_each_ledger(client.store, client.registry, look, _tell_unreadable, self._at_once_max)


def _tell_unreadable(ledger_id: int, error: LedgerError) -> None:
    _log.error(line("the metadata of a ledger cannot be read, its copies are not checked", ledger=ledger_id, reason=error))
