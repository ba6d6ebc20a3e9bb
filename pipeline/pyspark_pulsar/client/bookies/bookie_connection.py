"""One connection to a bookie, blocking: reads of many entries are asked for at once, and their answers come as one block.

Version 2 of the bookie protocol: a request `u32 20 | u32 header | i64 ledger | i64 entry`, an answer
`u32 size | u32 header | i32 code | i64 ledger | i64 entry | the stored entry` (BookieProtoEncoding). Reads only, never fencing.
"""

import socket

import numpy

from ...decode.octets import PADDING_BYTES, Octets, Places, sizes_at, words_at
from ...decode.rooms import Rooms
from ..connection import Lost, received
from .bookie_answers import Answers, TooMuch

_READ = 2 << 24 | 2 << 16
_HEAD_BYTES = 28
"""Bytes of an answer's head, its size field included."""
_FRAME_BYTES_MAX = 64 << 20
_SPARE_BYTES = 64 << 10
"""Bytes of room beyond those expected."""
_ROOMS = Rooms(3)
_REQUEST = numpy.dtype([("size", ">u4"), ("header", ">u4"), ("ledger", ">i8"), ("entry", ">i8")])
_CONNECT_SECONDS_MAX = 5.0
"""A bookie that is reached answers at once; one that is not is not waited for: the broker has its entries too."""


class BookieConnection:
    """Connection that is open from construction to `close`. Every failure raises Lost."""

    def __init__(self, address: str, timeout_seconds: float) -> None:
        self.address = address
        host, _, port = address.rpartition(":")
        try:
            self._socket = socket.create_connection((host, int(port)), min(timeout_seconds, _CONNECT_SECONDS_MAX))
            self._socket.settimeout(timeout_seconds)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            raise Lost(f"bookie {address}: {error}") from None

    def question(self, frame: bytes) -> bytes:
        """The body of the one frame that answers this one, while no entries are asked for."""
        try:
            self._socket.sendall(frame)
        except OSError as error:
            raise Lost(f"bookie {self.address}: {error}") from None
        return self._exactly(int.from_bytes(self._exactly(4)))

    def _exactly(self, size: int) -> bytes:
        if size > _SPARE_BYTES:
            raise Lost(f"bookie {self.address} sends a frame of {size} bytes")
        found, filled = bytearray(size), 0
        while filled < size:
            filled += received(self._socket, memoryview(found)[filled:], f"bookie {self.address}")
        return bytes(found)

    def ask(self, ledger_id: int, entry_ids: Places) -> None:
        """Reads of these entries, whose answers are to be taken before others are asked for."""
        requests = numpy.zeros(len(entry_ids), _REQUEST)
        requests["size"], requests["header"] = _REQUEST.itemsize - 4, _READ
        requests["ledger"], requests["entry"] = ledger_id, entry_ids
        try:
            self._socket.sendall(requests.tobytes())
        except OSError as error:
            raise Lost(f"bookie {self.address}: {error}") from None

    def answers(self, entry_ids: Places, bytes_expected: int, bytes_max: int) -> Answers:
        """Answers to the entries asked for, in the room into which they are received. Bookies answer in any order.

        TooMuch when several have more than `bytes_max` together: the connection is of no use then.
        """
        room = _Room(_ROOMS.of(bytes_expected + _HEAD_BYTES * len(entry_ids) + _SPARE_BYTES + PADDING_BYTES))
        starts: list[int] = []
        at = 0
        while len(starts) < len(entry_ids):
            end = self._frame_end(room, at)
            if end <= room.filled:
                starts.append(at)
                at = end
                continue
            self._check_held(room.filled, len(entry_ids), len(starts), bytes_max)
            room.receive(self._socket, f"bookie {self.address}", end)
        found = _answers(room.octets_with_padding(), numpy.array(starts), at)
        if at != room.filled or not numpy.array_equal(found.entry_ids, entry_ids):
            raise Lost(f"bookie {self.address} answers what it was not asked")
        return found

    def _check_held(self, held: int, wanted: int, came: int, bytes_max: int) -> None:
        if wanted > 1 and held > bytes_max:
            raise TooMuch(held // max(1, came))

    def _frame_end(self, room: "_Room", at: int) -> int:
        """Or of as much as has to be there for its end to be known."""
        if room.filled < at + _HEAD_BYTES:
            return at + _HEAD_BYTES
        size = room.size_at(at)
        if not _HEAD_BYTES - 4 <= size <= _FRAME_BYTES_MAX:
            raise Lost(f"bookie {self.address} sends a frame of {size} bytes")
        return at + 4 + size

    def close(self) -> None:
        self._socket.close()


class _Room:
    """Bytes received so far, in one array: nothing is copied unless more comes than was expected."""

    def __init__(self, octets: Octets) -> None:
        self._octets, self._view = octets, octets.data
        self.filled = 0

    def size_at(self, at: int) -> int:
        return int.from_bytes(self._view[at : at + 4])

    def receive(self, connected: socket.socket, peer: str, end: int) -> None:
        """Receives at least one byte; there is room for everything that ends at `end`. Lost."""
        limit = len(self._octets) - PADDING_BYTES
        if limit < end or limit == self.filled:
            limit = self._grow(max(end, limit + limit // 2))
        self.filled += received(connected, self._view[self.filled : limit], peer)

    def _grow(self, limit: int) -> int:
        octets = numpy.empty(limit + PADDING_BYTES, numpy.uint8)
        octets[: self.filled] = self._octets[: self.filled]
        self._octets, self._view = octets, octets.data
        return limit

    def octets_with_padding(self) -> Octets:
        self._octets[self.filled : self.filled + PADDING_BYTES] = 0
        return self._octets[: self.filled + PADDING_BYTES]


def _answers(data: Octets, starts: Places, end: int) -> Answers:
    """Answers of consecutive frames, the last of which ends at `end`."""
    ends = numpy.append(starts[1:], end)
    entry_ids = words_at(data, starts + 20).byteswap().view(numpy.int64)
    order = numpy.argsort(entry_ids, kind="stable")
    is_there = sizes_at(data, starts + 8) == 0
    return Answers(data, (starts + _HEAD_BYTES)[order], ends[order], entry_ids[order], is_there[order])
