"""Memory that is used again when no object holds any of it: fresh memory costs as much as a copy into it."""

import sys

import numpy

from .octets import Octets

_ROOM_BYTES_MIN = 1 << 18
"""Less is had from what the process has already."""
_HELD_BY_NOBODY_ELSE = 3
"""References to a room: the list's, the loop's and the call's that counts. Another thread that looks at it has one more."""


class Rooms:
    """Pool of up to `kept_max` arrays."""

    def __init__(self, kept_max: int) -> None:
        self._kept_max = kept_max
        self._rooms: list[Octets] = []

    def of(self, size: int) -> Octets:
        """An array of that size, with anything in it."""
        if size < _ROOM_BYTES_MIN:
            return numpy.empty(size, numpy.uint8)
        for room in self._rooms:
            if size <= len(room) <= 2 * size and sys.getrefcount(room) == _HELD_BY_NOBODY_ELSE:
                return room[:size]
        fresh = numpy.empty(size + size // 8, numpy.uint8)  # the next may be a little larger
        self._rooms = [*self._rooms[-self._kept_max + 1 :], fresh]
        return fresh[:size]
