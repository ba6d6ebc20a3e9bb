"""One connection to a bookie, blocking: reads of many entries are asked for at once, and their answers come as one block.

Version 2 of the bookie protocol: a request `u32 20 | u32 header | i64 ledger | i64 entry`, an answer
`u32 size | u32 header | i32 code | i64 ledger | i64 entry | the stored entry` (BookieProtoEncoding). Reads only, never fencing.
"""

import socket
from dataclasses import dataclass

import numpy

from ..decode.octets import Flags, Octets, Places, padded, sizes_at, words_at
from .connection import Lost, received

_READ = 2 << 24 | 2 << 16
_HEAD_BYTES = 28
"""Of an answer, with its size."""
_FRAME_BYTES_MAX = 64 << 20
_REQUEST = numpy.dtype([("size", ">u4"), ("header", ">u4"), ("ledger", ">i8"), ("entry", ">i8")])


_CONNECT_SECONDS_MAX = 5.0
"""A bookie that is reached answers at once; one that is not is not waited for: the broker has its entries too."""


class TooMuch(Exception):
    """Answers that would not fit; `entry_bytes`: how many those that came have, on average."""

    def __init__(self, entry_bytes: int) -> None:
        super().__init__(f"entries of {entry_bytes} bytes")
        self.entry_bytes = entry_bytes


@dataclass(frozen=True, slots=True)
class Answers:
    """Stored entries `data[starts[i]:ends[i]]`, in the order of their ids. `is_there`: the code says that the bookie has it."""

    data: Octets
    starts: Places
    ends: Places
    entry_ids: Places
    is_there: Flags


class BookieConnection:
    """From the socket on; `close` at the end. Lost for whatever goes wrong."""

    def __init__(self, address: str, timeout_seconds: float) -> None:
        self.address = address
        host, _, port = address.rpartition(":")
        self._buffer = bytearray()
        self._early: dict[int, bytes] = {}
        try:
            self._socket = socket.create_connection((host, int(port)), min(timeout_seconds, _CONNECT_SECONDS_MAX))
            self._socket.settimeout(timeout_seconds)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            raise Lost(f"bookie {address}: {error}") from None

    def ask(self, ledger_id: int, entry_ids: Places) -> None:
        """Reads of these entries. Their answers have to be taken before long: a bookie does not keep them for ever."""
        requests = numpy.zeros(len(entry_ids), _REQUEST)
        requests["size"], requests["header"] = _REQUEST.itemsize - 4, _READ
        requests["ledger"], requests["entry"] = ledger_id, entry_ids
        try:
            self._socket.sendall(requests.tobytes())
        except OSError as error:
            raise Lost(f"bookie {self.address}: {error}") from None

    def answers(self, entry_ids: Places, bytes_max: int) -> Answers:
        """Of these entries, which were asked for. Bookies answer in any order; what comes of others is kept for their turn.

        TooMuch when several have more than `bytes_max` together: the connection is of no use then.
        """
        wanted = set(entry_ids.tolist())
        early = [self._early.pop(each) for each in wanted & self._early.keys()]
        bounds: list[tuple[int, int]] = []
        at = 0
        while len(bounds) + len(early) < len(wanted):
            end = self._frame_end(at)
            if end is None:
                self._check_held(len(wanted), len(bounds) + len(early), bytes_max)
                self._buffer += received(self._socket, f"bookie {self.address}")
                continue
            entry_id = int.from_bytes(self._buffer[at + 20 : at + 28])
            if entry_id in wanted:
                bounds.append((at, end))
            else:
                self._early[entry_id] = bytes(self._buffer[at:end])
            at = end
        for frame in early:
            self._buffer[at:at] = frame
            bounds.append((at, at + len(frame)))
            at += len(frame)
        data = padded(memoryview(self._buffer)[:at])
        del self._buffer[:at]
        return _answers(data, bounds)

    def _check_held(self, wanted: int, came: int, bytes_max: int) -> None:
        held = len(self._buffer) + sum(len(each) for each in self._early.values())
        if wanted > 1 and held > bytes_max:
            raise TooMuch(held // max(1, came + len(self._early)))

    def _frame_end(self, at: int) -> int | None:
        if len(self._buffer) < at + _HEAD_BYTES:
            return None
        size = int.from_bytes(self._buffer[at : at + 4])
        if not _HEAD_BYTES - 4 <= size <= _FRAME_BYTES_MAX:
            raise Lost(f"bookie {self.address} sends a frame of {size} bytes")
        return at + 4 + size if at + 4 + size <= len(self._buffer) else None

    def close(self) -> None:
        self._socket.close()


def _answers(data: Octets, bounds: list[tuple[int, int]]) -> Answers:
    starts, ends = numpy.array(bounds, numpy.int64).T
    entry_ids = words_at(data, starts + 20).byteswap().view(numpy.int64)
    order = numpy.argsort(entry_ids, kind="stable")
    is_there = sizes_at(data, starts + 8) == 0
    return Answers(data, (starts + _HEAD_BYTES)[order], ends[order], entry_ids[order], is_there[order])
