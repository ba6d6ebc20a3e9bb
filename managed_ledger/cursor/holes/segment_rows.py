"""MarkerRows: the rows of a cursor's next marker, packed as it will have them. Pure.

Kept between saves, so that a save packs what it writes and copies the rest as bytes, whatever the number of segments.
"""

import struct
from bisect import bisect_left
from itertools import pairwise

from wire.position import Position

from ..state import StoredSegment

ROW = struct.Struct(">qqqqQII")
"""Start (ledger, entry), entry of the segment, entry of its addition or -1, acknowledged entries, ranges, weight."""


class MarkerRows:
    """Ascending by start. `packed`: all of them, read only."""

    __slots__ = ("_starts", "packed")

    def __init__(self) -> None:
        self._starts: list[Position] = []
        self.packed = bytearray()

    def __len__(self) -> int:
        return len(self._starts)

    def put(self, row: StoredSegment) -> None:
        """Instead of the one with the same start, if there is one."""
        packed = ROW.pack(*row.start, row.entry_id, row.addition_id, row.count, row.ranges, row.weight)
        place = bisect_left(self._starts, row.start)
        at = place * ROW.size
        if self._has(row.start, place):
            self.packed[at : at + ROW.size] = packed
        else:
            self._starts.insert(place, row.start)
            self.packed[at:at] = packed

    def discard(self, start: Position) -> None:
        place = bisect_left(self._starts, start)
        if self._has(start, place):
            del self._starts[place]
            del self.packed[place * ROW.size : (place + 1) * ROW.size]

    def copy(self) -> "MarkerRows":
        twin = MarkerRows()
        twin._starts, twin.packed = self._starts.copy(), self.packed.copy()
        return twin

    def check_invariants(self) -> None:
        """Check the invariants, for tests and simulations."""
        assert len(self.packed) == len(self._starts) * ROW.size
        assert all(one < other for one, other in pairwise(self._starts))

    def _has(self, start: Position, place: int) -> bool:
        return place < len(self._starts) and self._starts[place] == start
