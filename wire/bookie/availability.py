"""Availability: entries of a ledger that a bookie has, as it tells its clients (AvailabilityOfEntriesOfLedger).

64 bytes of header (version, number of groups, zeros), then groups of 24 bytes: the first and the last start of sequences that
have the same size and distance, the size, the distance. So a striped ledger is one group, whatever its length.
"""

import struct
from collections.abc import Iterable

VERSION = 0
HEADER_BYTES = 64
SIZE_MAX = (1 << 31) - 1
"""Largest sequence size and distance."""

_HEADER = struct.Struct(">ii")
_GROUP = struct.Struct(">qqii")  # first start, last start, size, distance


def encode_availability(ranges: Iterable[tuple[int, int]]) -> bytes:
    """Bytes for (first, last) entry ids, ascending and apart from one another."""
    groups: list[tuple[int, int, int, int]] = []
    for first, last in _short(ranges):
        size = last - first + 1
        if groups:
            start, end, group_size, distance = groups[-1]
            step = first - end
            if group_size == size and step <= SIZE_MAX and distance in (0, step):
                groups[-1] = (start, first, size, step)
                continue
        groups.append((first, first, size, 0))
    head = _HEADER.pack(VERSION, len(groups)).ljust(HEADER_BYTES, b"\0")
    return head + b"".join(_GROUP.pack(*group) for group in groups)


def _short(ranges: Iterable[tuple[int, int]]) -> Iterable[tuple[int, int]]:
    """No sequence longer than its size can say."""
    for first, last in ranges:
        for start in range(first, last + 1, SIZE_MAX):
            yield start, min(last, start + SIZE_MAX - 1)


def decode_availability(data: bytes) -> list[tuple[int, int]]:
    """The sequences that `encode_availability` was given, or Apache's bookie."""
    _, count = _HEADER.unpack_from(data)
    sequences = []
    for index in range(count):
        start, end, size, distance = _GROUP.unpack_from(data, HEADER_BYTES + index * _GROUP.size)
        sequences += [(first, first + size - 1) for first in range(start, end + 1, distance or 1)]
    return sequences
