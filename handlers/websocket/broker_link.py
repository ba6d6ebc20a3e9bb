"""BrokerLink: one session's connection to one broker: handshake, questions and answers, frames by producer or consumer.

Owns the transport, which may be a pipe to the broker of the same process. The frames of a place go to the session; a link that
ends reports so once. A broker that is silent for too long counts as gone.
"""

import asyncio
from typing import Protocol, cast

from wire.client_end import KEEP_ALIVE_SECONDS, ClientEnd, Received, Silence
from wire.errors import RemoteError
from wire.frames import FRAME_PADDING_BYTES, PING, encode
from wire.generated.pulsar_api_pb2 import BaseCommand, CommandConnect

from .errors import BrokerRefused, LinkLost

ANSWER_SECONDS_MAX = 30.0
_QUESTIONS = {
    BaseCommand.LOOKUP: "lookup_topic",
    BaseCommand.PARTITIONED_METADATA: "partition_metadata",
    BaseCommand.PRODUCER: "producer",
    BaseCommand.SUBSCRIBE: "subscribe",
    BaseCommand.UNSUBSCRIBE: "unsubscribe",
}
_ANSWERS = {
    BaseCommand.LOOKUP_RESPONSE: "lookup_topic_response",
    BaseCommand.PARTITIONED_METADATA_RESPONSE: "partition_metadata_response",
    BaseCommand.PRODUCER_SUCCESS: "producer_success",
    BaseCommand.SUCCESS: "success",
    BaseCommand.ERROR: "error",
}
_PLACES = {
    BaseCommand.SEND_RECEIPT: ("send_receipt", "producer_id"),
    BaseCommand.SEND_ERROR: ("send_error", "producer_id"),
    BaseCommand.CLOSE_PRODUCER: ("close_producer", "producer_id"),
    BaseCommand.MESSAGE: ("message", "consumer_id"),
    BaseCommand.REACHED_END_OF_TOPIC: ("reached_end_of_topic", "consumer_id"),
    BaseCommand.CLOSE_CONSUMER: ("close_consumer", "consumer_id"),
}
"""Field of a frame for a producer or consumer, and the field of its number."""


class LinkOwner(Protocol):
    """Session, as its links see it."""

    def on_frame(self, link: "BrokerLink", place: int, received: Received) -> None: ...
    def on_link_end(self, link: "BrokerLink") -> None:
        """Once, and not for a link that the session closed."""

    def on_blocked(self) -> None:
        """The broker stopped to read, or reads again."""


class BrokerLink(asyncio.Protocol):
    """`greeted` first."""

    def __init__(self, hello: CommandConnect, owner: LinkOwner) -> None:
        self._loop = asyncio.get_running_loop()
        self._end = ClientEnd(hello, None, self._loop.time())
        self._owner: LinkOwner | None = owner
        self._greeting: asyncio.Future[BaseCommand] = self._loop.create_future()
        self._waiting: dict[int, asyncio.Future[BaseCommand]] = {}
        self._watchdog: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self.message_bytes_max = 5 << 20
        self.has_ended = self.is_blocked = self._is_paused = False

    async def greeted(self) -> None:
        """Waits until the broker lets the client in. BrokerRefused, LinkLost."""
        answer = await self._answer(self._greeting)
        self.message_bytes_max = answer.connected.max_message_size or self.message_bytes_max
        self._end.allow(self.message_bytes_max + FRAME_PADDING_BYTES)
        self._watch()

    async def ask(self, command: BaseCommand) -> BaseCommand:
        """Answer to a command with a number. BrokerRefused, LinkLost."""
        number = self._end.request_id()
        getattr(command, _QUESTIONS[command.type]).request_id = number
        answer = self._waiting[number] = self._loop.create_future()
        self.send(encode(command))
        try:
            return await self._answer(answer)
        finally:
            self._waiting.pop(number, None)

    async def _answer(self, answer: "asyncio.Future[BaseCommand]") -> BaseCommand:
        if self.has_ended and not answer.done():
            raise LinkLost("the connection to the broker has ended")
        try:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                command = await answer
        except TimeoutError:
            raise LinkLost(f"the broker did not answer within {ANSWER_SECONDS_MAX:g} s") from None
        if command.type == BaseCommand.ERROR:
            raise BrokerRefused(command.error.error, command.error.message)
        return command

    def send(self, frame: bytes) -> None:
        if self._transport is not None and not self.has_ended:
            self._transport.write(frame)

    def pause(self) -> None:
        """The client does not read: the broker has to wait. It still gets signs of life."""
        if self._transport is not None and not self.has_ended and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._transport is not None and not self.has_ended and self._is_paused:
            self._is_paused = False
            self._transport.resume_reading()

    def close(self) -> None:
        """Closes after the written bytes are sent; the owner gets nothing more. Closing twice is fine."""
        self._owner = None
        if self._transport is not None:
            self._transport.close()
        self._ended("the session has ended")

    def _ended(self, reason: str) -> None:
        if self.has_ended:
            return
        self.has_ended = True
        if self._watchdog is not None:
            self._watchdog.cancel()
        for answer in (self._greeting, *self._waiting.values()):
            if not answer.done():
                answer.set_exception(LinkLost(reason))
                answer.exception()  # marked as retrieved, also without a waiting caller
        if self._owner is not None:
            self._owner.on_link_end(self)

    # ---- The transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(self._end.greeting())

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended(str(exc or "the broker closed the connection"))

    def pause_writing(self) -> None:
        self._blocked(is_blocked=True)

    def resume_writing(self) -> None:
        self._blocked(is_blocked=False)

    def _blocked(self, *, is_blocked: bool) -> None:
        self.is_blocked = is_blocked
        if self._owner is not None:
            self._owner.on_blocked()

    def data_received(self, data: bytes) -> None:
        self._end.feed(data, self._loop.time())
        try:
            while not self.has_ended and (received := self._end.taken()) is not None:
                self._handle(received)
        except RemoteError as mistake:
            self._abort(mistake.reason)
        replies = self._end.take_replies()
        if replies:
            self.send(replies)

    def _handle(self, received: Received) -> None:
        command = received.command
        place = _PLACES.get(command.type)
        if place is not None:
            if self._owner is not None:
                self._owner.on_frame(self, getattr(getattr(command, place[0]), place[1]), received)
        elif not self._greeting.done():
            if command.type in (BaseCommand.CONNECTED, BaseCommand.ERROR):
                self._greeting.set_result(command)
        elif command.type in _ANSWERS:
            answer = self._waiting.get(getattr(command, _ANSWERS[command.type]).request_id)
            if answer is not None and not answer.done():
                answer.set_result(command)

    def _abort(self, reason: str) -> None:
        if self._transport is not None:
            self._transport.abort()
        self._ended(reason)

    def _watch(self) -> None:
        verdict = self._end.look(self._loop.time())
        if verdict is Silence.LOST and not self._is_paused:
            self._abort("the broker is silent")
            return
        if verdict is Silence.ASK or self._is_paused:
            self.send(PING)
        self._watchdog = self._loop.call_later(KEEP_ALIVE_SECONDS / 2, self._watch)
