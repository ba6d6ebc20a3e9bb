"""Client: one simulated client program's way to the server: a connection, made again when it breaks, and requests on it.

Speaks the wire (`simulation.clients.wire_format`), tells the checker what it sees, decides nothing: producers and consumers do
(`simulation.clients.producer`, `simulation.clients.consumer`).
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from crc32c import crc32c

from simulation.checks.frame_order import FrameOrder
from simulation.checks.history import Connected, Delivered, Event, RoundTrip, Sent
from simulation.clients.wire_format import frame, take_frames
from simulation.world.trace import Trace
from wire.generated import pulsar_api_pb2 as pb
from wire.generated.pulsar_api_pb2 import BaseCommand

SERVER = "server"
PORT = 6650
REQUEST_SECONDS_MAX = 10.0
KEEP_ALIVE_SECONDS = 5.0
PROTOCOL_VERSION = 21


class RequestFailed(Exception):
    """The server answered with an error."""


class TopicClient(Protocol):
    """A client program's way to one topic."""

    @property
    def recorder(self) -> "Recorder": ...
    @property
    def topic(self) -> str: ...
    async def connection(self) -> "Connection":
        """Connection to the topic's owner. Raises OSError, TimeoutError or RequestFailed; the caller tries again later."""


class Handler(Protocol):
    """A producer or consumer on a connection."""

    def on_command(self, command: BaseCommand, payload: bytes) -> None: ...


class Hearer(Protocol):
    """A checker."""

    def handle(self, event: Event) -> None: ...


@dataclass(slots=True)
class Recorder:
    """Recorder of events, and source of numbers for sessions and connections."""

    checker: Hearer
    trace: Trace
    loop_time: Callable[[], float]
    kinds: dict[str, int] = field(default_factory=dict)
    _last_id: int = 0
    _now: float = 0.0

    def clock(self) -> float:
        """Virtual time, a nanosecond later at each call: of two things sent in one callback the order counts."""
        self._now = max(self.loop_time(), self._now + 1e-9)
        return self._now

    def next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def record(self, event: Event) -> None:
        kind = type(event).__name__
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        self.trace.record("client", describe(event))
        self.checker.handle(event)


def describe(event: Event) -> str:
    """One line for the trace; payloads by their checksum."""
    if isinstance(event, Sent | Delivered):
        where = event.position if isinstance(event, Delivered) else "to server"
        items = " ".join(f"{m.id.producer}:{m.id.sequence}/{m.key}/{crc32c(m.payload):08x}" for m in event.messages)
        return f"{type(event).__name__} session={event.session} {where} {items}"
    return str(event)


class Connection(asyncio.Protocol):
    """One TCP connection, from CONNECT on."""

    def __init__(self, recorder: Recorder) -> None:
        self.number = recorder.next_id()
        self.lost = asyncio.Event()
        self.producers: dict[int, Handler] = {}
        self.consumers: dict[int, Handler] = {}
        self._recorder = recorder
        self._transport: asyncio.Transport
        self._buffer = bytearray()
        self._order = FrameOrder()
        self._requests: dict[int, tuple[asyncio.Future[BaseCommand], float]] = {}
        self._pings: deque[tuple[asyncio.Future[None], float]] = deque()
        self._keeping: asyncio.Task[None] | None = None
        self._connected: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    # Out

    async def handshake(self) -> None:
        connect = pb.CommandConnect(client_version="simulation", protocol_version=PROTOCOL_VERSION)
        self.send(BaseCommand(type=BaseCommand.CONNECT, connect=connect))
        async with asyncio.timeout(REQUEST_SECONDS_MAX):
            await self._connected
        self._recorder.record(Connected(self._recorder.clock(), self.number))
        self._keeping = asyncio.create_task(self._keep_alive())

    async def _keep_alive(self) -> None:
        """Pings: else a client that sends nothing would not notice that a host without power is gone."""
        while not self.lost.is_set():
            await asyncio.sleep(KEEP_ALIVE_SECONDS)
            try:
                await self.ping()
            except OSError:
                return

    def send(self, command: BaseCommand, payload: bytes = b"") -> None:
        self._order.sent(command)
        self._transport.write(frame(command, payload))

    async def request(self, command: BaseCommand, request_id: int) -> BaseCommand:
        """RequestFailed for an error, ConnectionError or TimeoutError for none; then the connection is closed."""
        future = asyncio.get_running_loop().create_future()
        if self.lost.is_set():
            raise ConnectionResetError("the connection is lost")
        self._requests[request_id] = (future, self._recorder.clock())
        self.send(command)
        try:
            async with asyncio.timeout(REQUEST_SECONDS_MAX):
                return await future  # type: ignore[no-any-return]
        except TimeoutError:
            self.abort()
            raise
        finally:
            self._requests.pop(request_id, None)

    async def ping(self) -> None:
        """A round trip."""
        future = asyncio.get_running_loop().create_future()
        self._pings.append((future, self._recorder.clock()))
        self.send(BaseCommand(type=BaseCommand.PING, ping=pb.CommandPing()))
        try:
            async with asyncio.timeout(REQUEST_SECONDS_MAX):
                await future
        except TimeoutError:
            self.abort()
            raise

    def next_id(self) -> int:
        return self._recorder.next_id()

    def abort(self) -> None:
        self._transport.abort()

    # In

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        for command, payload in take_frames(self._buffer):
            self._on_command(command, payload)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set()
        if self._keeping is not None:
            self._keeping.cancel()
        _fail(self._connected, exc)
        for future, _ in self._requests.values():
            _fail(future, exc)
        for ping, _ in self._pings:
            _fail(ping, exc)

    def _on_command(self, command: BaseCommand, payload: bytes) -> None:
        kind = command.type
        self._order.received(command)
        if kind == BaseCommand.PING:
            self.send(BaseCommand(type=BaseCommand.PONG, pong=pb.CommandPong()))
        elif kind == BaseCommand.PONG:
            self._on_pong()
        elif kind == BaseCommand.CONNECTED:
            self._connected.set_result(None)
        elif kind in PRODUCER_COMMANDS:
            body = getattr(command, PRODUCER_COMMANDS[kind])
            if body.producer_id in self.producers:
                self.producers[body.producer_id].on_command(command, payload)
        elif kind in CONSUMER_COMMANDS:
            body = getattr(command, CONSUMER_COMMANDS[kind])
            if body.consumer_id in self.consumers:
                self.consumers[body.consumer_id].on_command(command, payload)
        else:
            self._on_response(command)

    def _on_pong(self) -> None:
        future, started = self._pings.popleft()
        self._recorder.record(RoundTrip(self._recorder.clock(), self.number, started))
        if not future.done():
            future.set_result(None)

    def _on_response(self, command: BaseCommand) -> None:
        body = getattr(command, RESPONSES[command.type])
        found = self._requests.get(body.request_id)
        if found is None:
            return
        future, started = found
        self._recorder.record(RoundTrip(self._recorder.clock(), self.number, started))
        if future.done():
            return
        error = _error_of(command, body)
        if error is None:
            future.set_result(command)
        else:
            future.set_exception(RequestFailed(error))


def _fail(future: "asyncio.Future[Any]", cause: Exception | None) -> None:
    if not future.done():
        future.set_exception(ConnectionResetError(f"the connection is lost: {cause}"))
        future.exception()  # taken: there may be nobody who waits any more


def _error_of(command: BaseCommand, body: Any) -> str | None:
    if command.type in OF_TRANSACTIONS and body.HasField("error"):
        return f"{pb.ServerError.Name(body.error)}: {body.message}"
    if command.type == BaseCommand.ERROR:
        return f"{pb.ServerError.Name(command.error.error)}: {command.error.message}"
    if command.type == BaseCommand.ACK_RESPONSE and command.ack_response.HasField("error"):
        return f"{pb.ServerError.Name(command.ack_response.error)}: {command.ack_response.message}"
    failed = getattr(body, "response", 0)
    if command.type == BaseCommand.LOOKUP_RESPONSE and failed == pb.CommandLookupTopicResponse.Failed:
        return command.lookup_topic_response.message
    if command.type == BaseCommand.PARTITIONED_METADATA_RESPONSE and failed:
        return command.partition_metadata_response.message
    return None


PRODUCER_COMMANDS = {
    BaseCommand.SEND_RECEIPT: "send_receipt",
    BaseCommand.SEND_ERROR: "send_error",
    BaseCommand.CLOSE_PRODUCER: "close_producer",
}
CONSUMER_COMMANDS = {
    BaseCommand.MESSAGE: "message",
    BaseCommand.CLOSE_CONSUMER: "close_consumer",
    BaseCommand.ACTIVE_CONSUMER_CHANGE: "active_consumer_change",
    BaseCommand.REACHED_END_OF_TOPIC: "reached_end_of_topic",
}
RESPONSES = {
    BaseCommand.SUCCESS: "success",
    BaseCommand.ERROR: "error",
    BaseCommand.PRODUCER_SUCCESS: "producer_success",
    BaseCommand.ACK_RESPONSE: "ack_response",
    BaseCommand.LOOKUP_RESPONSE: "lookup_topic_response",
    BaseCommand.PARTITIONED_METADATA_RESPONSE: "partition_metadata_response",
    BaseCommand.GET_LAST_MESSAGE_ID_RESPONSE: "get_last_message_id_response",
    BaseCommand.CONSUMER_STATS_RESPONSE: "consumer_stats_response",
    BaseCommand.TC_CLIENT_CONNECT_RESPONSE: "tc_client_connect_response",
    BaseCommand.NEW_TXN_RESPONSE: "new_txn_response",
    BaseCommand.ADD_PARTITION_TO_TXN_RESPONSE: "add_partition_to_txn_response",
    BaseCommand.ADD_SUBSCRIPTION_TO_TXN_RESPONSE: "add_subscription_to_txn_response",
    BaseCommand.END_TXN_RESPONSE: "end_txn_response",
}
OF_TRANSACTIONS = frozenset(kind for kind, name in RESPONSES.items() if "txn" in name or "tc_client" in name)


class Client:
    """A client program: keeps one connection, and looks its topic up on each new one."""

    def __init__(self, recorder: Recorder, topic: str) -> None:
        self.recorder, self.topic = recorder, topic
        self._connection: Connection | None = None
        self._connecting = asyncio.Lock()

    async def connection(self) -> Connection:
        """The connection, ready for commands. Raises OSError, TimeoutError or RequestFailed; the caller tries again later."""
        async with self._connecting:
            if self._connection is None or self._connection.lost.is_set():
                self._connection = await self._connect()
            return self._connection

    async def _connect(self) -> Connection:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(lambda: Connection(self.recorder), SERVER, PORT)
        try:
            await connection.handshake()
            await self._look_up(connection)
        except BaseException:
            connection.abort()
            raise
        return connection

    async def _look_up(self, connection: Connection) -> None:
        number = connection.next_id()
        asked = pb.CommandPartitionedTopicMetadata(topic=self.topic, request_id=number)
        await connection.request(BaseCommand(type=BaseCommand.PARTITIONED_METADATA, partition_metadata=asked), number)
        number = connection.next_id()
        lookup = pb.CommandLookupTopic(topic=self.topic, request_id=number)
        answer = await connection.request(BaseCommand(type=BaseCommand.LOOKUP, lookup_topic=lookup), number)
        assert answer.lookup_topic_response.response == pb.CommandLookupTopicResponse.Connect
