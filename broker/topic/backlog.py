"""Backlogs as arithmetic over the ledgers of a log: how large, how old, how far to skip. Pure; reads no entry.

A size is an estimate, as in Apache (ManagedLedgerImpl.estimateBacklogFromPosition): whole ledgers after the mark, and of the
ledger that the mark is in the mean size of its entries. The age of an entry is known only once its ledger is closed.
"""

from collections.abc import Callable, Iterator, Sequence

from pyroaring import BitMap

from managed_ledger.contract import LedgerFacts
from wire.position import Position

from .policies import BacklogQuota

REDUCTION = 0.9
"""Eviction brings a backlog down to this share of its limit (BacklogQuotaManager), so that it does not run at every check."""


def backlog_bytes(ledgers: Sequence[LedgerFacts], mark_delete: Position) -> int:
    """Of a reader whose mark-delete is there; holes are not subtracted."""
    total = 0
    for ledger, first in _after(ledgers, mark_delete):
        total += ledger.size_bytes * (ledger.entries - first) // ledger.entries
    return total


def is_size_exceeded(quota: BacklogQuota, backlog: int) -> bool:
    return 0 <= quota.limit_bytes <= backlog


def closed_before(ledgers: Sequence[LedgerFacts], mark_delete: Position, before_ms: int) -> Position | None:
    """The last entry of the ledgers, directly after the mark, that were all closed before then; None when there is none."""
    found = None
    for ledger, _ in _after(ledgers, mark_delete):
        if ledger.is_open or ledger.closed_at_ms <= 0 or ledger.closed_at_ms >= before_ms:
            break
        found = Position(ledger.ledger_id, ledger.entries - 1)
    return found


def entries_to_evict(backlog: int, limit_bytes: int, entries: int) -> int:
    """How many of the slowest reader's entries go, so that the backlog comes down to REDUCTION of its limit."""
    target = REDUCTION * limit_bytes
    return int(entries * (backlog - target) / backlog) if backlog > target else 0


def position_after(
    ledgers: Sequence[LedgerFacts], mark_delete: Position, acknowledged_in: Callable[[int], BitMap], count: int
) -> Position | None:
    """The `count`-th entry after the mark that is not acknowledged; with fewer the last one; None without any."""
    found = None
    for ledger, first in _after(ledgers, mark_delete):
        unacknowledged = BitMap(range(first, ledger.entries)) - acknowledged_in(ledger.ledger_id)
        if unacknowledged:
            place = min(count, len(unacknowledged)) - 1
            found = Position(ledger.ledger_id, unacknowledged[place])
            count -= place + 1
            if count <= 0:
                break
    return found


def _after(ledgers: Sequence[LedgerFacts], mark_delete: Position) -> Iterator[tuple[LedgerFacts, int]]:
    """Each ledger with entries after the mark, and the first of these."""
    for ledger in ledgers:
        first = mark_delete.entry_id + 1 if ledger.ledger_id == mark_delete.ledger_id else 0
        if ledger.ledger_id >= mark_delete.ledger_id and first < ledger.entries:
            yield ledger, first
