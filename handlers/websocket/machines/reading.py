"""ReaderSession: messages of a topic from a place on become JSON; nothing stays at the broker after it. Pure.

Each text of the client makes room for one message (Apache's ReaderHandler), and a text with a type is a command. A lost reader
goes on behind the message that it was sent last.
"""

from collections.abc import Sequence

from broker.service.topic_name import TopicName
from wire.client_end import Received
from wire.errors import RemoteError
from wire.frames import encode
from wire.generated.pulsar_api_pb2 import BaseCommand, CommandAck, CommandMessage, CommandSubscribe, MessageIdData
from wire.received import Undecodable, opened_entry

from ..errors import CloseCode
from .consuming import DELIVERED_MAX, TURN_MESSAGES, about_message
from .effects import Effect, End, Now, Reattach, Send, Tell
from .json_forms import BadJson, end_of_topic_text, message_text, read_command
from .message_ids import text_of as id_text
from .options import ReaderOptions
from .window import Arrived, Window


class ReaderSession:
    """Satisfies `effects.Machine`. `name`: of the subscription that the broker keeps for it meanwhile."""

    def __init__(self, options: ReaderOptions, topics: Sequence[str], name: str) -> None:
        self.topics = topics
        self._options, self._name = options, name
        self._window = Window(0 if options.is_pulled else options.window)
        self._window.open(len(topics))
        self._read = [options.start for _ in topics]
        self._ended: set[int] = set()
        self._partitions = [TopicName.parse(topic).partition_index for topic in topics]

    @property
    def is_full(self) -> bool:
        return False

    def introduction(self, place: int) -> BaseCommand:
        subscribe = CommandSubscribe(
            topic=self.topics[place],
            subscription=self._name,
            sub_type=CommandSubscribe.Exclusive,
            consumer_id=place,
            request_id=0,
            consumer_name=self._options.name or self._name,
            durable=False,
            start_message_id=self._read[place],
        )
        return BaseCommand(type=BaseCommand.SUBSCRIBE, subscribe=subscribe)

    def on_attached(self, place: int, answer: BaseCommand, now: Now) -> list[Effect]:
        self._window.attached(place)
        return self._window.flow()

    def on_lost(self, place: int) -> None:
        self._window.lost(place)

    def on_received(self, place: int, received: Received, now: Now) -> list[Effect]:
        match received.command.type:
            case BaseCommand.MESSAGE:
                return self._arrived(place, received.command.message, received.section)
            case BaseCommand.REACHED_END_OF_TOPIC:
                self._ended.add(place)
            case BaseCommand.CLOSE_CONSUMER:
                return [Reattach(place, is_closed=True)]
        return []

    def _arrived(self, place: int, about: CommandMessage, section: bytes) -> list[Effect]:
        """A message that cannot be read is left out, as with Apache's client (cryptoFailureAction FAIL)."""
        at = about.message_id
        try:
            found = opened_entry(section)
        except (Undecodable, RemoteError):
            self._window.take(place, 1, iter(()), 0)
            return self._window.flow()
        size, redeliveries, start = found.batch_size, about.redelivery_count, self._read[place]
        is_same = (start.ledger_id, start.entry_id) == (at.ledger_id, at.entry_id)
        first = start.batch_index + 1 if size and is_same else -1
        messages = (each for each in found.messages if each.batch_index >= first)
        arrived = (Arrived(place, at.ledger_id, at.entry_id, size, redeliveries, each) for each in messages)
        self._window.take(place, found.permits, arrived, found.message_count)
        return self._deliver()

    def _deliver(self) -> list[Effect]:
        effects: list[Effect] = []
        read: dict[int, MessageIdData] = {}
        while len(effects) < TURN_MESSAGES and (arrived := self._window.next()) is not None:
            place, message = arrived.place, arrived.message
            text = id_text(
                arrived.ledger_id, arrived.entry_id, self._partitions[place], message.batch_index, arrived.batch_size
            )
            effects.append(Tell(message_text(text, message.payload, about_message(arrived))))
            self._read[place] = read[place] = MessageIdData(
                ledger_id=arrived.ledger_id, entry_id=arrived.entry_id, batch_index=message.batch_index
            )
        return [*effects, *(self._ack(place, at) for place, at in read.items()), *self._window.flow()]

    def _ack(self, place: int, at: MessageIdData) -> Send:
        """Everything before is read: the broker's figures of the reader follow it (Apache's ReaderImpl)."""
        ack = CommandAck(consumer_id=place, ack_type=CommandAck.Cumulative)
        ack.message_id.append(MessageIdData(ledger_id=at.ledger_id, entry_id=at.entry_id))
        return Send(place, encode(BaseCommand(type=BaseCommand.ACK, ack=ack)))

    def on_text(self, text: bytes, now: Now) -> list[Effect]:
        try:
            command = read_command(text)
        except BadJson as bad:
            return [End(CloseCode.INVALID_DATA, f"3: Failed to de-serialize from JSON: {bad}")]
        if command.type == "isEndOfTopic":
            return [Tell(end_of_topic_text(has_ended=len(self._ended) == len(self.topics)))]
        if command.type == "permit" and self._options.is_pulled:
            more = command.permit_messages or 0
        else:
            more = 0 if self._options.is_pulled else 1
        limit = DELIVERED_MAX if self._options.is_pulled else self._options.window
        self._window.allowed = max(0, min(self._window.allowed + more, limit))
        return self._deliver()

    def due(self) -> float | None:
        return 0.0 if self._window.has_next else None

    def on_timer(self, now: Now) -> list[Effect]:
        return self._deliver()
