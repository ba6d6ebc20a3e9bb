"""SlowestCursor: where the cursor is that is behind all others, without a look at all of them. Pure.

Trimming asks for it whenever a cursor leaves or passes the end of a ledger, so of 30,000 readers that leave together each would
look at all the others. Owns a heap of marks; an entry that no longer holds is corrected when it comes to the top (Apache: the
heap of ManagedCursorContainer). Bound: twice as many entries as there are cursors, and a few.
"""

from collections.abc import Mapping
from heapq import heapify, heappop, heappush, heapreplace
from typing import Protocol

from wire.position import Position

_SPARE = 16


class Marked(Protocol):
    """As much of a cursor as it takes."""

    @property
    def mark_delete(self) -> Position: ...


class SlowestCursor:
    """The cursors of one managed ledger by their marks; it is told of those that come and of those that go back."""

    def __init__(self, by_name: Mapping[str, Marked]) -> None:
        self._by_name = by_name
        self._heap: list[tuple[Position, str]] = []

    def noted(self, name: str) -> None:
        """This cursor came, or went back. What goes forward, or leaves, need not be told."""
        heappush(self._heap, (self._by_name[name].mark_delete, name))
        if len(self._heap) > 2 * len(self._by_name) + _SPARE:
            self._heap = [(cursor.mark_delete, name) for name, cursor in self._by_name.items()]
            heapify(self._heap)

    def mark(self) -> Position | None:
        """Its mark-delete position; None: there is no cursor."""
        heap = self._heap
        while heap:
            mark, name = heap[0]
            cursor = self._by_name.get(name)
            if cursor is None:
                heappop(heap)
            elif cursor.mark_delete != mark:
                heapreplace(heap, (cursor.mark_delete, name))
            else:
                return mark
        return None
