"""PendingCursor: a subscription's cursor for dispatchers: messages pending in transactions count as acknowledged. Owns nothing.
Costs a call per read if none is pending.
"""

from collections.abc import Sequence

from pyroaring import BitMap

from managed_ledger.contract import ManagedCursor
from wire.position import Position

from .pending_acks import PendingAcks


class PendingCursor:
    """Part of a cursor that `dispatch_driver` needs."""

    def __init__(self, cursor: ManagedCursor, pending: PendingAcks) -> None:
        self._cursor = cursor
        self._pending = pending

    @property
    def mark_delete(self) -> Position:
        return self._cursor.mark_delete

    def first_unacknowledged(self) -> Position:
        return self._cursor.first_unacknowledged()

    def is_untouched(self, ledger_id: int, first: int, last: int) -> bool:
        """Nothing of these entries is acknowledged, nor is anything pending in a transaction."""
        return not self._pending.has_any and self._cursor.is_untouched(ledger_id, first, last)

    def acknowledge_entries(self, ledger_id: int, entry_ids: BitMap) -> BitMap:
        return self._cursor.acknowledge_entries(ledger_id, entry_ids)

    def is_loaded(self, ledger_id: int, first: int, last: int) -> bool:
        return self._cursor.is_loaded(ledger_id, first, last)

    async def load_acknowledged(self, ledger_id: int, first: int, last: int) -> None:
        await self._cursor.load_acknowledged(ledger_id, first, last)

    def acknowledged_in(self, ledger_id: int) -> BitMap:
        """Acknowledged entries, and those that are pending as a whole, be it in parts."""
        acknowledged = self._cursor.acknowledged_in(ledger_id)
        if not self._pending.has_any:
            return acknowledged
        parts = [at.entry_id for at in self._pending.parts_in(ledger_id) if not any(self._rest(at))]
        return acknowledged | self._pending.whole_in(ledger_id) | BitMap(parts)

    def has_batch_indexes(self) -> bool:
        return self._pending.has_parts or self._cursor.has_batch_indexes()

    def unacknowledged_batch_indexes(self, position: Position) -> tuple[int, ...] | None:
        words = self._cursor.unacknowledged_batch_indexes(position)
        return self._pending.unacknowledged(position, words) if self._pending.has_parts else words

    def _rest(self, position: Position) -> Sequence[int]:
        return self._pending.unacknowledged(position, self._cursor.unacknowledged_batch_indexes(position)) or ()
