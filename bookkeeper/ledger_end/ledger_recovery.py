"""Recovery of a ledger as a whole: its writer is shut out, its end is found and stored in its metadata."""

import logging
from collections.abc import Mapping

from bookkeeper.ledger_end.recovery_driver import RecoveredEnd, RecoveryDriver
from bookkeeper.ledger_metadata.codec import LedgerMetadata, LedgerState
from bookkeeper.ledger_metadata.registry import LedgerRegistry, RegisteredLedger
from bookkeeper.placement.candidates import Candidates
from bookkeeper.ports import BookieClient
from bookkeeper.write.ensemble_change import with_segment
from ports.logs import line

_log = logging.getLogger(__name__)


async def recover_ledger(
    ledger: RegisteredLedger,
    registry: LedgerRegistry,
    bookies: Mapping[str, BookieClient],
    candidates: Candidates,
    master_key: bytes,
) -> RegisteredLedger:
    """The ledger, closed; as it is when it is closed already. Several may do this to one ledger at a time. LedgerError."""
    ledger = await registry.update(ledger, in_recovery)
    if ledger.metadata.state == LedgerState.CLOSED:
        return ledger
    end = await RecoveryDriver(ledger.ledger_id, ledger.metadata, bookies, candidates, master_key).recover()
    ledger = await registry.update(ledger, lambda metadata: closed_at(metadata, end))
    _log.info(line("ledger recovered", ledger=ledger.ledger_id, lastEntry=ledger.metadata.last_entry_id))
    return ledger


def in_recovery(metadata: LedgerMetadata) -> LedgerMetadata | None:
    """None: it is already, or closed."""
    return metadata.in_recovery() if metadata.state == LedgerState.OPEN else None


def closed_at(metadata: LedgerMetadata, end: RecoveredEnd) -> LedgerMetadata | None:
    """Nothing when another client has closed it: its end counts for all, and no confirmed entry is after it."""
    if metadata.state == LedgerState.CLOSED:
        return None
    for segment in end.segments:
        metadata = with_segment(metadata, segment)
    return metadata.closed(end.last_entry_id, end.length_bytes)
