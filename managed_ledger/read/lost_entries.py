"""LostEntries: entries that no replica can give any more, passed over because autoSkipNonRecoverableData says so.

Exactly these: each is asked for once, alone, and one that can be read is never passed over. Counts them, logs each range once,
and tells who keeps the cursors, for which they count as acknowledged. Without the setting nothing is ever in here.
Bounds: one bitmap per ledger that is damaged; it goes with the ledger.
"""

import logging
from collections.abc import Callable

from pyroaring import BitMap

from ports.logs import line
from wire.position import Position

_log = logging.getLogger(__name__)


class LostEntries:
    """Lost entries of one managed ledger. `lost` is called with the ledger and the entries."""

    def __init__(self, name: str, lost: Callable[[int, BitMap], None]) -> None:
        self._name = name
        self._tell_lost = lost
        self._known: dict[int, BitMap] = {}
        self._untold: list[tuple[int, BitMap, str]] = []
        self.count = 0

    def after(self, position: Position) -> Position:
        """The place itself, or the first one after it that is not known to be lost."""
        known = self._known.get(position.ledger_id)
        if known is None or position.entry_id not in known:
            return position
        following = position.entry_id
        while following in known:
            following += 1
        return Position(position.ledger_id, following)

    def add(self, ledger_id: int, first_entry_id: int, end_entry_id: int, reason: str) -> None:
        """Add entries that cannot be read. Those known already are not counted again; call `tell` at the end of the range."""
        known = self._known.setdefault(ledger_id, BitMap())
        fresh = BitMap(range(first_entry_id, end_entry_id)) - known
        if fresh:
            known |= fresh
            self._untold.append((ledger_id, fresh, reason))

    def tell(self) -> None:
        """Count and log the entries added since, a line for each range, and pass each range to `lost`."""
        untold, self._untold = self._untold, []
        while untold:
            ledger_id, lost, reason = untold.pop(0)
            while untold and untold[0][0] == ledger_id and untold[0][1].min() == lost.max() + 1:
                lost |= untold.pop(0)[1]
            self.count += len(lost)
            _log.error(
                line(
                    "entries cannot be read and are skipped",
                    managed_ledger=self._name,
                    ledger=ledger_id,
                    first_entry=lost.min(),
                    last_entry=lost.max(),
                    entries=len(lost),
                    skipped_so_far=self.count,
                    reason=reason,
                )
            )
            self._tell_lost(ledger_id, lost)

    def known(self) -> list[tuple[int, BitMap]]:
        """Copies of the lost entries of each ledger: for a cursor that comes later, or goes back."""
        return [(ledger_id, BitMap(entry_ids)) for ledger_id, entry_ids in self._known.items()]

    def forget_ledger(self, ledger_id: int) -> None:
        """Forget a trimmed ledger."""
        self._known.pop(ledger_id, None)
