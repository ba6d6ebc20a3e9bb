"""Acknowledgements of one entry that a cursor in memory takes as plain ones, as the real cursor does."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pyroaring import BitMap

from wire.position import Position

if TYPE_CHECKING:
    from tests.broker.topic.memory_ledger import MemoryLedger


class PlainEntries:
    """A part of a cursor."""

    mark_delete: Position
    _ledger: "MemoryLedger"
    _batches: Mapping[Position, list[int]]

    def acknowledge_entries(self, ledger_id: int, entry_ids: BitMap) -> BitMap:
        raise NotImplementedError

    def acknowledge_entry(self, ledger_id: int, entry_id: int) -> bool:
        """Takes an entry of the newest ledger, with mark-delete in it, and no batch in parts."""
        last = self._ledger.last_confirmed
        if self._batches or entry_id > last.entry_id or not ledger_id == last.ledger_id == self.mark_delete.ledger_id:
            return False
        return bool(self.acknowledge_entries(ledger_id, BitMap([entry_id])))

    def is_untouched(self, ledger_id: int, first: int, last: int) -> bool:
        return False


class PlainListeners:
    """A ledger that tells one listener which cursor was reset, and never refuses an append."""

    went_back_listener: Callable[[str], None] = staticmethod(lambda name: None)

    def on_refused(self, listener: Callable[[], None]) -> None: ...

    def on_went_back(self, listener: Callable[[str], None]) -> Callable[[], None]:
        self.went_back_listener = listener
        return lambda: None
