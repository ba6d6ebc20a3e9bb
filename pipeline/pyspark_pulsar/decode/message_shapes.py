"""The shape of a protobuf message, and which others have the same: then one look at each is enough for all fields.

A shape is where the tags, the lengths and the ends of the varints are. Messages of a producer mostly have one of few: a mask
over their bytes, eight at a time, tells which do, and what a field holds is at the same distance from the start of each.
"""

from dataclasses import dataclass

import numpy

from .octets import Octets, Places, words_at

VARINT, EIGHT_BYTES, SPAN, FOUR_BYTES = 0, 1, 2, 5
_BYTES_MAX = 128
"""Bytes of the longest message with a shape: longer ones are read a field at a time."""
_FIXED = {EIGHT_BYTES: 8, FOUR_BYTES: 4}


@dataclass(frozen=True, slots=True)
class Place:
    """A field: its value is the bytes from `start` to before `end`, counted from the start of the message."""

    number: int
    kind: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Shape:
    """`expected` is what stands under `mask`, in words of eight bytes; the fields in the order in which they come."""

    size: int
    fields: tuple[Place, ...]
    words: tuple[tuple[int, numpy.uint64, numpy.uint64], ...]

    def rows_like_it(self, data: Octets, starts: Places, ends: Places) -> Places:
        """Indexes of the messages `data[start:end]` that have this shape."""
        rows = numpy.flatnonzero(ends - starts == self.size)
        fits = numpy.ones(len(rows), numpy.bool_)
        for at, mask, expected in self.words:
            fits &= (words_at(data, starts[rows] + at) & mask) == expected
        return rows if bool(fits.all()) else rows[fits]


def shape_of(message: bytes) -> Shape | None:
    """None for one that is long, or damaged."""
    if not 0 < len(message) <= _BYTES_MAX:
        return None
    mask, fields, at = bytearray(-(-len(message) // 8) * 8), [], 0
    while at < len(message):
        tag, start = _varint(message, at)
        mask[at:start] = b"\xff" * (start - at)
        kind = tag & 7
        if not tag >> 3:
            return None
        end = start + _FIXED.get(kind, 0)
        if kind == SPAN:
            length, body = _varint(message, start)
            mask[start:body] = b"\xff" * (body - start)
            start, end = body, body + length
        elif kind == VARINT:
            _, end = _varint(message, start)
            mask[start:end] = b"\x80" * (end - start)
        if end <= at or end > len(message) or (kind not in (VARINT, SPAN) and kind not in _FIXED):
            return None
        fields.append(Place(tag >> 3, kind, start, end))
        at = end
    return Shape(len(message), tuple(fields), _words(message, bytes(mask)))


def _words(message: bytes, mask: bytes) -> tuple[tuple[int, numpy.uint64, numpy.uint64], ...]:
    masks = numpy.frombuffer(mask, "<u8")
    expected = numpy.frombuffer(message.ljust(len(mask), b"\0"), "<u8") & masks
    return tuple((8 * row, masks[row], expected[row]) for row in range(len(masks)) if masks[row])


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Value of the varint and its end; the end is beyond the message where there is none."""
    value = shift = 0
    for end in range(at, min(at + 9, len(message))):
        value |= (message[end] & 127) << shift
        if message[end] < 128:
            return value, end + 1
        shift += 7
    return value, len(message) + 1
