"""One connection to a broker, blocking: handshake, questions and answers, and whole blocks of what comes by itself.

A connection that breaks raises `Lost`, and its owner makes another one; a request that a broker refuses raises `Refused`.
"""

import select
import socket
import ssl
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias
from urllib.parse import urlsplit

import numpy

from wire.generated.pulsar_api_pb2 import BaseCommand, CommandConnect, CommandPong, ServerError

from ..decode.octets import PADDING_BYTES, Octets, Places
from ..decode.rooms import Rooms
from ..errors import Refused
from ..options import Access
from .credentials import tls_context, token

Buffer: TypeAlias = bytes | memoryview
_PORTS = {"pulsar": 6650, "pulsar+ssl": 6651}
_PROTOCOL_VERSION = 21
_FRAME_BYTES_MAX = 256 << 20
_MESSAGE_BYTES_MAX = 5 << 20
"""Largest message where a broker does not state its limit."""
_RECEIVE_BYTES = 1 << 20
_ROOMS = Rooms(3)
_LINGER_SECONDS = 0.02
"""Wait for more bytes of a block that is not full: one big block costs less than many small ones."""
_LASTING = {
    *(ServerError.AuthenticationError, ServerError.AuthorizationError, ServerError.TopicNotFound),
    *(ServerError.IncompatibleSchema, ServerError.InvalidTopicName, ServerError.NotAllowedError),
}
_OTHER_PROTOCOLS = {
    b"HTTP/": "answers HTTP: option service.url wants the port of the binary protocol, 6650 where nobody said another one",
    b"\x15\x03": "speaks TLS: option service.url wants pulsar+ssl://",
}
"""Error texts by the first bytes of the answer; that of TLS is an alert."""

_TAKEN = {ServerError.ProducerBusy, ServerError.ConsumerBusy}


class InPieces(Protocol):
    """A payload of several buffers that are not joined."""

    @property
    def pieces(self) -> tuple[Buffer, ...]: ...


class Lost(Exception):
    """The connection broke, or the broker asks to come again: another try may do."""


class NameTaken(Lost):
    """Another client has the same name, or exclusive access, until it goes."""


@dataclass(frozen=True, slots=True)
class FrameBlock:
    """Whole frames: of frame i the command is `data[command_starts[i]:payload_starts[i]]`, the payload reaches to `ends[i]`."""

    data: Octets
    command_starts: Places
    payload_starts: Places
    ends: Places


class Connection:
    """Connection that is open from construction to `close`. Lost, Refused."""

    def __init__(self, url: str, access: Access, proxied_to: str = "") -> None:
        self.url, self._timeout = url, access.timeout_seconds
        self.message_bytes_max = _MESSAGE_BYTES_MAX
        self._buffer, self._request_id = bytearray(), 0
        self._socket = _connected(url, access)
        try:
            self._handshake_or_told(access, proxied_to)
        except BaseException:
            self._socket.close()
            raise

    def _handshake_or_told(self, access: Access, proxied_to: str) -> None:
        """Refused where something else listens: it would be the same however often it is asked."""
        try:
            self._handshake(access, proxied_to)
        except Lost:
            for beginning, what in _OTHER_PROTOCOLS.items():
                if self._buffer.startswith(beginning):
                    raise Refused(f"{self.url} {what}") from None
            raise

    def _handshake(self, access: Access, proxied_to: str) -> None:
        connect = CommandConnect(client_version="interpulse-pipeline", protocol_version=_PROTOCOL_VERSION)
        connect.feature_flags.supports_broker_entry_metadata = True
        secret = token(access)
        if secret:
            connect.auth_method_name, connect.auth_data = "token", secret.encode()
        if proxied_to:
            connect.proxy_to_broker_url = proxied_to
        connected = self.ask(BaseCommand(type=BaseCommand.CONNECT, connect=connect), BaseCommand.CONNECTED).connected
        self.message_bytes_max = connected.max_message_size or _MESSAGE_BYTES_MAX

    def request_id(self) -> int:
        self._request_id += 1
        return self._request_id

    def send(self, command: BaseCommand, payload: bytes | InPieces = b"") -> None:
        pieces = (payload,) if isinstance(payload, bytes) else payload.pieces
        encoded = command.SerializeToString()
        sizes = (len(encoded) + 4 + sum(map(len, pieces))).to_bytes(4) + len(encoded).to_bytes(4)
        try:
            self._socket.settimeout(self._timeout)
            _send_all(self._socket, (sizes + encoded, *pieces))
        except OSError as error:
            raise Lost(f"{self.url}: {error}") from None

    def ask(self, command: BaseCommand, answer: int) -> BaseCommand:
        """First command of that type; others that come before it are dropped. Lost, also after the timeout; Refused."""
        self.send(command)
        until = self.deadline()
        while True:
            found = self.command(until)
            if found.type == answer:
                return found
            raise_refusal(self.url, found)

    def ask_all(self, commands: Sequence[BaseCommand], answer: int) -> Iterator[BaseCommand]:
        """The answers to as many questions, in the order in which they come: all are asked before the first is awaited.

        As many as fit into a socket's buffers together: a broker that waits for us to read reads no more. Lost, Refused.
        """
        for each in commands:
            self.send(each)
        for _ in commands:
            until = self.deadline()
            found = self.command(until)
            while found.type != answer:
                raise_refusal(self.url, found)
                found = self.command(until)
            yield found

    def deadline(self) -> float:
        """Monotonic time, in seconds, until which an answer to a question that is asked now is awaited."""
        return time.monotonic() + self._timeout

    def command(self, until: float | None = None) -> BaseCommand:
        """Next command, until `deadline` if nothing else is said; pings are answered and are no sign of it. Lost."""
        until = self.deadline() if until is None else until
        while (found := self._whole_command()) is None:
            if not self._readable(max(0.0, until - time.monotonic())) or time.monotonic() > until:
                raise Lost(f"{self.url} gave no answer within {self._timeout:g} s")
            self._receive(self._timeout)
        return found

    def command_here(self) -> BaseCommand | None:
        """Next command, if it has come; pings are answered. None at once where only pings or a part of a command have come."""
        while (found := self._whole_command()) is None:
            if not self._readable(0):
                return None
            self._receive(self._timeout)
        return found

    def _whole_command(self) -> BaseCommand | None:
        """First command in the buffer; the pings before it are answered."""
        while (end := self._frame_end(0)) is not None:
            command_end = 8 + int.from_bytes(self._buffer[4:8])
            found = BaseCommand.FromString(bytes(self._buffer[8:command_end]))
            del self._buffer[:end]
            if found.type != BaseCommand.PING:
                return found
            self.pong()
        return None

    def pong(self) -> None:
        self.send(BaseCommand(type=BaseCommand.PONG, pong=CommandPong()))

    def block(self, bytes_min: int, seconds: float) -> FrameBlock | None:
        """Whole frames, about `bytes_min` of them or what has come; None when none comes within the time."""
        if self._frame_end(0) is None and not self._until_whole(seconds):
            return None
        self._fill(bytes_min)
        bounds = list(self._bounds())
        data = _taken(memoryview(self._buffer)[: bounds[-1][1]])
        del self._buffer[: bounds[-1][1]]
        starts, ends = numpy.array(bounds, numpy.int64).T
        sizes = numpy.ndarray((len(data) - 3,), numpy.dtype(">u4"), data, strides=(1,))[starts + 4].astype(numpy.int64)
        return FrameBlock(data, starts + 8, numpy.minimum(starts + 8 + sizes, ends), ends)

    def _fill(self, bytes_min: int) -> None:
        while len(self._buffer) < bytes_min and self._readable(_LINGER_SECONDS):
            try:
                self._receive(self._timeout)
            except Lost:
                return  # received frames are whole and good; the next call raises the error

    def _until_whole(self, seconds: float) -> bool:
        if not self._readable(seconds):
            return False
        while self._frame_end(0) is None:
            self._receive(self._timeout)
        return True

    def _bounds(self) -> Iterator[tuple[int, int]]:
        """Start and end of each whole frame: one step a frame, since each says where the next one is."""
        at = 0
        while (end := self._frame_end(at)) is not None:
            yield at, end
            at = end

    def _frame_end(self, at: int) -> int | None:
        if len(self._buffer) < at + 8:
            return None
        end = at + 4 + int.from_bytes(self._buffer[at : at + 4])
        if not at + 8 < end <= at + _FRAME_BYTES_MAX:
            raise Lost(f"{self.url} sends a frame of {end - at} bytes")
        return end if end <= len(self._buffer) else None

    def _readable(self, seconds: float) -> bool:
        pending = isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0
        return pending or bool(select.select([self._socket], [], [], seconds)[0])

    def _receive(self, seconds: float) -> None:
        self._socket.settimeout(seconds)
        room = _ROOMS.of(_RECEIVE_BYTES).data
        self._buffer += room[: received(self._socket, room, self.url)]

    def close(self) -> None:
        self._socket.close()


def received(connected: socket.socket, room: memoryview, peer: str) -> int:
    """Number of bytes received into the room, at least one. Lost."""
    try:
        count = connected.recv_into(room)
    except OSError as error:
        raise Lost(f"{peer}: {error}") from None
    if not count:
        raise Lost(f"{peer} closed the connection")
    return count


def _send_all(connected: socket.socket, pieces: Sequence[Buffer]) -> None:
    """Sends the pieces without joining them, but for TLS, which has no such call."""
    if isinstance(connected, ssl.SSLSocket):
        connected.sendall(b"".join(pieces))
        return
    left = [memoryview(each) for each in pieces if len(each)]
    while left:
        sent = connected.sendmsg(left)
        while left and sent >= left[0].nbytes:
            sent -= left.pop(0).nbytes
        if sent:
            left[0] = left[0][sent:]


def _taken(data: memoryview) -> Octets:
    """A copy, with room behind it."""
    octets = _ROOMS.of(len(data) + PADDING_BYTES)
    octets[: len(data)] = numpy.frombuffer(data, numpy.uint8)
    octets[len(data) :] = 0
    return octets


def raise_refusal(url: str, command: BaseCommand) -> None:
    """Refused or Lost for an ERROR; anything else is fine."""
    if command.type == BaseCommand.ERROR:
        code = command.error.error
        said = f"{url}: {ServerError.Name(code)}: {command.error.message}"
        raise Refused(said) if code in _LASTING else NameTaken(said) if code in _TAKEN else Lost(said)


def _connected(url: str, access: Access) -> socket.socket:
    parts = urlsplit(url)
    host = parts.hostname or ""
    plain = None
    try:
        plain = socket.create_connection((host, parts.port or _PORTS[parts.scheme]), access.timeout_seconds)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return plain if parts.scheme == "pulsar" else tls_context(access).wrap_socket(plain, server_hostname=host)
    except OSError as error:
        if plain is not None:
            plain.close()
        if isinstance(error, ssl.SSLCertVerificationError):
            raise Refused(f"{url}: {error}") from None
        raise Lost(f"{url}: {error}") from None
