"""SimTransport: one end of a simulated TCP connection, with asyncio's transport semantics as uvloop has them.

A stream never loses, repeats or reorders bytes; it may cut them anywhere, be slow, or end. Written bytes pass
`_outgoing` (this process; lost when it dies), `_flight` (the sender's kernel and the wire), `_unread` (the receiver's kernel).
The last two share a window: a receiver that does not read stops the sender, whose protocol is then told `pause_writing`.
As in reality: data for an end that is gone is answered with a reset, a reader that is paused does not notice the peer's end,
and a buffer handed to `write` must not change before it has left (uvloop does not copy): a change fails the run.
"""

import asyncio
import contextvars
import enum
import random
from collections import deque
from collections.abc import Iterable
from typing import Any, Protocol

from simulation.world.loop import OWNER, Owner, SimLoop, SimulationFailure

HIGH_WATER_BYTES = 64 * 1024
GET_BUFFER_HINT_BYTES = 64 * 1024
Bytes = bytes | bytearray | memoryview


class Mark(enum.Enum):
    """Marks that travel on a stream beside data."""

    FIN = "fin"
    RST = "rst"


class Wire(Protocol):
    """Network, as a transport uses it."""

    rng: random.Random

    def delay(self, source: str, target: str) -> float: ...
    def hold(self, sender: "SimTransport") -> bool:
        """Whether nothing passes now; then `sender.resume_flight` is called when something does again."""

    def wait_for_power(self, end: "SimTransport") -> bool:
        """Whether its host is off; then `end.refuse` is called when it is on."""

    def forget(self, transport: "SimTransport") -> None: ...


class SimSocket:
    """Socket, as protocols use it: names, and options that do nothing."""

    def __init__(self, name: tuple[str, int], peer: tuple[str, int] | None) -> None:
        self._name, self._peer = name, peer

    def getsockname(self) -> tuple[str, int]:
        return self._name

    def getpeername(self) -> tuple[str, int] | None:
        return self._peer

    def setsockopt(self, *options: Any) -> None:
        """TCP_NODELAY and its like mean nothing here."""


class SimTransport(asyncio.Transport):
    """One end. `name` and `peer_name` are (host, port)."""

    def __init__(
        self,
        loop: SimLoop,
        wire: Wire,
        name: tuple[str, int],
        peer_name: tuple[str, int],
        context: contextvars.Context,
        window_bytes: int,
    ) -> None:
        super().__init__({"sockname": name, "peername": peer_name, "socket": SimSocket(name, peer_name)})
        self.name, self.peer_name = name, peer_name
        self.peer: SimTransport
        self.owner: Owner | None = context.get(OWNER)
        self._loop, self._wire, self._context, self._window_bytes = loop, wire, context, window_bytes
        self._protocol: Any = None
        self._outgoing: deque[tuple[memoryview, bytes]] = deque()
        self._outgoing_bytes = self._head_sent_bytes = 0
        self._flight: deque[tuple[float, bytes | Mark]] = deque()
        self._flight_bytes = 0
        self._last_arrival = 0.0
        self._unread = bytearray()
        self._high, self._low = HIGH_WATER_BYTES, HIGH_WATER_BYTES // 4
        self._piece_bytes_max = wire.rng.choice((1 << 20, 1 << 20, 64 * 1024, 1448, 200))
        self._is_open = False
        self._is_reading_paused = self._is_writing_paused = False
        self._is_flush_asked = self._is_read_asked = False
        self._is_closing = self._is_eof_written = self._is_fin_sent = False
        self._is_gone = self._has_fin = self._is_eof_told = False
        self._error: Exception | None = None

    # Life

    def open(self, protocol: asyncio.BaseProtocol) -> None:
        """Start to speak: called in the owner's context."""
        if self._is_gone:
            return
        self._protocol, self._is_open = protocol, True
        protocol.connection_made(self)
        self._ask_read()

    @property
    def label(self) -> str:
        """Label for traces."""
        return f"{self.name[0]}:{self.name[1]}>{self.peer_name[0]}:{self.peer_name[1]}"

    @property
    def is_gone(self) -> bool:
        """Whether this end exists no more."""
        return self._is_gone

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol  # type: ignore[no-any-return]  # any kind of protocol; asked for methods by kind

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        """Send what was written, then end; reads no more."""
        if not self._is_closing:
            self._is_closing = True
            self._ask_flush()

    def abort(self) -> None:
        """End at once; the peer sees a reset."""
        if not self._is_gone:
            self._drop_outgoing()
            self._send(Mark.RST)
            self._lose(None)

    def vanish(self, mark: Mark | None) -> None:
        """The process (or its host) is gone. The kernel says `mark` to the peer; a power cut says nothing."""
        self._drop_outgoing()
        if self._is_gone:
            return
        self._is_gone = self._is_closing = True
        if mark is not None and not self._is_fin_sent:
            self._send(Mark.RST if self._unread else mark)
        self._wire.forget(self)

    # Writing

    def write(self, data: Bytes) -> None:
        if not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError(f"data must be bytes-like, not {type(data).__name__}")
        if self._is_eof_written:
            raise RuntimeError("Cannot call write() after write_eof()")
        if self._is_closing or not len(data):
            return
        view = memoryview(data).cast("B")
        self._outgoing.append((view, bytes(view)))
        self._outgoing_bytes += len(view)
        if self._outgoing_bytes > self._high and not self._is_writing_paused:
            self._flush()
            self._tell_writing_paused()
        self._ask_flush()

    def writelines(self, list_of_data: Iterable[Bytes]) -> None:
        for data in list_of_data:
            self.write(data)

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if not self._is_eof_written:
            self._is_eof_written = True
            self._ask_flush()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if high is None:
            high = HIGH_WATER_BYTES if low is None else 4 * low
        self._high, self._low = high, high // 4 if low is None else low
        self._tell_writing_paused()

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def get_write_buffer_size(self) -> int:
        return self._outgoing_bytes

    def _tell_writing_paused(self) -> None:
        if self._outgoing_bytes > self._high and not self._is_writing_paused and not self._is_gone:
            self._is_writing_paused = True
            self._protocol.pause_writing()

    def _ask_flush(self) -> None:
        if not self._is_flush_asked:
            self._is_flush_asked = True
            self._loop.call_soon(self._on_flush, context=self._context)

    def _on_flush(self) -> None:
        self._is_flush_asked = False
        if self._is_gone:
            return
        if self._error is not None and (self._outgoing or self._is_closing):
            self._lose(self._error)
            return
        self._flush()
        if self._is_writing_paused and self._outgoing_bytes <= self._low:
            self._is_writing_paused = False
            self._protocol.resume_writing()
        if self._outgoing or self._is_gone:
            return
        if (self._is_closing or self._is_eof_written) and not self._is_fin_sent:
            self._is_fin_sent = True
            self._send(Mark.RST if self._is_closing and self._unread else Mark.FIN)
        if self._is_closing:
            self._lose(None)

    def _flush(self) -> None:
        """Hand to the kernel what the window has room for."""
        while self._outgoing:
            room = self._window_bytes - self._flight_bytes - len(self.peer._unread)
            if room <= 0:
                return
            view, copy = self._outgoing[0]
            start = self._head_sent_bytes
            end = min(start + min(room, self._piece_bytes_max), len(copy))
            if view[start:end] != copy[start:end]:
                raise SimulationFailure(f"{self.label}: a buffer changed after it was written")
            self._send(copy[start:end])
            self._outgoing_bytes -= end - start
            self._head_sent_bytes = end
            if end == len(copy):
                self._outgoing.popleft()
                self._head_sent_bytes = 0
                view.release()

    def _drop_outgoing(self) -> None:
        self._outgoing.clear()
        self._outgoing_bytes = self._head_sent_bytes = 0

    # The wire

    def _send(self, packet: bytes | Mark) -> None:
        when = max(self._last_arrival, self._loop.time() + self._wire.delay(self.name[0], self.peer_name[0]))
        self._last_arrival = when
        self._flight.append((when, packet))
        if not isinstance(packet, Mark):
            self._flight_bytes += len(packet)
        if len(self._flight) == 1:
            self.resume_flight()

    def resume_flight(self) -> None:
        self._loop.hardware_later(max(0.0, self._flight[0][0] - self._loop.time()), self._arrive)

    def lose_flight(self, keep: int) -> None:
        """All but the first packets are lost, and nothing follows: the sender's host is gone."""
        while len(self._flight) > max(keep, 1 if self._flight else 0):
            self._flight.pop()

    def _arrive(self) -> None:
        if self._wire.hold(self):
            return
        packets = [self._flight.popleft()[1]]
        while self._loop.is_slow and self._flight and self._flight[0][0] <= self._loop.time():
            packets.append(self._flight.popleft()[1])
        if self._flight:
            self.resume_flight()
        for packet in packets:
            if not isinstance(packet, Mark):
                self._flight_bytes -= len(packet)
            self.peer.receive(packet)

    def receive(self, packet: bytes | Mark) -> None:
        """Receives a packet from the wire."""
        self._loop.trace.record("net", f"{self.label} {packet.value if isinstance(packet, Mark) else len(packet)}")
        if self._is_gone or self._error is not None:  # a reset ends the connection, whether or not its owner has heard of it
            if not isinstance(packet, Mark):
                self.refuse()
            return
        if packet is Mark.RST:
            self._error = self._error or ConnectionResetError(104, "Connection reset by peer")
            if self._wire.rng.random() < 0.5:
                self._unread.clear()
            if self._outgoing:
                self._ask_flush()
        elif packet is Mark.FIN:
            self._has_fin = True
        else:
            self._unread += packet
        self._ask_read()

    def refuse(self) -> None:
        """Data came for an end that is gone. A host that is off answers when it is on again: the sender repeats itself."""
        if not self.peer.is_gone and not self._wire.wait_for_power(self):
            self._send(Mark.RST)

    # Reading

    def is_reading(self) -> bool:
        return not self._is_reading_paused and not self._is_closing

    def pause_reading(self) -> None:
        self._is_reading_paused = True

    def resume_reading(self) -> None:
        self._is_reading_paused = False
        self._ask_read()

    def _ask_read(self) -> None:
        if not self._is_read_asked and self._is_open and (self._unread or self._has_fin or self._error):
            self._is_read_asked = True
            self._loop.call_soon(self._on_read, context=self._context)

    def _on_read(self) -> None:
        self._is_read_asked = False
        if self._is_reading_paused or self._is_closing:
            return
        if self._unread:
            self._read()
            if self.peer._outgoing:
                self._loop.hardware_later(self._wire.delay(self.name[0], self.peer_name[0]), self.peer.window_opened)
            self._ask_read()
        elif self._error is not None:
            self._lose(self._error)
        elif not self._is_eof_told:
            self._is_eof_told = True
            if not self._protocol.eof_received():
                self.close()

    def window_opened(self) -> None:
        """The peer has read: there is room for more."""
        if not self._is_gone:
            self._ask_flush()

    def _read(self) -> None:
        size, rng = len(self._unread), self._wire.rng
        if size > 1 and rng.random() < 0.1:
            size = rng.randrange(1, size)
        if not isinstance(self._protocol, asyncio.BufferedProtocol):
            data = bytes(self._unread[:size])
            del self._unread[:size]
            self._protocol.data_received(data)
            return
        buffer = memoryview(self._protocol.get_buffer(GET_BUFFER_HINT_BYTES)).cast("B")
        if not len(buffer):
            raise SimulationFailure(f"{self.label}: get_buffer() returned an empty buffer")
        size = min(size, len(buffer))
        buffer[:size] = self._unread[:size]
        buffer.release()
        del self._unread[:size]
        self._protocol.buffer_updated(size)

    def _lose(self, error: Exception | None) -> None:
        self._is_gone = self._is_closing = True
        self._drop_outgoing()
        self._wire.forget(self)
        self._loop.call_soon(self._tell_lost, error, context=self._context)

    def _tell_lost(self, error: Exception | None) -> None:
        if self._is_open:
            self._protocol.connection_lost(error)
