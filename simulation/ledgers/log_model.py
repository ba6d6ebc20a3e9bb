"""LogModel: what was promised about a managed ledger and its cursors, and whether a log that was opened again keeps it. Pure.

Nothing acknowledged is lost, moved or out of order; what is gone is a prefix that every cursor had acknowledged; a cursor is
never ahead of what was acknowledged on it, nor behind what a flush had stored, and its backlog is exact. Acknowledgements are
counted in parts: every entry is a batch of BATCH messages for the cursors.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from managed_ledger.contract import ManagedCursor
from simulation.checks.history import Violation
from wire.position import Position

BATCH = 3
WHOLE = (1 << BATCH) - 1
Parts = dict[Position, int]
"""Messages of each entry as bits (1: acknowledged)."""


@dataclass(slots=True)
class CursorPromise:
    """Promises of one cursor: acknowledged entries, and those of them that must have been stored."""

    asked: Parts = field(default_factory=dict)
    stored: Parts = field(default_factory=dict)

    def ask(self, position: Position, bits: int = WHOLE) -> None:
        self.asked[position] = self.asked.get(position, 0) | bits


class LogModel:
    """`confirmed`: the entries that were answered, by number (numbers grow in the order of appending)."""

    def __init__(self, cursors: Sequence[str]) -> None:
        self.confirmed: dict[int, Position] = {}
        self.cursors = {name: CursorPromise() for name in cursors}

    def on_confirmed(self, number: int, position: Position) -> None:
        if self.confirmed and (number <= max(self.confirmed) or position <= max(self.confirmed.values())):
            raise Violation(f"append {number} at {position} is answered after {max(self.confirmed)}")
        self.confirmed[number] = position

    def acknowledged_through(self, name: str, position: Position, there: Iterable[Position]) -> None:
        for each in {*there, *self.confirmed.values()}:
            if each < position:
                self.cursors[name].ask(each)

    # after a restart

    def check_log(self, found: Mapping[int, Position]) -> int:
        """`found`: what can be read now, in the order of positions. From then on that is what is known.

        Returns how many entries are gone, as they may be."""
        if list(found) != sorted(found):
            raise Violation(f"out of order: {list(found)}")
        gone = []
        for number, position in self.confirmed.items():
            if number not in found:
                gone.append(position)
                self._check_consumed(number, position)
            elif found[number] != position:
                raise Violation(f"append {number} was answered with {position} and is at {found[number]}")
        left = [found[number] for number in self.confirmed if number in found]
        if gone and left and max(gone) > min(left):
            raise Violation(f"a hole: {max(gone)} is gone and {min(left)} is there")
        self.confirmed = dict(found)
        return len(gone)

    def _check_consumed(self, number: int, position: Position) -> None:
        for name, promise in self.cursors.items():
            if promise.asked.get(position, 0) != WHOLE:
                raise Violation(f"append {number} at {position} is lost, {name} had not acknowledged it")

    def check_cursor(self, name: str, cursor: ManagedCursor) -> None:
        promise = self.cursors[name]
        now = {position: _acknowledged(cursor, position) for position in self.confirmed.values()}
        for position, bits in now.items():
            if bits & ~promise.asked.get(position, 0):
                raise Violation(f"{name} is ahead at {position}: {bits:b} of {promise.asked.get(position, 0):b}")
            if promise.stored.get(position, 0) & ~bits:
                raise Violation(f"{name} has forgotten {position}: {bits:b} of {promise.stored[position]:b}")
        backlog = sum(bits != WHOLE for bits in now.values())
        if cursor.backlog_entries() != backlog:
            raise Violation(f"{name}: a backlog of {cursor.backlog_entries()}, it is {backlog}")
        promise.asked, promise.stored = {**now}, {**now}


def _acknowledged(cursor: ManagedCursor, position: Position) -> int:
    if cursor.is_acknowledged(position):
        return WHOLE
    words = cursor.unacknowledged_batch_indexes(position)
    return 0 if words is None else WHOLE & ~words[0]
