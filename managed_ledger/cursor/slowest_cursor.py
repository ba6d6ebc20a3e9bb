"""SlowestCursor: the place of the cursor behind all others, without a look at all of them. Pure.

Trimming asks for it whenever a cursor leaves or passes the end of a ledger, so each of 30,000 readers that leave together would
look at all the others. Owns a heap of marks; an entry that no longer holds is corrected when it comes to the top (Apache: the
heap of ManagedCursorContainer). Bound: twice as many entries as there are cursors, and a few.
"""

from collections.abc import Mapping
from heapq import heapify, heappop, heappush, heapreplace
from typing import Protocol

from wire.position import Position

_SPARE = 16


class Marked(Protocol):
    """Part of a cursor that is needed here."""

    @property
    def mark_delete(self) -> Position: ...


class SlowestCursor:
    """The cursors of one managed ledger by their marks; `noted` for each that comes or goes back."""

    def __init__(self, by_name: Mapping[str, Marked]) -> None:
        self._by_name = by_name
        self._heap: list[tuple[Position, str]] = []

    def noted(self, name: str) -> None:
        """This cursor came, or went back. Moves forward need not be noted."""
        heappush(self._heap, (self._by_name[name].mark_delete, name))
        self._shrink()

    def left(self) -> None:
        """A cursor is not in the map any more. Its entry goes at once or with others, but does not stay with the last ones."""
        self._shrink()

    def _shrink(self) -> None:
        if len(self._heap) > 2 * len(self._by_name) + _SPARE:
            self._heap = [(cursor.mark_delete, name) for name, cursor in self._by_name.items()]
            heapify(self._heap)

    def mark(self) -> Position | None:
        """Mark-delete position of the slowest cursor; None: there is no cursor."""
        name = self.name()
        return None if name is None else self._heap[0][0]

    def name(self) -> str | None:
        """None: there is no cursor."""
        self.settle(len(self._heap))
        return self._heap[0][1] if self._heap else None

    def settle(self, entries_max: int) -> bool:
        """Correct so many entries at most; whether the topmost holds now. Where very many cursors have moved this is called
        for some of them in each turn of the loop, before a caller asks."""
        heap = self._heap
        for _ in range(entries_max):
            if not heap or ((cursor := self._by_name.get(heap[0][1])) is not None and cursor.mark_delete == heap[0][0]):
                return True
            if cursor is None:
                heappop(heap)
            else:
                heapreplace(heap, (cursor.mark_delete, heap[0][1]))
        return not heap

    def check_invariants(self) -> None:
        """Check the invariants, for tests and simulations."""
        lowest: dict[str, Position] = {}
        for at, (position, name) in enumerate(self._heap):
            assert self._heap[(at - 1) // 2 if at else 0] <= (position, name), "the heap is in order"
            lowest[name] = min(position, lowest.get(name, position))
        for name, cursor in self._by_name.items():
            assert lowest[name] <= cursor.mark_delete, f"cursor {name} is behind all its marks"
