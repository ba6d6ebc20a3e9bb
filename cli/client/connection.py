"""One connection to a broker: handshake with credentials, requests and answers, frames that come by themselves. Blocking.

Owns the socket. A connection that breaks is `Lost`; `cli.client.lasting` makes another one in its place.
"""

import select
import socket
import ssl
import time
from collections import deque
from collections.abc import Iterator
from urllib.parse import urlsplit

from cli.client.errors import ClientError, Lost, RefusedByBroker, Unreachable
from cli.client_configuration import ClientConfiguration, auth_data, auth_method, tls_context
from cli.connection_advice import (
    BINARY,
    closed_at_once,
    credentials_refused,
    name_advice,
    not_reached,
    speaks_otherwise,
)
from cli.version import PROTOCOL_VERSION, VERSION
from wire.client_end import ClientEnd, Credentials, Received, Silence
from wire.errors import RemoteError
from wire.frames import FRAME_PADDING_BYTES, PING, encode
from wire.generated.pulsar_api_pb2 import BaseCommand, CommandConnect, ServerError

PORTS = {"pulsar": BINARY.ports[0], "pulsar+ssl": BINARY.ports[1]}
CLIENT_VERSION = f"interpulse-client-{VERSION}"
RECEIVE_BYTES = 1 << 18
CONNECT_SECONDS = 10.0
TIMEOUT_SECONDS = 30.0
SEND_SECONDS = 120.0
"""A broker that holds back a publisher reads nothing from it meanwhile: that is no reason to connect again."""


class PulsarConnection:
    """A connection from CONNECT on. `waiting` holds frames that came while an answer was awaited. Answers PINGs."""

    def __init__(self, url: str, configuration: ClientConfiguration, proxied_to: str = "") -> None:
        self.url, self._configuration = url, configuration
        self.waiting: deque[Received] = deque()
        self.message_bytes_max = 5 << 20
        self._is_greeted = False
        self._socket = self._connected(url, configuration)
        frame_bytes_max = self.message_bytes_max + FRAME_PADDING_BYTES
        self._end = ClientEnd(_hello(proxied_to), self._credentials, time.monotonic(), frame_bytes_max)
        self.request_id = self._end.request_id
        try:
            self._handshake()
        except BaseException:
            self._socket.close()
            raise

    def _connected(self, url: str, configuration: ClientConfiguration) -> socket.socket:
        host, port = _address(url)
        try:
            plain = socket.create_connection((host, port), CONNECT_SECONDS)
        except OSError as error:
            raise Unreachable(not_reached(url, error, BINARY, CONNECT_SECONDS)) from None
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not url.startswith("pulsar+ssl:"):
            return plain
        try:
            return tls_context(configuration).wrap_socket(plain, server_hostname=host)
        except ssl.SSLCertVerificationError as error:
            plain.close()
            raise ClientError(not_reached(url, error, BINARY)) from None
        except OSError as error:
            plain.close()
            raise Unreachable(not_reached(url, error, BINARY, CONNECT_SECONDS)) from None
        except BaseException:
            plain.close()
            raise

    def _credentials(self) -> Credentials:
        """Read at each use: a file may have others by then."""
        method = auth_method(self._configuration)
        return Credentials(method, auth_data(self._configuration).encode() if method else b"")

    def _handshake(self) -> None:
        self.send_bytes(self._end.greeting())
        answer = self.next().command
        if answer.type == BaseCommand.ERROR:
            raise self._refused_connection(answer)
        if answer.type != BaseCommand.CONNECTED:
            raise ClientError(f"{self.url}: {BaseCommand.Type.Name(answer.type)} where CONNECTED was expected")
        self.message_bytes_max = answer.connected.max_message_size or self.message_bytes_max
        self._end.allow(self.message_bytes_max + FRAME_PADDING_BYTES)
        self._is_greeted = True

    def _refused_connection(self, answer: BaseCommand) -> ClientError:
        code, reason = answer.error.error, answer.error.message
        if code in (ServerError.AuthenticationError, ServerError.AuthorizationError):
            shown = auth_data(self._configuration) or auth_method(self._configuration)
            return ClientError(credentials_refused(self.url, reason, shown, time.time()))
        return RefusedByBroker(f"{self.url} refuses the connection: {reason}", code)

    def send(self, command: BaseCommand, section: bytes = b"") -> None:
        self.send_bytes(encode(command, section))

    def send_bytes(self, data: bytes) -> None:
        try:
            self._socket.settimeout(SEND_SECONDS)
            self._socket.sendall(data)
        except OSError as error:
            raise self._lost(error) from None

    def ask(self, command: BaseCommand, *answers: int) -> BaseCommand:
        """The first command of one of these types, or RefusedByBroker; everything else waits in `waiting`."""
        self.send(command)
        return self.answer(*answers)

    def answer(self, *answers: int, timeout_seconds: float | None = TIMEOUT_SECONDS) -> BaseCommand:
        """The answer to an earlier request."""
        while True:
            received = self.next(timeout_seconds)
            if received.command.type in answers:
                return received.command
            if received.command.type == BaseCommand.ERROR:
                error = received.command.error
                raise RefusedByBroker(with_advice(f"{self.url}: {error.message}"), error.error)
            self.waiting.append(received)

    def next(self, timeout_seconds: float | None = TIMEOUT_SECONDS) -> Received:
        """The next command. Lost when nothing comes, or the connection ends."""
        while (received := self._taken()) is None:
            self._receive(timeout_seconds)
        return received

    def fileno(self) -> int:
        return self._socket.fileno()

    def readable(self, seconds: float) -> bool:
        """Tell whether bytes come within this time."""
        return is_readable([self], seconds) != []

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

    def arrived(self) -> Iterator[Received]:
        """All that is there whole, without waiting."""
        while self.has_more():
            yield self.waiting.popleft()

    def receive(self) -> None:
        """Reads once from a connection that is readable."""
        self._receive(TIMEOUT_SECONDS)

    def keep_alive(self) -> None:
        """Asks a connection that is silent for a sign of life. Lost when it was asked, and is still silent."""
        now = time.monotonic()
        verdict = self._end.look(now)
        if verdict is Silence.LOST:
            raise Lost(f"{self.url}: nothing came in {self._end.silent_seconds(now):.0f} s, not even an answer to a ping")
        if verdict is Silence.ASK:
            self.send_bytes(PING)

    def _taken(self) -> Received | None:
        """The next whole frame that is not the connection's own; the answers to those are sent."""
        try:
            received = self._end.taken()
        except RemoteError as error:
            raise ClientError(speaks_otherwise(self.url, self._end.beginning(8), BINARY, str(error))) from None
        replies = self._end.take_replies()
        if replies:
            self.send_bytes(replies)
        return received

    def _receive(self, timeout_seconds: float | None) -> None:
        try:
            self._socket.settimeout(timeout_seconds)
            data = self._socket.recv(RECEIVE_BYTES)
            while data and isinstance(self._socket, ssl.SSLSocket) and self._socket.pending():
                self._end.feed(data, time.monotonic())  # what TLS has decrypted already makes no socket readable
                data = self._socket.recv(RECEIVE_BYTES)
        except TimeoutError:
            raise Lost(f"{self.url}: no answer in {timeout_seconds} s: the server hangs, or is no Pulsar") from None
        except OSError as error:
            raise self._lost(error) from None
        if not data:
            raise Lost(f"{self.url} closed the connection" if self._is_greeted else closed_at_once(self.url, BINARY))
        self._end.feed(data, time.monotonic())

    def _lost(self, error: OSError) -> ClientError:
        if isinstance(error, ssl.SSLError) and not self._is_greeted:
            return ClientError(not_reached(self.url, error, BINARY))
        if self._is_greeted:
            return Lost(f"{self.url}: {error.strerror or error}")
        return Lost(not_reached(self.url, error, BINARY))

    def close(self) -> None:
        self._socket.close()


def _hello(proxied_to: str) -> CommandConnect:
    hello = CommandConnect(client_version=CLIENT_VERSION, protocol_version=PROTOCOL_VERSION)
    hello.feature_flags.supports_auth_refresh = hello.feature_flags.supports_broker_entry_metadata = True
    if proxied_to:
        hello.proxy_to_broker_url = proxied_to
    return hello


def is_readable(connections: list[PulsarConnection], seconds: float) -> list[PulsarConnection]:
    """Those on which bytes come within this time."""
    by_number = {connection.fileno(): connection for connection in connections}
    waiting = select.poll()
    for number in by_number:
        waiting.register(number, select.POLLIN)
    return [by_number[number] for number, _ in waiting.poll(max(0.0, seconds) * 1000)]


def with_advice(text: str) -> str:
    """With what to do, where the tenant, namespace or topic is what is missing."""
    advice = name_advice(text)
    return f"{text}: {advice}" if advice else text


def _address(url: str) -> tuple[str, int]:
    """Host and port. ClientError."""
    try:
        parts = urlsplit(url)
        if parts.scheme in PORTS and parts.hostname:
            return parts.hostname, parts.port or PORTS[parts.scheme]
    except ValueError:  # a port that is no number, or brackets that do not close
        raise ClientError(
            f"{url}: expected pulsar://host:port or pulsar+ssl://host:port, with a port from 1 to 65535"
        ) from None
    hint = ": this is a web address, which pulsar-admin uses" if parts.scheme in ("http", "https") else ""
    raise ClientError(f"{url}: expected pulsar://host:port or pulsar+ssl://host:port{hint}")
