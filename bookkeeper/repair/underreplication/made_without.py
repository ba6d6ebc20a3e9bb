"""Ledgers that were made while a bookie was away: three bookies, E3, and one of them down.

The ledger names the one that is away, as a ledger would that was made a moment before it went: every entry has an ack quorum,
and autorecovery sees which copies are missing. That is not left to be found out: the ledger's custom metadata say who was away,
a warning is logged, and when it is closed or recovered it is marked as under-replicated, so that the copies are made when the
bookie is back, or another one there. docs/adr/0021.
"""

import logging
from collections.abc import Collection, Mapping

from bookkeeper.ledger_metadata.paths import ROOT
from bookkeeper.ledger_metadata.registry import RegisteredLedger
from bookkeeper.repair.errors import RepairError
from bookkeeper.repair.underreplication.store import UnderreplicationStore
from metadata.store import MetadataError, MetadataStore
from ports.clock import RealClock
from ports.logs import line

KEY = "magnetar/made-without"  # the product's first name: it is stored
"""Key in the custom metadata; the value is a list of bookie ids with commas."""
COOKIES = f"{ROOT}/cookies"

_log = logging.getLogger(__name__)


def made_without(custom_metadata: Mapping[str, bytes]) -> tuple[str, ...]:
    """The bookies that were away when the ledger was made."""
    return tuple(custom_metadata.get(KEY, b"").decode(errors="replace").split(",")) if KEY in custom_metadata else ()


class AwayBookies:
    """Bookies of one cluster that were away."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._marks = UnderreplicationStore(store, RealClock(), "", keeps_time=False)

    async def names(self, registered: Collection[str]) -> list[str]:
        """Members of the cluster that take no entries now: they have a cookie, which a decommissioned bookie has not.
        MetadataError."""
        return sorted({*await self._store.children(COOKIES)} - {*registered})

    async def mark(self, ledger: RegisteredLedger) -> None:
        """Mark a ledger that has no writer any more. A failure is logged: the ledger is sound without the mark."""
        names = made_without(ledger.metadata.custom_metadata)
        last = ledger.metadata.segments[-1]
        if not names or (ledger.metadata.last_entry_id < 0 and last.first_entry_id == 0):
            return
        try:
            await self._marks.initialise()
            await self._marks.mark_missing(ledger.ledger_id, names)
        except (MetadataError, RepairError) as error:
            _log.warning(line("ledger not marked as under-replicated", ledger=ledger.ledger_id, reason=error))
        else:
            _log.info(line("ledger marked as under-replicated", ledger=ledger.ledger_id, missing=",".join(names)))
