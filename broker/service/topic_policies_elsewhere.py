"""`__change_events` where another broker serves it, ours or Apache's: read and written over the binary protocol.

Owns one connection for the reading and one for each write. A broker that is silent for too long is taken for gone.
"""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from wire.errors import RemoteError
from wire.frames import PING, PONG, encode, next_frame
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand
from wire.position import Position

from ..errors import BrokerError, ServerError
from .lookups import Advertised, Answer
from .neighbours import Credentials, Neighbours
from .topic_policies_log import OnMessage

_SECONDS_MAX = 15.0
_SILENT_SECONDS_MAX = 60.0
_PERMITS = 1000
_PROTOCOL_VERSION = 21
_VERSION = "Magnetar broker"
_EARLIEST = api.MessageIdData(ledger_id=(1 << 64) - 1, entry_id=(1 << 64) - 1)
_SUBSCRIPTION = "__system_reader"


class EventLogElsewhere:
    """An `EventLog` (`topic_policies_log`) of the broker that is `found`; what goes wrong is SERVICE_NOT_READY."""

    def __init__(self, topic: str, found: Answer, neighbours: Neighbours, new_name: Callable[[], str]) -> None:
        self._topic = topic
        self._found, self._neighbours = found, neighbours
        self._new_name = new_name
        self._link: _Link | None = None

    async def read(self, on_message: OnMessage, on_end: Callable[[str], None]) -> Position:
        self._link = link = _Link(self._found.address, self._neighbours, on_message, on_end)
        await self._open(link)
        await link.ask(_subscribe(self._topic, f"{_SUBSCRIPTION}-{self._new_name()}"))
        link.send(_flow(_PERMITS))
        last = (await link.ask(_last_message())).get_last_message_id_response.last_message_id
        return _position(last)

    async def append(self, section_of: Callable[[str], bytes]) -> Position:
        link = _Link(self._found.address, self._neighbours, lambda position, section: None, lambda reason: None)
        try:
            await self._open(link)
            await link.ask(_producer(self._topic))
            return await link.publish(section_of(link.producer_name))
        finally:
            link.end("written")

    async def _open(self, link: "_Link") -> None:
        """Who is to have the topic is asked to take it; who had it may have given it up meanwhile, for somebody else."""
        await link.open()
        if self._found.is_redirect:
            await link.ask(_lookup(self._topic))

    def close(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.is_closing = True
            link.end("not needed any more")


class _Link(asyncio.Protocol):
    """One connection with at most one consumer, one producer and one question at a time."""

    def __init__(
        self, address: Advertised, neighbours: Neighbours, on_message: OnMessage, on_end: Callable[[str], None]
    ) -> None:
        self._broker_url = neighbours.binary_url(address)
        self._neighbours = neighbours
        self._on_message, self._on_end = on_message, on_end
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[BaseCommand] = self._loop.create_future()
        self._rest = b""
        self._heard_at = self._loop.time()
        self._watchdog: asyncio.TimerHandle | None = None
        self._unread = 0
        self._has_ended = False
        self.is_closing = False
        self.producer_name = ""

    async def open(self) -> None:
        try:
            async with asyncio.timeout(_SECONDS_MAX):
                await self._neighbours.connect(lambda: self, self._broker_url)
        except (OSError, TimeoutError, ValueError) as error:
            raise self._failure(str(error) or "no answer in time") from error
        self._watch()
        await self.ask(_connect(self._neighbours.credentials()))

    async def ask(self, command: BaseCommand) -> BaseCommand:
        """The answer; BrokerError when it is an error, or does not come."""
        return await self._asked(encode(command))

    async def publish(self, section: bytes) -> Position:
        send = BaseCommand(type=BaseCommand.SEND, send=api.CommandSend(producer_id=1, sequence_id=0, num_messages=1))
        answered = await self._asked(encode(send, section))
        return _position(answered.send_receipt.message_id)

    async def _asked(self, frame: bytes) -> BaseCommand:
        if self._transport is None or self._has_ended:
            raise self._failure("the connection has ended")
        self._answer = self._loop.create_future()
        self._transport.write(frame)
        try:
            async with asyncio.timeout(_SECONDS_MAX):
                answered = await self._answer
        except TimeoutError:
            raise self._failure("no answer in time") from None
        refused = _refusal(answered)
        if refused:
            raise self._failure(refused)
        if answered.type == BaseCommand.PRODUCER_SUCCESS:
            self.producer_name = answered.producer_success.producer_name
        return answered

    def send(self, command: BaseCommand) -> None:
        if self._transport is not None and not self._has_ended:
            self._transport.write(encode(command))

    def end(self, reason: str) -> None:
        """Ending twice is fine."""
        if self._has_ended:
            return
        self._has_ended = True
        if self._watchdog is not None:
            self._watchdog.cancel()
        if self._transport is not None:
            self._transport.abort()
        if not self._answer.done():
            self._answer.set_exception(self._failure(reason))
            self._answer.exception()  # seen, also when nobody waits
        if not self.is_closing:
            self._on_end(reason)

    def _failure(self, reason: str) -> BrokerError:
        message = f"topic policies at {self._broker_url} cannot be reached: {reason}"
        return BrokerError(ServerError.SERVICE_NOT_READY, message)

    def _watch(self) -> None:
        silent = self._loop.time() - self._heard_at
        if silent > _SILENT_SECONDS_MAX:
            self.end(f"silent for {silent:.0f} s")
            return
        if silent > _SILENT_SECONDS_MAX / 2 and self._transport is not None:
            self._transport.write(PING)
        self._watchdog = self._loop.call_later(_SILENT_SECONDS_MAX / 4, self._watch)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.end(str(exc or "closed by the other broker"))

    def data_received(self, data: bytes) -> None:
        self._heard_at = self._loop.time()
        buffer, at = self._rest + data, 0
        try:
            while not self._has_ended and (frame := next_frame(buffer, at, len(buffer))) is not None:
                at = frame.end
                self._handle(frame.command, frame.payload)
        except RemoteError as mistake:
            self.end(mistake.reason)
        self._rest = buffer[at:]

    def _handle(self, command: BaseCommand, payload: memoryview) -> None:
        match command.type:
            case BaseCommand.MESSAGE:
                self._on_message(_position(command.message.message_id), payload)
                self._unread += 1
                if self._unread >= _PERMITS // 2:
                    self.send(_flow(self._unread))
                    self._unread = 0
            case BaseCommand.PING:
                assert self._transport is not None
                self._transport.write(PONG)
            case BaseCommand.AUTH_CHALLENGE:
                self.send(_auth_response(self._neighbours.credentials()))
            case BaseCommand.PONG | BaseCommand.ACTIVE_CONSUMER_CHANGE | BaseCommand.REACHED_END_OF_TOPIC:
                pass
            case BaseCommand.CLOSE_CONSUMER | BaseCommand.CLOSE_PRODUCER:
                self.end("the topic was unloaded there")
            case _ if not self._answer.done():
                self._answer.set_result(command)


def _refusal(answered: BaseCommand) -> str:
    match answered.type:
        case BaseCommand.ERROR:
            return answered.error.message
        case BaseCommand.SEND_ERROR:
            return answered.send_error.message
        case BaseCommand.LOOKUP_RESPONSE if answered.lookup_topic_response.response == api.CommandLookupTopicResponse.Failed:
            return answered.lookup_topic_response.message
    return ""


def _position(message_id: Any) -> Position:
    """Of MessageIdData, whose numbers are unsigned and stand for signed ones."""
    return Position(*(each - (1 << 64) if each >> 63 else each for each in (message_id.ledger_id, message_id.entry_id)))


def _connect(own: Credentials) -> BaseCommand:
    flags = api.FeatureFlags(supports_auth_refresh=True)
    command = api.CommandConnect(client_version=_VERSION, protocol_version=_PROTOCOL_VERSION, feature_flags=flags)
    if own.method:
        command.auth_method_name, command.auth_data = own.method, own.data
    return BaseCommand(type=BaseCommand.CONNECT, connect=command)


def _auth_response(own: Credentials) -> BaseCommand:
    """To a broker whose time for our token is up."""
    data = api.AuthData(auth_method_name=own.method, auth_data=own.data)
    told = api.CommandAuthResponse(client_version=_VERSION, protocol_version=_PROTOCOL_VERSION, response=data)
    return BaseCommand(type=BaseCommand.AUTH_RESPONSE, auth_response=told)


def _lookup(topic: str) -> BaseCommand:
    """Whoever is to have a bundle that nobody has takes it when it is asked so."""
    asked = api.CommandLookupTopic(topic=topic, request_id=4, authoritative=True)
    return BaseCommand(type=BaseCommand.LOOKUP, lookup_topic=asked)


def _subscribe(topic: str, name: str) -> BaseCommand:
    command = api.CommandSubscribe(topic=topic, subscription=name, sub_type=api.CommandSubscribe.Exclusive, consumer_id=1)
    command.request_id, command.consumer_name, command.durable, command.read_compacted = 1, name, False, True
    command.initial_position = api.CommandSubscribe.Earliest
    command.start_message_id.CopyFrom(_EARLIEST)
    return BaseCommand(type=BaseCommand.SUBSCRIBE, subscribe=command)


def _flow(permits: int) -> BaseCommand:
    return BaseCommand(type=BaseCommand.FLOW, flow=api.CommandFlow(consumer_id=1, message_permits=permits))


def _last_message() -> BaseCommand:
    asked = api.CommandGetLastMessageId(consumer_id=1, request_id=2)
    return BaseCommand(type=BaseCommand.GET_LAST_MESSAGE_ID, get_last_message_id=asked)


def _producer(topic: str) -> BaseCommand:
    return BaseCommand(type=BaseCommand.PRODUCER, producer=api.CommandProducer(topic=topic, producer_id=1, request_id=3))
