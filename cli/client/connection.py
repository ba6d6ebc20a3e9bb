"""One connection to a broker: handshake with credentials, requests and answers, frames that come by themselves. Blocking.

Owns the socket. A broken connection is a ClientError; a command-line tool says so and ends, it does not connect again.
"""

import select
import socket
import ssl
from collections import deque
from typing import NamedTuple
from urllib.parse import urlsplit

from cli.client_configuration import ClientConfiguration, auth_data, auth_method, tls_context
from wire.errors import RemoteError
from wire.frames import FRAME_PADDING_BYTES, PONG, encode, next_frame
from wire.generated.pulsar_api_pb2 import BaseCommand, CommandConnect

PORTS = {"pulsar": 6650, "pulsar+ssl": 6651}
PROTOCOL_VERSION = 21
RECEIVE_BYTES = 1 << 18
TIMEOUT_SECONDS = 30.0
VERSION = "magnetar-client"


class ClientError(Exception):
    """It cannot be done; the text says what was asked of whom, and what came back."""


class Received(NamedTuple):
    """A command, and a copy of the payload section that came with it."""

    command: BaseCommand
    section: bytes


class PulsarConnection:
    """From CONNECT on. `waiting` holds what came while an answer was awaited."""

    def __init__(self, url: str, configuration: ClientConfiguration, proxied_to: str = "") -> None:
        self.url = url
        self.waiting: deque[Received] = deque()
        self.message_bytes_max = 5 << 20
        self._buffer = bytearray()
        self._request_id = 0
        self._socket = self._connected(url, configuration)
        try:
            self._handshake(configuration, proxied_to)
        except BaseException:
            self._socket.close()
            raise

    def _connected(self, url: str, configuration: ClientConfiguration) -> socket.socket:
        parts = urlsplit(url)
        if parts.scheme not in PORTS or not parts.hostname:
            raise ClientError(f"{url}: expected pulsar://host:port or pulsar+ssl://host:port")
        try:
            plain = socket.create_connection((parts.hostname, parts.port or PORTS[parts.scheme]), TIMEOUT_SECONDS)
        except OSError as error:
            raise ClientError(f"{url}: {error}") from None
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if parts.scheme == "pulsar":
            return plain
        try:
            return tls_context(configuration).wrap_socket(plain, server_hostname=parts.hostname)
        except (OSError, ssl.SSLError) as error:
            plain.close()
            raise ClientError(f"{url}: TLS: {error}") from None

    def _handshake(self, configuration: ClientConfiguration, proxied_to: str) -> None:
        connect = CommandConnect(client_version=VERSION, protocol_version=PROTOCOL_VERSION)
        method = auth_method(configuration)
        if method:
            connect.auth_method_name, connect.auth_data = method, auth_data(configuration).encode()
        if proxied_to:
            connect.proxy_to_broker_url = proxied_to
        self.send(BaseCommand(type=BaseCommand.CONNECT, connect=connect))
        answer = self.next().command
        if answer.type == BaseCommand.ERROR:
            raise ClientError(f"{self.url} refuses the connection: {answer.error.message}")
        if answer.type != BaseCommand.CONNECTED:
            raise ClientError(f"{self.url}: {BaseCommand.Type.Name(answer.type)} where CONNECTED was expected")
        self.message_bytes_max = answer.connected.max_message_size or self.message_bytes_max

    def request_id(self) -> int:
        self._request_id += 1
        return self._request_id

    def send(self, command: BaseCommand, section: bytes = b"") -> None:
        self.send_bytes(encode(command, section))

    def send_bytes(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise ClientError(f"{self.url}: {error}") from None

    def ask(self, command: BaseCommand, *answers: int) -> BaseCommand:
        """The first command of one of these types, or ClientError for an ERROR; everything else waits in `waiting`."""
        self.send(command)
        while True:
            received = self.next()
            if received.command.type in answers:
                return received.command
            if received.command.type == BaseCommand.ERROR:
                raise ClientError(f"{self.url}: {received.command.error.message}")
            self.waiting.append(received)

    def next(self, timeout_seconds: float | None = TIMEOUT_SECONDS) -> Received:
        """What comes next; pings are answered. ClientError when nothing comes, or the connection ends."""
        while True:
            received = self._taken()
            if received is None:
                self._receive(timeout_seconds)
            elif received.command.type == BaseCommand.PING:
                self.send_bytes(PONG)
            elif received.command.type != BaseCommand.PONG:
                return received

    def fileno(self) -> int:
        return self._socket.fileno()

    def readable(self, seconds: float) -> bool:
        """Whether bytes come within this time."""
        return bool(select.select([self._socket], [], [], seconds)[0])

    def has_more(self) -> bool:
        """Something that can be had without waiting."""
        if not self.waiting:
            received = self._taken()
            if received is not None:
                self.waiting.append(received)
        return bool(self.waiting)

    def next_waiting(self) -> Received:
        """The oldest that waits, or else the next that comes."""
        return self.waiting.popleft() if self.waiting else self.next()

    def _taken(self) -> Received | None:
        try:
            frame = next_frame(self._buffer, 0, len(self._buffer), self.message_bytes_max + FRAME_PADDING_BYTES)
        except RemoteError as error:
            raise ClientError(f"{self.url} sends what is no Pulsar: {error}") from None
        if frame is None:
            return None
        received, end = Received(frame.command, bytes(frame.payload)), frame.end
        frame.payload.release()
        del frame
        del self._buffer[:end]
        return received

    def _receive(self, timeout_seconds: float | None) -> None:
        self._socket.settimeout(timeout_seconds)
        try:
            data = self._socket.recv(RECEIVE_BYTES)
        except TimeoutError:
            raise ClientError(f"{self.url}: no answer in {timeout_seconds} s") from None
        except OSError as error:
            raise ClientError(f"{self.url}: {error}") from None
        if not data:
            raise ClientError(f"{self.url} closed the connection")
        self._buffer += data

    def close(self) -> None:
        self._socket.close()
