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
    first = data[places]
    if bool((first < 128).all()):  # tags, and lengths of what is short
        return first.astype(numpy.uint64), numpy.ones(len(places), numpy.int64)
    words = words_at(data, places)
    stops = ~words & _STOPS
    until = stops ^ (stops - _U(1))
    values = _groups_of_seven(words & until & _SEVENS)
    sizes = (numpy.bitwise_count(until) >> 3).astype(numpy.int64)
    long = numpy.flatnonzero(stops == 0)
    if len(long):  # nine bytes and more: negative numbers, and the large ones of Avro
        values[long], sizes[long] = _long_varints(data, places[long], values[long])
    return values, sizes


def _groups_of_seven(values: Words) -> Words:
    """Eight groups of seven bits, one in each byte, moved together."""
    values = (values & _U(0x007F007F007F007F)) | ((values & _U(0x7F007F007F007F00)) >> _U(1))
    values = (values & _U(0x00003FFF00003FFF)) | ((values & _U(0x3FFF00003FFF0000)) >> _U(2))
    return (values & _U(0x000000000FFFFFFF)) | ((values & _U(0x0FFFFFFF00000000)) >> _U(4))


def _long_varints(data: Octets, places: Places, low: Words) -> tuple[Words, Places]:
    """Values with the bits of the ninth and the tenth byte added to the 56 before them."""
    ninth, tenth = data[places + 8].astype(numpy.uint64), data[places + 9].astype(numpy.uint64)
    is_tenth = ninth > 127
    values = low | ((ninth & _U(127)) << _U(56)) | numpy.where(is_tenth, (tenth & _U(1)) << _U(63), _U(0))
    is_none = is_tenth & (tenth > 127)
    return numpy.where(is_none, _U(0), values), numpy.where(is_none, 0, numpy.where(is_tenth, 10, 9))
