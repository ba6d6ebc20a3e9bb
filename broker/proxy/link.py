"""BrokerLink: the proxy's own connection to one broker, for requests of clients before they connect to a broker themselves.

Requests of all clients share it, each under a number of ours. One that takes too long fails all: the broker may be gone without
a word.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, cast

from ports.logs import line
from wire.client_end import ClientEnd
from wire.errors import RemoteError
from wire.frames import encode
from wire.generated.pulsar_api_pb2 import BaseCommand, CommandConnect, FeatureFlags

from .clients import Client
from .way import Way

log = logging.getLogger(__name__)

PROXY_VERSION = "Pulsar proxy (Interpulse)"
PROTOCOL_VERSION = 21
ANSWER_SECONDS_MAX = 30.0
WRITE_BYTES_MAX = 8 * 1024 * 1024
"""A broker that does not read is given up."""


class LinkFailed(Exception):
    """The broker cannot be asked; another one may know."""


class BrokerLink(asyncio.Protocol):
    """`open` first. `on_end` is called once, when it is over."""

    def __init__(
        self, address: str, frame_bytes_max: int, on_end: Callable[["BrokerLink"], None], way: Way, client: Client
    ) -> None:
        """`client`: the client that asks; a broker decides by it."""
        self.address, self._way, self._client = address, way, client
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._connected: asyncio.Future[None] = self._loop.create_future()
        self._waiting: dict[int, asyncio.Future[BaseCommand]] = {}
        self._end = ClientEnd(self._hello(), None, self._loop.time(), frame_bytes_max)
        self._transport: asyncio.Transport | None = None
        self._has_ended = False

    async def open(self, seconds: float) -> None:
        """LinkFailed."""
        host, _, port = self.address.rpartition(":")
        try:
            async with asyncio.timeout(seconds):
                await self._way.connect(lambda: self, host.strip("[]"), int(port))
                await self._connected
        except (OSError, TimeoutError, ValueError) as error:
            self.end(f"cannot connect: {error or 'no answer in time'}")
            raise LinkFailed(f"{self.address}: {error or 'no answer in time'}") from error

    async def ask(self, command: BaseCommand) -> BaseCommand:
        """The answer, with the request id of the question again. LinkFailed."""
        if self._has_ended or self._transport is None:
            raise LinkFailed(f"{self.address}: the connection has ended")
        if self._transport.get_write_buffer_size() > WRITE_BYTES_MAX:
            self.end("the broker does not read")
            raise LinkFailed(f"{self.address}: it does not read")
        body, number = body_of(command), self._end.request_id()
        asked, body.request_id = body.request_id, number
        answer = self._waiting[number] = self._loop.create_future()
        self._transport.write(encode(command))
        try:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                answered: BaseCommand = await answer
        except TimeoutError:
            self.end(f"no answer in {ANSWER_SECONDS_MAX:g} s")
            raise LinkFailed(f"{self.address}: no answer in {ANSWER_SECONDS_MAX:g} s") from None
        finally:
            self._waiting.pop(number, None)
            body.request_id = asked
        body_of(answered).request_id = asked
        return answered

    def end(self, reason: str) -> None:
        """Everything that waits fails. Ending twice is fine."""
        if self._has_ended:
            return
        self._has_ended = True
        log.info(line("link to broker ended", broker=self.address, reason=reason))
        if self._transport is not None:
            self._transport.abort()
        waiting: list[asyncio.Future[Any]] = [self._connected, *self._waiting.values()]
        for answer in waiting:
            if not answer.done():
                answer.set_exception(LinkFailed(f"{self.address}: {reason}"))
                answer.exception()  # marked as retrieved, also without a waiting caller
        self._on_end(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(self._end.greeting())

    def _hello(self) -> CommandConnect:
        hello = CommandConnect(
            client_version=PROXY_VERSION,
            protocol_version=PROTOCOL_VERSION,
            feature_flags=FeatureFlags(supports_auth_refresh=False),
        )
        if self._client.principal:
            hello.proxy_version = PROXY_VERSION
        self._way.own.introduce(hello, self._client)
        return hello

    def connection_lost(self, exc: Exception | None) -> None:
        self.end(str(exc or "closed by the broker"))

    def data_received(self, data: bytes) -> None:
        self._end.feed(data, self._loop.time())
        try:
            for received in self._end.all_taken():
                self._handle(received.command)
        except RemoteError as mistake:
            self.end(mistake.reason)
        replies = self._end.take_replies()
        if replies and self._transport is not None and not self._has_ended:
            self._transport.write(replies)

    def _handle(self, command: BaseCommand) -> None:
        if command.type == BaseCommand.CONNECTED:
            if not self._connected.done():
                self._connected.set_result(None)
        elif command.type == BaseCommand.ERROR and not self._connected.done():
            self.end(command.error.message)
        else:
            answer = self._waiting.get(getattr(body_of(command), "request_id", 0))
            if answer is not None and not answer.done():
                answer.set_result(command)


def body_of(command: BaseCommand) -> Any:
    """Returns the field that has the number of the command's type."""
    return next(value for field, value in command.ListFields() if field.number == command.type)
