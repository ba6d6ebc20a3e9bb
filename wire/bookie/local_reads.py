"""Local reads: places of stored entries in files, for readers on the bookie's machine (docs/adr/0030-reads-on-one-machine.md).

A message each way; little-endian, so that arrays are taken as they are. A request is `token | i64 ledger`, then first entry and
the one after the last of each range. An answer is `u32 segments`, for each of them `u32 file | u32 entries | u64 place | i64
first entry`, and then, for each, the offsets of its entries from its place and of the end of the last one (u32).
Files are numbered in the order in which their descriptors came over the connection.
"""

import struct
import sys
from array import array
from collections.abc import Sequence

from wire.record import record

TOKEN_BYTES = 16
REQUEST_BYTES_MAX = 16 << 10
ANSWER_BYTES_MAX = 128 << 10
"""Bound of one message: a socket takes so many bytes in one call, however slowly they are read."""
_HEAD = struct.Struct("<q")
_RANGE_BYTES = 16
_COUNT = struct.Struct("<I")
ANSWER_HEAD_BYTES = _COUNT.size
"""Bytes before the segments."""
_SEGMENT = struct.Struct("<IIQq")


@record(frozen=True, slots=True)
class Segment:
    """Consecutive entries in one file."""

    file: int
    place: int
    first_entry_id: int
    offsets: "array[int]"
    """Begin of each entry and end of the last one, counted from `place`."""

    @property
    def size_bytes(self) -> int:
        """Size in an answer."""
        return _SEGMENT.size + 4 * len(self.offsets)


def decode_request(message: bytes, token: bytes) -> tuple[int, list[tuple[int, int]]] | None:
    """Ledger and ranges [first, end). None: the message lacks the token, or is no request."""
    ranges = len(message) - TOKEN_BYTES - _HEAD.size
    if message[:TOKEN_BYTES] != token or ranges < 0 or ranges % _RANGE_BYTES:
        return None
    (ledger_id,) = _HEAD.unpack_from(message, TOKEN_BYTES)
    bounds = array("q")
    bounds.frombytes(message[TOKEN_BYTES + _HEAD.size :])
    if sys.byteorder == "big":
        bounds.byteswap()
    return ledger_id, list(zip(bounds[::2], bounds[1::2], strict=True))


def entries_within(size_bytes: int) -> int:
    """Number of entries of a segment of that size; less than one: it has no room for any."""
    return (size_bytes - _SEGMENT.size) // 4 - 1


def encode_answer(segments: Sequence[Segment]) -> bytes:
    """Answer of at most ANSWER_BYTES_MAX: a caller with more leaves the last ones out."""
    heads = [_SEGMENT.pack(each.file, len(each.offsets) - 1, each.place, each.first_entry_id) for each in segments]
    offsets = array("I")
    for each in segments:
        offsets += each.offsets
    if sys.byteorder == "big":
        offsets.byteswap()
    return b"".join((_COUNT.pack(len(segments)), *heads, offsets.tobytes()))
