"""CursorHost: operations of a managed ledger that its cursors need."""

from typing import Protocol

from pyroaring import BitMap

from wire.position import Position

from ..errors import ManagedLedgerFenced
from ..ledgers.sequence import LedgerSequence


class HostedCursor(Protocol):
    """A cursor of the managed ledger, as its host knows it."""

    @property
    def name(self) -> str: ...
    @property
    def durable(self) -> bool: ...
    def acknowledge_entries(self, ledger_id: int, entry_ids: BitMap) -> BitMap:
        """Returns the entries that were not acknowledged before."""


class CursorHost(Protocol):
    """The managed ledger."""

    @property
    def sequence(self) -> LedgerSequence: ...
    def mark_moved(self, old: Position, new: Position) -> None: ...
    def went_back(self, cursor: HostedCursor) -> None: ...
    def fenced(self, error: ManagedLedgerFenced) -> None: ...
    def cursor_closed(self, cursor: HostedCursor) -> None: ...
