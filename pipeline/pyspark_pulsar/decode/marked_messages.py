"""Possible starts of messages of changing lengths, seen by their octets: three zero bytes, a length, a tag. Pure.

A message of a batch begins with the size of its metadata, four bytes of which the first three are zero up to 255, and the tag
of the metadata's first field. Payload may look the same: a place counts when the message before it ends there.
"""

from dataclasses import dataclass

import numpy

from .octets import Flags, Octets, Places

_NOWHERE = -2
_SIZE_BYTES = 4
_METADATA_BYTES_MIN = 2
_FIRST_TAGS = (0x0A, 0x12, 0x18)
"""Tags of properties, key and payload size, one of which is first: fields come in the order of their numbers."""


def marks(data: Octets, start: int, end: int) -> Places:
    """Every place in `data[start:end]` where a message may begin, in order."""
    is_zero = data[start:end] == 0
    candidates = numpy.flatnonzero(is_zero[:-2] & is_zero[1:-1] & is_zero[2:]) + start
    return candidates[(data[candidates + 3] >= _METADATA_BYTES_MIN) & _IS_FIRST_TAG[data[candidates + _SIZE_BYTES]]]


_IS_FIRST_TAG: Flags = numpy.zeros(256, numpy.bool_)
_IS_FIRST_TAG[list(_FIRST_TAGS)] = True


@dataclass(frozen=True, slots=True)
class Chains:
    """Candidate places in order: the end of the message at each (-1: none), and the breaks between them."""

    places: Places
    ends: Places
    breaks: Places
    """Rows at which the next place is not where the message ends, in order; the last row is one."""

    def follow(self, at: int, count: int) -> tuple[Places, int]:
        """Rows of up to `count` messages, one behind the other from `at` on, and where the last of them ends."""
        parts: list[Places] = []
        while count > 0:
            row = int(numpy.searchsorted(self.places, at))
            if row == len(self.places) or self.places[row] != at or self.ends[row] < 0:
                break
            last = min(int(self.breaks[numpy.searchsorted(self.breaks, row)]), row + count - 1)
            last -= int(self.ends[last] < 0)
            parts.append(numpy.arange(row, last + 1))
            at, count = int(self.ends[last]), count - len(parts[-1])
        return numpy.concatenate(parts) if parts else numpy.zeros(0, numpy.int64), at


def chains(places: Places, ends: Places) -> Chains:
    return Chains(places, ends, numpy.flatnonzero(ends != numpy.append(places[1:], _NOWHERE)))
