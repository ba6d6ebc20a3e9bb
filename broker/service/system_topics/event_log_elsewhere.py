"""`__change_events` where another broker serves it, ours or Apache's: read and written over the binary protocol.

Owns one connection for the reading and one for each write.
"""

from array import array
from collections.abc import Callable
from typing import Any

from wire.frames import encode
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand
from wire.kernels.metadata import scan
from wire.position import Position
from wire.run import EntryRun

from ..addresses import Advertised, Answer
from ..neighbours.neighbour_link import NeighbourLink, lookup
from ..neighbours.neighbours import Neighbours
from .event_log import OnMessage

_PERMITS = 1000
_EARLIEST = api.MessageIdData(ledger_id=(1 << 64) - 1, entry_id=(1 << 64) - 1)
_SUBSCRIPTION = "__system_reader"


class EventLogElsewhere:
    """An `EventLog` (`topic_policies_log`) of the broker that is `found`; failures are SERVICE_NOT_READY."""

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
        """Opens the link. The broker that is to have the topic is asked to take it; the former owner may have given it up
        meanwhile."""
        await link.open()
        if self._found.is_redirect:
            await link.ask(lookup(self._topic))

    def close(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.is_closing = True
            link.end("not needed any more")


class _Link(NeighbourLink):
    """One connection with at most one consumer and one producer."""

    def __init__(
        self, address: Advertised, neighbours: Neighbours, on_message: OnMessage, on_end: Callable[[str], None]
    ) -> None:
        super().__init__(address, neighbours, "topic policies")
        self._on_message, self._on_end = on_message, on_end
        self._unread = 0
        self.is_closing = False
        self.producer_name = ""

    async def asked(self, frame: bytes) -> BaseCommand:
        answered = await super().asked(frame)
        if answered.type == BaseCommand.PRODUCER_SUCCESS:
            self.producer_name = answered.producer_success.producer_name
        return answered

    async def publish(self, section: bytes) -> Position:
        send = BaseCommand(type=BaseCommand.SEND, send=api.CommandSend(producer_id=1, sequence_id=0, num_messages=1))
        answered = await self.asked(encode(send, section))
        return _position(answered.send_receipt.message_id)

    def on_end(self, reason: str) -> None:
        if not self.is_closing:
            self._on_end(reason)

    def handle(self, command: BaseCommand, payload: memoryview) -> None:
        match command.type:
            case BaseCommand.MESSAGE:
                self._on_message(_position(command.message.message_id), payload)
                self._unread += _messages_in(payload)
                if self._unread >= _PERMITS // 2:
                    self.send(_flow(self._unread))
                    self._unread = 0
            case BaseCommand.ACTIVE_CONSUMER_CHANGE | BaseCommand.REACHED_END_OF_TOPIC:
                pass
            case BaseCommand.CLOSE_CONSUMER | BaseCommand.CLOSE_PRODUCER:
                self.end("the topic was unloaded there")
            case _:
                super().handle(command, payload)


def _messages_in(section: memoryview) -> int:
    """Returns the number of permits that an entry takes: it may be a batch."""
    entry = EntryRun(0, 0, section, array("I", (0, len(section))), 0)
    return scan(entry).message_counts[0]


def _position(message_id: Any) -> Position:
    """Returns the position in a MessageIdData, whose numbers are unsigned and stand for signed ones."""
    return Position(*(each - (1 << 64) if each >> 63 else each for each in (message_id.ledger_id, message_id.entry_id)))


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
