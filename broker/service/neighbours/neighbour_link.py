"""One connection of this broker to another, over the binary protocol: handshake, keep-alive, its end.

Owns the socket and the question that is open before and during the handshake; subclasses handle all other commands. A broker
that is silent for too long counts as gone.
"""

import asyncio
from typing import cast

from wire.client_end import KEEP_ALIVE_SECONDS, ClientEnd, Silence
from wire.errors import RemoteError
from wire.frames import PING, encode
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand

from ...errors import BrokerError, ServerError
from ..addresses import Advertised
from .neighbours import Neighbours

SECONDS_MAX = 15.0
_PROTOCOL_VERSION = 21
_VERSION = "Interpulse broker"


class NeighbourLink(asyncio.Protocol):
    """`what` names the purpose of the link in messages. One question at a time; `handle` gets commands that are not the
    link's own.
    """

    def __init__(self, address: Advertised, neighbours: Neighbours, what: str) -> None:
        self._broker_url = neighbours.binary_url(address)
        self._neighbours = neighbours
        self._what = what
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[BaseCommand] = self._loop.create_future()
        self._end = ClientEnd(_hello(), neighbours.credentials, self._loop.time())
        self._watchdog: asyncio.TimerHandle | None = None
        self.has_ended = False

    # ---- For its heirs

    def handle(self, command: BaseCommand, payload: memoryview) -> None:
        """Takes a command; by default it is the answer to the open question."""
        if not self._answer.done():
            self._answer.set_result(command)

    def on_end(self, reason: str) -> None:
        """Once."""

    # ---- Talking

    async def open(self) -> None:
        """BrokerError(SERVICE_NOT_READY)."""
        try:
            async with asyncio.timeout(SECONDS_MAX):
                await self._neighbours.connect(lambda: self, self._broker_url)
        except (OSError, TimeoutError, ValueError) as error:
            raise self.failure(str(error) or "no answer in time") from error
        self._watch()
        await self.asked(self._end.greeting())

    async def ask(self, command: BaseCommand) -> BaseCommand:
        """The answer; BrokerError when it is an error, or does not come."""
        return await self.asked(encode(command))

    async def asked(self, frame: bytes) -> BaseCommand:
        if self._transport is None or self.has_ended:
            raise self.failure("the connection has ended")
        self._answer = self._loop.create_future()
        self._transport.write(frame)
        try:
            async with asyncio.timeout(SECONDS_MAX):
                answered = await self._answer
        except TimeoutError:
            raise self.failure("no answer in time") from None
        refused = _refusal(answered)
        if refused:
            raise self.failure(refused)
        return answered

    def send(self, command: BaseCommand) -> None:
        if self._transport is not None and not self.has_ended:
            self._transport.write(encode(command))

    def end(self, reason: str) -> None:
        """Ending twice is fine."""
        if self.has_ended:
            return
        self.has_ended = True
        if self._watchdog is not None:
            self._watchdog.cancel()
        if self._transport is not None:
            self._transport.abort()
        if not self._answer.done():
            self._answer.set_exception(self.failure(reason))
            self._answer.exception()  # marked as retrieved, also without a waiting caller
        self.on_end(reason)

    def failure(self, reason: str) -> BrokerError:
        message = f"{self._what} at {self._broker_url} cannot be reached: {reason}"
        return BrokerError(ServerError.SERVICE_NOT_READY, message)

    # ---- The socket

    def _watch(self) -> None:
        verdict = self._end.look(self._loop.time())
        if verdict is Silence.LOST:
            self.end(f"silent for {self._end.silent_seconds(self._loop.time()):.0f} s")
            return
        if verdict is Silence.ASK and self._transport is not None:
            self._transport.write(PING)
        self._watchdog = self._loop.call_later(KEEP_ALIVE_SECONDS / 2, self._watch)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.end(str(exc or "closed by the other broker"))

    def data_received(self, data: bytes) -> None:
        self._end.feed(data, self._loop.time())
        try:
            while not self.has_ended and (received := self._end.taken()) is not None:
                self.handle(received.command, memoryview(received.section))
        except RemoteError as mistake:
            self.end(mistake.reason)
        replies = self._end.take_replies()
        if replies and self._transport is not None and not self.has_ended:
            self._transport.write(replies)


def lookup(topic: str) -> BaseCommand:
    """LOOKUP that makes the broker take a bundle without owner which it is to have."""
    asked = api.CommandLookupTopic(topic=topic, request_id=4, authoritative=True)
    return BaseCommand(type=BaseCommand.LOOKUP, lookup_topic=asked)


def _refusal(answered: BaseCommand) -> str:
    match answered.type:
        case BaseCommand.ERROR:
            return answered.error.message
        case BaseCommand.SEND_ERROR:
            return answered.send_error.message
        case BaseCommand.LOOKUP_RESPONSE if answered.lookup_topic_response.response == api.CommandLookupTopicResponse.Failed:
            return answered.lookup_topic_response.message
    return ""


def _hello() -> api.CommandConnect:
    flags = api.FeatureFlags(supports_auth_refresh=True)
    return api.CommandConnect(client_version=_VERSION, protocol_version=_PROTOCOL_VERSION, feature_flags=flags)
