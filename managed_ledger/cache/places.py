"""Where the readers of one managed ledger go on: known by their reads alone, as each read begins where another one ended. Pure.

Says who catches up (a read that goes on from a known place) and what everybody has read (the slowest known place). A reader
that jumps away leaves its place behind; such a place stops to matter when nothing is cached there any more.
"""

from typing import Any

from sortedcontainers import SortedDict

from wire.position import Position

PLACES_MAX = 256
"""At the bound the place farthest behind is forgotten."""


class ReadingPlaces:
    """How many readers go on at each place."""

    __slots__ = ("_readers",)

    def __init__(self) -> None:
        self._readers: Any = SortedDict()

    def __contains__(self, position: Position) -> bool:
        return position in self._readers

    def moved(self, old: Position, new: Position) -> bool:
        """A read went from `old` to `new`; whether nobody is left at `old`."""
        readers = self._readers
        left: int = readers.get(old, 0) - 1
        if left > 0:
            readers[old] = left
        elif left == 0:
            del readers[old]
        readers[new] = readers.get(new, 0) + 1
        if len(readers) > PLACES_MAX:
            readers.popitem(0)
        return left <= 0

    def slowest(self, minimum: Position) -> Position | None:
        """The first place at or after `minimum`."""
        place = self._readers.bisect_left(minimum)
        if place == len(self._readers):
            return None
        found: Position = self._readers.peekitem(place)[0]
        return found
