"""SlowestCursor: the place of the cursor behind all others, without a look at all of them. Pure.

Trimming asks for it whenever a cursor leaves or passes the end of a ledger, so each of 30,000 readers that leave together would
look at all the others. Owns a heap of marks; an entry that no longer holds is corrected when it comes to the top (Apache: the
heap of ManagedCursorContainer). A heap with too many such entries is replaced by a new one, some entries at each call: one of
30,000 entries at once took 40 ms. Bound: three times as many entries as there are cursors, and a few.
"""

from collections.abc import Mapping
from heapq import heappop, heappush, heapreplace
from typing import Protocol

from wire.position import Position

_SPARE = 16
_MOVED_AT_ONCE = 8
"""Entries that a call moves: all are moved before a quarter of the cursors have left."""

Entry = tuple[Position, str]


class Marked(Protocol):
    """Part of a cursor that is needed here."""

    @property
    def mark_delete(self) -> Position: ...


class SlowestCursor:
    """The cursors of one managed ledger by their marks; `noted` for each that comes or goes back."""

    def __init__(self, by_name: Mapping[str, Marked]) -> None:
        self._by_name = by_name
        self._heap: list[Entry] = []
        """Each cursor has an entry that is not above its mark, here or in `_old`."""
        self._old: list[Entry] = []
        """The heap that is being replaced."""
        self._moved: set[str] = set()
        """Cursors whose entries were moved out of `_old`; empty while nothing is replaced."""

    def noted(self, name: str) -> None:
        """This cursor came, or went back. Moves forward need not be noted."""
        heappush(self._heap, (self._by_name[name].mark_delete, name))
        self._shrink()

    def left(self) -> None:
        """A cursor is not in the map any more. Its entry goes at once or with others, but does not stay with the last ones."""
        self._shrink()

    def _shrink(self) -> None:
        if not self._old:
            if len(self._heap) <= 2 * len(self._by_name) + _SPARE:
                return
            self._old, self._heap = self._heap, []
        for _ in range(min(_MOVED_AT_ONCE, len(self._old))):
            _, name = self._old.pop()  # the last entry of a heap: the others are a heap still
            cursor = self._by_name.get(name)
            if cursor is not None and name not in self._moved:
                self._moved.add(name)
                heappush(self._heap, (cursor.mark_delete, name))
        if not self._old:
            self._moved = set()

    def mark(self) -> Position | None:
        """Mark-delete position of the slowest cursor; None: there is no cursor."""
        self.settle(len(self._heap) + len(self._old))
        heap = self._lowest()
        return heap[0][0] if heap else None

    def name(self) -> str | None:
        """None: there is no cursor."""
        self.settle(len(self._heap) + len(self._old))
        heap = self._lowest()
        return heap[0][1] if heap else None

    def _lowest(self) -> list[Entry]:
        """The heap that has the least entry; an empty one where both are empty."""
        return self._old if self._old and (not self._heap or self._old[0] < self._heap[0]) else self._heap

    def settle(self, entries_max: int) -> bool:
        """Correct so many entries at most; whether the topmost holds now. Where very many cursors have moved this is called
        for some of them in each turn of the loop, before a caller asks."""
        for _ in range(entries_max):
            heap = self._lowest()
            if not heap or ((cursor := self._by_name.get(heap[0][1])) is not None and cursor.mark_delete == heap[0][0]):
                return True
            if cursor is None:
                heappop(heap)
            else:
                heapreplace(heap, (cursor.mark_delete, heap[0][1]))
        return not self._lowest()

    def check_invariants(self) -> None:
        """Check the invariants, for tests and simulations."""
        lowest: dict[str, Position] = {}
        for heap in (self._heap, self._old):
            for at, (position, name) in enumerate(heap):
                assert heap[(at - 1) // 2 if at else 0] <= (position, name), "the heap is in order"
                lowest[name] = min(position, lowest.get(name, position))
        for name, cursor in self._by_name.items():
            assert lowest[name] <= cursor.mark_delete, f"cursor {name} is behind all its marks"
