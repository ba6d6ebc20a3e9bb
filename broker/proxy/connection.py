"""ProxyConnection: one client's socket. First a handshake; then either lookups, or bytes forwarded to and from one broker.

Forwarding does not parse: bytes read from one side go to the other unchanged, and a side that does not read stops the other's
sending. The answer to CONNECT is the broker's own: version, sizes, errors. Owns this order and both ends; other modules know
the meaning of commands.
"""

import asyncio
import logging
from collections.abc import Coroutine
from enum import Enum
from typing import Any, Protocol, cast

from ports.logs import line
from ports.loop.owner import tell
from ports.network.outbox import HIGH_WATER_BYTES, LOW_WATER_BYTES, Outbox
from ports.network.rest import Rest
from wire.errors import RemoteError
from wire.frames import PING, PONG, Frame, encode, next_frame
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand, CommandConnect, CommandConnected
from wire.int64 import WORD_MAX

from ..errors import BrokerError, ServerError
from .brokers import Brokers
from .clients import NOBODY
from .counts import Counts
from .door import Door
from .link import PROTOCOL_VERSION, PROXY_VERSION
from .lookups import RELAYED, Lookups
from .settings import ProxySettings
from .way import Way

log = logging.getLogger(__name__)

REQUEST_BYTES_MAX = 256 * 1024
"""Bytes of one command before the bytes are forwarded; the largest is a CONNECT with its credentials."""
FRAMES_PER_TURN = 32
"""Frames that are handled before others have their turn of the loop: a lookup costs some 100 microseconds in all."""
REQUESTS_MAX = 1000
"""Lookups under way at which reading stops, until half of them are answered."""
LINGER_SECONDS = 5.0
"""Time for a side that we end to send its written bytes."""


class State(Enum):
    """State of a connection. JOINING: its broker is being connected to."""

    HANDSHAKE = "handshake"
    LOOKUPS = "lookups"
    JOINING = "joining"
    FORWARDING = "forwarding"


class Server(Protocol):
    """Parts that the connections of one proxy share."""

    settings: ProxySettings
    brokers: Brokers
    lookups: Lookups
    counts: Counts
    way: Way
    door: Door | None
    """None: clients are let in by brokers alone."""

    def admit(self, connection: "ProxyConnection", host: str) -> str | None:
        """Why the connection cannot be taken; None when it can."""

    def dismiss(self, connection: "ProxyConnection", host: str) -> None:
        """The connection is gone."""


class ProxyConnection(asyncio.Protocol):
    """A client, and its broker once there is one."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._unused = bytearray()
        """Bytes read and not handled yet: half a frame, or frames that wait for their turn."""
        self._rest = Rest(tell(self._take))
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._state = State.HANDSHAKE
        self._client = NOBODY
        self._expiry: asyncio.TimerHandle | None = None
        self._was_heard = self._awaits_pong = self._is_open = self._is_held = False
        self._is_reading = True
        self._broker: asyncio.Transport | None = None
        self._transport: asyncio.Transport
        self._outbox: Outbox
        self._host = self.address = ""

    # ---- The client's socket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._outbox = Outbox(self._transport, lambda: self.end("it does not read its answers"))
        peer = transport.get_extra_info("peername") or ("unknown", 0)
        self._host, self.address, self._is_open = str(peer[0]), f"{peer[0]}:{peer[1]}", True
        refusal = self._server.admit(self, self._host)
        if refusal is not None:
            self._refuse(ServerError.NOT_ALLOWED, refusal)
            return
        self._timer = self._loop.call_later(self._server.settings.keep_alive_interval_seconds, self._tick)

    def data_received(self, data: bytes) -> None:
        if self._broker is not None:
            self._server.counts.forwarded(len(data))
            self._broker.write(data)
            return
        self._unused += data
        if not (self._is_held or self._rest.is_behind):
            self._take()

    def pause_writing(self) -> None:
        if self._broker is None:
            self._outbox.blocked()
        elif not self._broker.is_closing():
            self._broker.pause_reading()

    def resume_writing(self) -> None:
        if self._broker is None:
            self._outbox.unblocked()
        elif not self._broker.is_closing():
            self._broker.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        log.info(line("disconnected", peer=self.address, reason=exc or "closed"))
        self._is_open = False
        self._rest.close()
        self._outbox.close()
        for task in list(self._tasks):
            task.cancel()
        for timer in (self._timer, self._expiry):
            if timer is not None:
                timer.cancel()
        if self._broker is not None:
            _end_softly(self._broker)
        self._server.dismiss(self, self._host)

    def end(self, reason: str) -> None:
        if self._is_open:
            log.warning(line("connection ended", peer=self.address, reason=reason))
            self.close()

    def close(self) -> None:
        """Closes the connection after its buffered bytes are sent. Closing twice is fine."""
        if self._is_open:
            self._is_open = False
            self._rest.close()
            self._outbox.close()
            _end_softly(self._transport)

    def _refuse(self, code: ServerError, reason: str) -> None:
        self._server.counts.rejected += 1
        told = api.CommandError(request_id=WORD_MAX, error=cast(api.ServerError, int(code)), message=reason)
        self._outbox.answer(encode(BaseCommand(type=BaseCommand.ERROR, error=told)))
        self.end(reason)

    def _tick(self) -> None:
        if self._state is not State.LOOKUPS or (self._awaits_pong and not self._was_heard):
            self.end("no answer to PING" if self._state is State.LOOKUPS else "handshake not finished in time")
            return
        self._awaits_pong = not self._was_heard
        if self._awaits_pong:
            self._outbox.answer(PING)
        self._was_heard = False
        self._timer = self._loop.call_later(self._server.settings.keep_alive_interval_seconds, self._tick)

    # ---- Before bytes are forwarded

    def _take(self) -> None:
        """Frames in order, until one has to be waited for; those beyond FRAMES_PER_TURN in the next turn of the loop."""
        used = 0
        try:
            used = self._taken()
        except RemoteError as mistake:
            self.end(mistake.reason)
        if used:
            del self._unused[:used]
        self._reading_changed()

    def _taken(self) -> int:
        """Returns the place up to which the bytes are used."""
        at, frames = 0, 0
        while self._is_open and not self._is_held:
            if frames == FRAMES_PER_TURN:
                self._rest.fall_behind()
                break
            frame = next_frame(self._unused, at, len(self._unused), REQUEST_BYTES_MAX)
            if frame is None:
                break
            frames += 1
            at = frame.end
            self._handle(frame)
        return at

    def _handle(self, frame: Frame) -> None:
        command, self._was_heard = frame.command, True
        if command.type == BaseCommand.PING:
            self._outbox.answer(PONG)
        elif command.type == BaseCommand.CONNECT and self._state is State.HANDSHAKE:
            self._connect(command.connect)
        elif self._state is State.LOOKUPS and command.type in RELAYED:
            self._run(self._relay(command))
            self._is_held = len(self._tasks) >= REQUESTS_MAX
        elif command.type != BaseCommand.PONG:
            self.end(f"{BaseCommand.Type.Name(command.type)} on a connection without a broker")

    def _go_on(self) -> None:
        if self._is_open and self._is_held:
            self._is_held = False
            self._rest.fall_behind()

    def _reading_changed(self) -> None:
        """Before bytes are forwarded."""
        is_reading = not (self._is_held or self._rest.is_behind)
        if is_reading == self._is_reading or not self._is_open:
            return
        self._is_reading = is_reading
        if is_reading:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work, name="proxy request")
        self._tasks[task] = None
        task.add_done_callback(self._done)

    def _done(self, task: "asyncio.Task[None]") -> None:
        del self._tasks[task]
        if not task.cancelled() and task.exception() is not None:
            log.error(line("a request failed", peer=self.address), exc_info=task.exception())
            self.end("internal error")
        if 2 * len(self._tasks) <= REQUESTS_MAX and self._state is State.LOOKUPS:
            self._go_on()

    async def _relay(self, command: BaseCommand) -> None:
        self._outbox.answer(await self._server.lookups.answer(command, self._client))

    def _connect(self, command: CommandConnect) -> None:
        address = command.proxy_to_broker_url
        if self._server.door is not None and not self._is_admitted(self._server.door, command):
            return
        who = {"role": self._client.principal[:200]} if self._client.principal else {}
        version, broker = command.client_version[:200], address[:200] or "none yet"
        log.info(line("connected", peer=self.address, client=version, broker=broker, **who))
        if address:
            self._state = State.JOINING
            self._is_held = True
            self._run(self._join(command, address))
            return
        self._state = State.LOOKUPS
        told = CommandConnected(
            server_version=PROXY_VERSION,
            protocol_version=max(0, min(PROTOCOL_VERSION, command.protocol_version)),
            max_message_size=self._server.settings.max_message_size,
            feature_flags=api.FeatureFlags(supports_get_partitioned_metadata_without_auto_creation=True),
        )
        self._outbox.answer(encode(BaseCommand(type=BaseCommand.CONNECTED, connected=told)))

    def _is_admitted(self, door: Door, command: CommandConnect) -> bool:
        """Whether the client is known; an unknown one is refused. A client that speaks for others, or is a proxy, is
        refused.
        """
        try:
            self._client, principal = door.admit(command, self._transport.get_extra_info("peercert"))
        except BrokerError as refusal:
            log.warning(line("not authenticated", peer=self.address, reason=refusal.__cause__ or refusal))
            self._refuse(refusal.code, refusal.message)
            return False
        for name in ("original_principal", "original_auth_data", "original_auth_method"):
            command.ClearField(name)
        left = door.seconds_left(principal)
        if left is not None and not (door.forwards and command.proxy_to_broker_url):
            self._expiry = self._loop.call_later(left, lambda: self.end("its credentials have expired"))
        return True

    async def _join(self, command: CommandConnect, address: str) -> None:
        """Connect to the broker and forward from then on. A failure is sent to the client, which then looks up again."""
        if not await self._server.brokers.may_reach(address):
            log.warning(line("refused: no broker has this address", peer=self.address, address=address[:200]))
            self._refuse(ServerError.SERVICE_NOT_READY, "Target broker cannot be validated: no broker has this address")
            return
        host, _, port = address.rpartition(":")
        try:
            async with asyncio.timeout(self._server.settings.broker_proxy_connect_timeout_ms / 1000):
                broker = await self._server.way.connect(lambda: _BrokerSide(self), host.strip("[]"), int(port))
        except (OSError, TimeoutError, ValueError) as error:
            self._refuse(ServerError.SERVICE_NOT_READY, f"Target broker {address} cannot be reached: {error or 'no answer'}")
            return
        if not self._is_open:
            broker.abort()
            return
        self._forward(command, broker)

    def _forward(self, command: CommandConnect, broker: asyncio.Transport) -> None:
        """The client's CONNECT goes first, without the part for the proxy."""
        self._state = State.FORWARDING
        command.ClearField("proxy_to_broker_url")
        command.proxy_version = PROXY_VERSION
        if self._client.principal:
            command.ClearField("auth_data")
            command.ClearField("auth_method_name")
            self._server.way.own.introduce(command, self._client)
        if self._timer is not None:
            self._timer.cancel()
        self._outbox.flush()
        rest, self._unused = self._unused, bytearray()
        self._server.counts.forwarded(len(rest))
        broker.set_write_buffer_limits(HIGH_WATER_BYTES, LOW_WATER_BYTES)
        broker.write(encode(BaseCommand(type=BaseCommand.CONNECT, connect=command)) + rest)
        self._broker = broker
        self._is_held = False
        self._transport.resume_reading()

    # ---- The broker's side

    def from_broker(self, data: bytes) -> None:
        self._server.counts.forwarded(len(data))
        self._transport.write(data)

    def broker_is_blocked(self, is_blocked: bool) -> None:
        if not self._is_open:
            return
        if is_blocked:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def broker_is_gone(self, reason: Exception | None) -> None:
        if self._is_open:
            log.info(line("the broker closed a connection", peer=self.address, reason=reason or "closed"))
            self.close()


class _BrokerSide(asyncio.Protocol):
    """The other socket of a connection."""

    def __init__(self, connection: ProxyConnection) -> None:
        self._connection = connection

    def data_received(self, data: bytes) -> None:
        self._connection.from_broker(data)

    def pause_writing(self) -> None:
        self._connection.broker_is_blocked(True)

    def resume_writing(self) -> None:
        self._connection.broker_is_blocked(False)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.broker_is_gone(exc)


def _end_softly(transport: asyncio.Transport) -> None:
    """Closes a transport after its buffered bytes are sent, for as long as LINGER_SECONDS."""
    transport.close()
    asyncio.get_running_loop().call_later(LINGER_SECONDS, transport.abort)
