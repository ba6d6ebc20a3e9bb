"""CursorHost: operations of a managed ledger that its cursors need, and the mark-delete position of a reader's place."""

from typing import TYPE_CHECKING, Protocol

from wire.position import Position

from ..errors import ManagedLedgerFenced
from ..ledgers.sequence import LedgerSequence

if TYPE_CHECKING:
    from .cursor_driver import MemoryCursor


class CursorHost(Protocol):
    """The managed ledger."""

    @property
    def sequence(self) -> LedgerSequence: ...
    def mark_moved(self, old: Position, new: Position) -> None: ...
    def went_back(self, cursor: "MemoryCursor") -> None: ...
    def fenced(self, error: ManagedLedgerFenced) -> None: ...
    def cursor_closed(self, cursor: "MemoryCursor") -> None: ...


def before(sequence: LedgerSequence, position: Position) -> Position:
    """Mark-delete position of a reader whose first entry is `position`, clamped to the log."""
    last = sequence.last_confirmed
    if position > last:
        return last
    return sequence.previous_position(position)
