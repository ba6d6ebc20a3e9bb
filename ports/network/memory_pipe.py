"""Pipe: two connected transports inside one process, for a protocol that would otherwise connect to its own server.

Each end reads the other's writes in the next turn of the loop, with asyncio's flow control in both directions. Bounds: one
turn hands over at most TURN_BYTES; a writer is paused at its high-water mark, as on a socket.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

HIGH_WATER_BYTES = 64 * 1024
TURN_BYTES = 256 * 1024
Bytes = bytes | bytearray | memoryview


class PipeEnd(asyncio.Transport):
    """One end. Made by `connect`."""

    def __init__(self, extra: dict[str, Any]) -> None:
        super().__init__(extra)
        self._loop = asyncio.get_running_loop()
        self._peer: PipeEnd
        self._protocol: Any = None
        self._unread: deque[memoryview] = deque()
        self._unread_bytes = 0
        self._high, self._low = HIGH_WATER_BYTES, HIGH_WATER_BYTES // 4
        self._is_reading, self._is_turn_asked = True, False
        self._is_blocked = self._is_closing = self._is_lost = self._has_peer_ended = False

    def begin(self, peer: "PipeEnd", protocol: asyncio.BaseProtocol) -> None:
        self._peer, self._protocol = peer, protocol
        protocol.connection_made(self)

    # ---- Writing

    def write(self, data: Bytes) -> None:
        if not data or self._is_closing or self._peer._is_lost:
            return
        self._peer._arrived(memoryview(bytes(data)))
        if self._peer._unread_bytes > self._high and not self._is_blocked:
            self._is_blocked = True
            self._protocol.pause_writing()

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = HIGH_WATER_BYTES if high is None else high
        self._low = self._high // 4 if low is None else low

    def get_write_buffer_size(self) -> int:
        return self._peer._unread_bytes

    def _drained(self) -> None:
        if self._is_blocked and self._peer._unread_bytes <= self._low:
            self._is_blocked = False
            if not self._is_lost:
                self._protocol.resume_writing()

    # ---- Reading

    def is_reading(self) -> bool:
        return self._is_reading and not self._is_closing

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True
        self._ask_turn()

    def _arrived(self, data: memoryview) -> None:
        self._unread.append(data)
        self._unread_bytes += len(data)
        self._ask_turn()

    def _ask_turn(self) -> None:
        if not self._is_turn_asked and not self._is_lost and (self._unread or self._has_peer_ended):
            self._is_turn_asked = True
            self._loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        self._is_turn_asked = False
        left = TURN_BYTES
        while self._unread and left > 0 and self.is_reading() and not self._is_lost:
            left -= self._hand_part()
        self._peer._drained()
        if self._is_closing:
            self._unread.clear()
            self._unread_bytes = 0
        if self._unread and self.is_reading():
            self._ask_turn()
        elif self._has_peer_ended and not self._unread:
            self._lose()
            self._peer._lose()

    def _hand_part(self) -> int:
        """Number of bytes that the protocol took."""
        part = self._unread.popleft()
        if isinstance(self._protocol, asyncio.BufferedProtocol):
            room = memoryview(self._protocol.get_buffer(len(part)))
            taken, rest = part[: len(room)], part[len(room) :]
            if rest:
                self._unread.appendleft(rest)
            self._unread_bytes -= len(taken)
            room[: len(taken)] = taken
            self._protocol.buffer_updated(len(taken))
            return len(taken)
        self._unread_bytes -= len(part)
        self._protocol.data_received(bytes(part))
        return len(part)

    # ---- Ends

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        """The other end still gets the written bytes; this one reads no more."""
        if not self._is_closing:
            self._is_closing = True
            self._peer._has_peer_ended = True
            self._peer._ask_turn()
            self._ask_turn()

    def abort(self) -> None:
        self._is_closing = True
        for each in (self, self._peer):
            each._unread.clear()
            each._unread_bytes = 0
        self._loop.call_soon(self._lose)
        self._loop.call_soon(self._peer._lose)

    def _lose(self) -> None:
        if not self._is_lost:
            self._is_lost = self._is_closing = True
            self._protocol.connection_lost(None)


def connect(
    make_server: Callable[[], asyncio.BaseProtocol], make_client: Callable[[], asyncio.BaseProtocol], extra: dict[str, Any]
) -> PipeEnd:
    """Connects both protocols, and returns the client's end. `extra`: facts of the client that the server's end tells, such as
    `peername`."""
    server, client = PipeEnd(extra), PipeEnd({})
    server.begin(client, make_server())
    client.begin(server, make_client())
    return client
