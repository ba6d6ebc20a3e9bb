"""ClientEnd: the client's end of one connection to a broker. Bytes in, commands out; and the bytes to send. Pure.

Owns the bytes that are no whole frame yet, the numbers of requests, and the signs of life. Answers pings, and challenges where
it has credentials. Drivers own the socket, and decide what commands mean: `cli.client` (blocking), `broker.service.neighbours`,
`broker.proxy` and `handlers.websocket` (asyncio). docs/adr/0037-one-client-end.md says who has another one, and why.
"""

from collections.abc import Callable, Iterator
from enum import Enum
from typing import NamedTuple, Protocol

from wire.frames import PONG, encode, next_frame
from wire.generated.pulsar_api_pb2 import AuthData, BaseCommand, CommandAuthResponse, CommandConnect
from wire.kernels.sends import FRAME_BYTES_MAX

KEEP_ALIVE_SECONDS = 30.0
"""A silent broker is asked for a sign of life after so long, as Apache's clients do; after twice as long it is lost."""


class Received(NamedTuple):
    """A command, and a copy of the payload section that came with it."""

    command: BaseCommand
    section: bytes


class Proof(Protocol):
    """Name of an authentication method, and the bytes that prove the role; no name: none."""

    @property
    def method(self) -> str: ...
    @property
    def data(self) -> bytes: ...


class Credentials(NamedTuple):
    """A `Proof` and nothing else."""

    method: str
    data: bytes


class Silence(Enum):
    """Verdict on a connection at one moment."""

    FINE = "fine"
    ASK = "ask"
    LOST = "lost"


class ClientEnd:
    """Client's end of one connection. `credentials` are asked for at the greeting and at each challenge; None: `hello` has
    them already, and a challenge is a command like others.
    """

    def __init__(
        self,
        hello: CommandConnect,
        credentials: Callable[[], Proof] | None,
        now: float,
        frame_bytes_max: int = FRAME_BYTES_MAX,
    ) -> None:
        self._hello, self._credentials, self._frame_bytes_max = hello, credentials, frame_bytes_max
        self._buffer, self._used = bytearray(), 0
        self._replies = bytearray()
        self._request_id = 0
        self._heard_at, self._is_asked = now, False

    # Out

    def greeting(self) -> bytes:
        """CONNECT: the first that is sent."""
        own = None if self._credentials is None else self._credentials()
        if own is not None and own.method:
            self._hello.auth_method_name, self._hello.auth_data = own.method, own.data
        return encode(BaseCommand(type=BaseCommand.CONNECT, connect=self._hello))

    def request_id(self) -> int:
        """Number of a new request."""
        self._request_id += 1
        return self._request_id

    def take_replies(self) -> bytes:
        """Answers to pings and challenges, to be sent now; often none."""
        replies = bytes(self._replies)
        self._replies.clear()
        return replies

    # In

    def allow(self, frame_bytes_max: int) -> None:
        """Changes the bound of a frame, once the broker has said how large messages are."""
        self._frame_bytes_max = frame_bytes_max

    def feed(self, data: bytes | bytearray | memoryview, now: float) -> None:
        """Takes bytes as they came; they are copied."""
        del self._buffer[: self._used]
        self._used = 0
        self._buffer += data
        self._heard_at, self._is_asked = now, False

    def beginning(self, count: int) -> bytes:
        """First bytes that are no frame yet, or no frame at all."""
        return bytes(self._buffer[self._used : self._used + count])

    def taken(self) -> Received | None:
        """Next command for the driver, without waiting. MalformedFrame, MalformedCommand: the connection has to end."""
        while True:
            frame = next_frame(self._buffer, self._used, len(self._buffer), self._frame_bytes_max)
            if frame is None:
                return None
            received, self._used = Received(frame.command, bytes(frame.payload)), frame.end
            frame.payload.release()
            if not self._is_its_own(received.command):
                return received

    def all_taken(self) -> Iterator[Received]:
        """All commands that are there whole."""
        while (received := self.taken()) is not None:
            yield received

    def _is_its_own(self, command: BaseCommand) -> bool:
        match command.type:
            case BaseCommand.PING:
                self._replies += PONG
            case BaseCommand.PONG:
                pass
            case BaseCommand.AUTH_CHALLENGE if self._credentials is not None:
                self._replies += self._proof(self._credentials())
            case _:
                return False
        return True

    def _proof(self, own: Proof) -> bytes:
        """Answer to a broker for which our credentials have expired."""
        hello, data = self._hello, AuthData(auth_method_name=own.method, auth_data=own.data)
        told = CommandAuthResponse(client_version=hello.client_version, protocol_version=hello.protocol_version, response=data)
        return encode(BaseCommand(type=BaseCommand.AUTH_RESPONSE, auth_response=told))

    # Signs of life

    def silent_seconds(self, now: float) -> float:
        """Time since bytes came."""
        return now - self._heard_at

    def look(self, now: float) -> Silence:
        """ASK once in a silence: the driver sends PING."""
        silent = self.silent_seconds(now)
        if silent >= 2 * KEEP_ALIVE_SECONDS:
            return Silence.LOST
        if silent < KEEP_ALIVE_SECONDS or self._is_asked:
            return Silence.FINE
        self._is_asked = True
        return Silence.ASK
