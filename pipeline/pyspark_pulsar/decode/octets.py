"""Numbers at many places of one buffer at a time: big-endian words and varints, by numpy.

A buffer here is an array of octets with `PADDING_BYTES` beyond its last place, so that a word can be loaded anywhere in it.
Little-endian machines only, as Arrow is. Nothing here checks a bound but that of a varint's length.
"""

from typing import TypeAlias

import numpy
from numpy.typing import NDArray

Octets: TypeAlias = NDArray[numpy.uint8]
Places: TypeAlias = NDArray[numpy.int64]
Words: TypeAlias = NDArray[numpy.uint64]
Flags: TypeAlias = NDArray[numpy.bool_]

PADDING_BYTES = 16
"""A tag and a varint behind it are loaded as words of eight bytes."""

_U = numpy.uint64
_STOPS = _U(0x8080808080808080)
_SEVENS = _U(0x7F7F7F7F7F7F7F7F)
_LONG_VARINT_BYTES_MAX = 10


def padded(data: bytes | bytearray | memoryview) -> Octets:
    """A copy of the data, with room behind it."""
    octets = numpy.zeros(len(data) + PADDING_BYTES, numpy.uint8)
    octets[: len(data)] = numpy.frombuffer(data, numpy.uint8)
    return octets


def words_at(data: Octets, places: Places) -> Words:
    """The eight bytes at each place, the first one lowest."""
    every = numpy.ndarray((len(data) - 7,), numpy.dtype("<u8"), data, strides=(1,))
    return every[places]


def sizes_at(data: Octets, places: Places) -> Places:
    """The big-endian word of four bytes at each place."""
    every = numpy.ndarray((len(data) - 3,), numpy.dtype(">u4"), data, strides=(1,))
    return every[places].astype(numpy.int64)


def varints_at(data: Octets, places: Places) -> tuple[Words, Places]:
    """The varint at each place and how many bytes it has; 0 bytes where there is none (more than ten)."""
    words = words_at(data, places)
    stops = ~words & _STOPS
    until = stops ^ (stops - _U(1))
    values = _groups_of_seven(words & until & _SEVENS)
    sizes = (numpy.bitwise_count(until) >> 3).astype(numpy.int64)
    long = numpy.flatnonzero(stops == 0)
    for row in long.tolist():  # nine bytes and more: negative numbers, which are rare
        values[row], sizes[row] = _long_varint(data, int(places[row]))
    return values, sizes


def _groups_of_seven(values: Words) -> Words:
    """Eight groups of seven bits, one in each byte, moved together."""
    values = (values & _U(0x007F007F007F007F)) | ((values & _U(0x7F007F007F007F00)) >> _U(1))
    values = (values & _U(0x00003FFF00003FFF)) | ((values & _U(0x3FFF00003FFF0000)) >> _U(2))
    return (values & _U(0x000000000FFFFFFF)) | ((values & _U(0x0FFFFFFF00000000)) >> _U(4))


def _long_varint(data: Octets, at: int) -> tuple[int, int]:
    value = 0
    for shift, octet in enumerate(data[at : at + _LONG_VARINT_BYTES_MAX].tolist()):
        value |= (octet & 127) << 7 * shift
        if octet < 128:
            return value & 0xFFFFFFFFFFFFFFFF, shift + 1
    return 0, 0
