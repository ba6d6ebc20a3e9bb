"""Places where readers of one managed ledger go on, known by their reads alone: each begins where another one ended. Pure.

Tells a catch-up (a read that goes on from a known place) and the end of the entries that all have read (the slowest known
place). A reader that jumps away, but for a step back into its last run, leaves its place behind; such a place stops to matter
when nothing is cached there any more.
"""

from bisect import bisect_left, bisect_right, insort

from wire.position import Position

PLACES_MAX = 256
"""Places that are remembered. At the bound the place farthest behind is forgotten."""


class _Place:
    """Number of readers that go on there, and the begin of the read that brought the last of them."""

    __slots__ = ("began", "readers")

    def __init__(self, began: Position) -> None:
        self.began = began
        self.readers = 0


class ReadingPlaces:
    """Number of readers that go on at each place."""

    __slots__ = ("_order", "_places")

    def __init__(self) -> None:
        self._places: dict[Position, _Place] = {}
        self._order: list[Position] = []
        """The same places, ascending: there are few."""

    def __contains__(self, position: Position) -> bool:
        return position in self._places

    def moved(self, old: Position, new: Position) -> bool:
        """A read went from `old` to `new`; whether no reader is left at `old`."""
        places = self._places
        is_left = self._leave(old)
        place = places.get(new)
        if place is None:
            place = places[new] = _Place(old)
            insort(self._order, new)
        place.began = old
        place.readers += 1
        if len(places) > PLACES_MAX:
            del places[self._order.pop(0)]
        return is_left

    def _leave(self, old: Position) -> bool:
        """A reader that comes back into its last read, for entries that it could not use, had been noted at the end of it."""
        places = self._places
        at = old
        place = places.get(old)
        if place is None:
            index = bisect_right(self._order, old)
            if index == len(self._order):
                return True
            at = self._order[index]
            place = places[at]
            if place.began >= old:
                return True
        place.readers -= 1
        if place.readers == 0:
            del places[at]
            del self._order[bisect_left(self._order, at)]
        return place.readers == 0 or at != old

    def slowest(self, minimum: Position) -> Position | None:
        """The first place at or after `minimum`."""
        index = bisect_left(self._order, minimum)
        return self._order[index] if index < len(self._order) else None

    def check_invariants(self) -> None:
        """Check the invariants, for tests and simulations."""
        assert self._order == sorted(self._places)
        assert all(place.readers > 0 for place in self._places.values())
        assert len(self._order) <= PLACES_MAX
