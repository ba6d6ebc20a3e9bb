"""Backlogs as arithmetic over the ledgers of a log: how large, how old, how far to skip. Pure; reads no entry.

A size is an estimate, as in Apache (ManagedLedgerImpl.estimateBacklogFromPosition): whole ledgers after the mark, and of the
ledger that the mark is in the mean size of its entries. The age of an entry is known only once its ledger is closed.
"""

from collections.abc import Iterator, Sequence

from pyroaring import BitMap

from managed_ledger.contract import LedgerFacts
from wire.position import Position

from ...policies.policies import BacklogQuota

REDUCTION = 0.9
"""Eviction brings a backlog down to this share of its limit (BacklogQuotaManager), so that it does not run at every check."""


def backlog_bytes(ledgers: Sequence[LedgerFacts], mark_delete: Position) -> int:
    """Backlog of a reader with this mark-delete, in bytes; holes are not subtracted.

    The mean is a whole number, and is subtracted for each consumed entry (ManagedLedgerImpl.consumedLedgerSize).
    """
    left = entries_after(ledgers, mark_delete)
    return sum(ledger.size_bytes - first * (ledger.size_bytes // ledger.entries) for ledger, first in left)


def is_size_exceeded(quota: BacklogQuota, backlog: int) -> bool:
    return 0 <= quota.limit_bytes <= backlog


def closed_before(ledgers: Sequence[LedgerFacts], mark_delete: Position, before_ms: int) -> Position | None:
    """The last entry of the ledgers, directly after the mark, that were all closed before then; None when there is none."""
    found = None
    for ledger, _ in entries_after(ledgers, mark_delete):
        if ledger.is_open or ledger.closed_at_ms <= 0 or ledger.closed_at_ms >= before_ms:
            break
        found = Position(ledger.ledger_id, ledger.entries - 1)
    return found


def entries_to_evict(backlog: int, limit_bytes: int, entries: int) -> int:
    """Number of the slowest reader's entries to evict, so that the backlog comes down to REDUCTION of its limit."""
    target = REDUCTION * limit_bytes
    return int(entries * (backlog - target) / backlog) if backlog > target else 0


def nth_in(ledger: LedgerFacts, first: int, acknowledged: BitMap, count: int) -> tuple[Position | None, int]:
    """The `count`-th entry of this ledger, from `first` on, that is not acknowledged; with fewer the last; None without any.

    Also returns the number still to be counted after it.
    """
    unacknowledged = BitMap(range(first, ledger.entries)) - acknowledged
    if not unacknowledged:
        return None, count
    place = min(count, len(unacknowledged)) - 1
    return Position(ledger.ledger_id, unacknowledged[place]), count - place - 1


def entries_after(ledgers: Sequence[LedgerFacts], mark_delete: Position) -> Iterator[tuple[LedgerFacts, int]]:
    """Each ledger with entries after the mark, and the first of these."""
    for ledger in ledgers:
        first = mark_delete.entry_id + 1 if ledger.ledger_id == mark_delete.ledger_id else 0
        if ledger.ledger_id >= mark_delete.ledger_id and first < ledger.entries:
            yield ledger, first
