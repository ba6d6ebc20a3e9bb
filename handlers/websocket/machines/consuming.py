"""ConsumerSession: messages of a subscription become JSON, and the client's commands become acknowledgements. Pure.

Flow control is Apache's: a client has at most receiverQueueSize messages that it has neither acknowledged nor refused; in pull
mode it has those that it gave permits for. A batch is acknowledged at the broker once all its messages are. DELIVERED_MAX
messages are remembered at most: the oldest is forgotten for a new one, and its id alone acknowledges it then.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pyroaring import BitMap

from broker.service.topic_name import TopicName
from wire.client_end import Received
from wire.errors import RemoteError
from wire.frames import encode
from wire.generated.pulsar_api_pb2 import (
    BaseCommand,
    CommandAck,
    CommandMessage,
    CommandRedeliverUnacknowledgedMessages,
    CommandSubscribe,
    MessageIdData,
)
from wire.received import Undecodable, opened_entry

from ..errors import CloseCode
from .burial import Burials
from .effects import Effect, End, Now, Reattach, Send, Tell, Unsubscribe
from .json_forms import BadJson, ConsumerCommand, end_of_topic_text, message_text, read_command, time_text
from .message_ids import NotAMessageId, message_id_of
from .message_ids import text_of as id_text
from .options import ConsumerOptions
from .redelivery import Redelivery
from .window import Arrived, Window

DELIVERED_MAX = 50_000
OLD_BATCH_MAX = 1000
"""Messages of a batch that this session did not deliver: only the client says how many there are."""
TURN_MESSAGES = 256
"""Messages that a session sends in one turn of the loop."""
Entry = tuple[int, int, int]
"""Place, ledger and entry."""
SHARED = frozenset({CommandSubscribe.Shared, CommandSubscribe.Key_Shared})


@dataclass(frozen=True, slots=True)
class _Delivered:
    entry: Entry
    batch_index: int


@dataclass(slots=True)
class _OpenBatch:
    """Batch that is not acknowledged as a whole: the messages that came, the indexes of all, and those that are done with."""

    count: int
    size: int
    done: BitMap = field(default_factory=BitMap)


class ConsumerSession:
    """Satisfies `effects.Machine`."""

    def __init__(self, options: ConsumerOptions, topics: Sequence[str], subscription: str, name: str) -> None:
        self.topics = topics
        self._options, self._subscription, self._name = options, subscription, options.name or name
        self._window = Window(0 if options.is_pulled else options.window)
        self._window.open(len(topics))
        self._delivered: dict[str, _Delivered] = {}
        self._open_batches: dict[Entry, _OpenBatch] = {}
        self._redelivery = Redelivery(options.ack_timeout_ms / 1000, options.nack_delay_ms / 1000)
        self._burials = Burials()
        self._buries = bool(options.dead_letter_topic) and options.subscription_type in SHARED
        self._ended: set[int] = set()
        self._partitions = [TopicName.parse(topic).partition_index for topic in topics]
        self._is_unsubscribed = False

    @property
    def dead_letter_topic(self) -> str:
        topic = self._options.dead_letter_topic
        return topic if "://" in topic else f"persistent://{topic if '/' in topic else f'public/default/{topic}'}"

    @property
    def is_full(self) -> bool:
        return False

    # ---- The broker

    def introduction(self, place: int) -> BaseCommand:
        options = self._options
        subscribe = CommandSubscribe(
            topic=self.topics[place],
            subscription=self._subscription,
            sub_type=options.subscription_type,  # type: ignore[arg-type]  # protobuf's enums are ints
            consumer_id=place,
            request_id=0,
            consumer_name=self._name,
            priority_level=options.priority,
            durable=options.is_durable,
            initial_position=CommandSubscribe.Earliest if options.starts_at_earliest else CommandSubscribe.Latest,
        )
        return BaseCommand(type=BaseCommand.SUBSCRIBE, subscribe=subscribe)

    def on_attached(self, place: int, answer: BaseCommand, now: Now) -> list[Effect]:
        self._window.attached(place)
        return self._flow()

    def on_lost(self, place: int) -> None:
        """The broker delivers again all that is not acknowledged."""
        self._window.lost(place)
        self._burials.forget(place)

    def on_received(self, place: int, received: Received, now: Now) -> list[Effect]:
        match received.command.type:
            case BaseCommand.MESSAGE:
                return self._arrived(place, received.command.message, received.section, now)
            case BaseCommand.REACHED_END_OF_TOPIC:
                self._ended.add(place)
            case BaseCommand.CLOSE_CONSUMER if not self._is_unsubscribed:
                return [Reattach(place, is_closed=True)]
        return []

    def _arrived(self, place: int, about: CommandMessage, section: bytes, now: Now) -> list[Effect]:
        """A message that cannot be read stays unacknowledged, as with Apache's client (cryptoFailureAction FAIL)."""
        at = about.message_id
        try:
            found = opened_entry(section, [word & (1 << 64) - 1 for word in about.ack_set])
        except (Undecodable, RemoteError):
            self._window.take(place, 1, iter(()), 0)
            return self._flow()
        size, redeliveries = found.batch_size, about.redelivery_count
        if self._buries and redeliveries > self._options.redeliveries_max:
            self._window.take(place, found.permits, iter(()), 0)
            bury = self._burials.begun((place, at.ledger_id, at.entry_id), self.topics[place], self._partitions[place], found)
            return [*bury, *self._flow()]
        arrived = (Arrived(place, at.ledger_id, at.entry_id, size, redeliveries, each) for each in found.messages)
        self._window.take(place, found.permits, arrived, found.message_count)
        if size:
            self._open_batch((place, at.ledger_id, at.entry_id), _OpenBatch(found.message_count, size))
        return self._deliver(now)

    def _open_batch(self, entry: Entry, batch: _OpenBatch) -> None:
        self._open_batches.pop(entry, None)
        self._open_batches[entry] = batch
        if len(self._open_batches) > DELIVERED_MAX:
            del self._open_batches[next(iter(self._open_batches))]

    def on_buried(self, context: str, now: Now, *, is_stored: bool) -> list[Effect]:
        """A message is in the dead letter topic, or could not be stored there: then its entry comes again, later."""
        entry, is_whole = self._burials.ended(context, is_stored=is_stored)
        if entry is None:
            return []
        if not is_stored:
            self._redelivery.refused(entry, now.seconds)
            return []
        return [self._ack(entry)] if is_whole else []

    # ---- To the client

    def _deliver(self, now: Now) -> list[Effect]:
        """A part of the messages that may be sent; the timer sends the rest."""
        effects: list[Effect] = []
        while len(effects) < TURN_MESSAGES and (arrived := self._window.next()) is not None:
            effects.append(Tell(self._told(arrived, now)))
        return effects + self._flow()

    def _told(self, arrived: Arrived, now: Now) -> str:
        entry, message = (arrived.place, arrived.ledger_id, arrived.entry_id), arrived.message
        text = id_text(*entry[1:], self._partitions[arrived.place], message.batch_index, arrived.batch_size)
        self._delivered.pop(text, None)
        self._delivered[text] = _Delivered(entry, message.batch_index)
        self._redelivery.delivered(text, now.seconds)
        if len(self._delivered) > DELIVERED_MAX:
            self._forget(next(iter(self._delivered)))
        return message_text(text, message.payload, about_message(arrived))

    def _forget(self, text: str) -> _Delivered | None:
        self._redelivery.settled(text)
        return self._delivered.pop(text, None)

    def _flow(self) -> list[Effect]:
        return [] if self._is_unsubscribed else self._window.flow()

    # ---- From the client

    def on_text(self, text: bytes, now: Now) -> list[Effect]:
        try:
            return self._commanded(read_command(text), now)
        except (BadJson, NotAMessageId) as bad:
            return [End(CloseCode.INVALID_DATA, f"3: Failed to de-serialize from JSON: {bad}")]

    def _commanded(self, command: ConsumerCommand, now: Now) -> list[Effect]:
        """BadJson, NotAMessageId."""
        match command.type:
            case "permit":
                return self._permitted(command, now)
            case "unsubscribe":
                self._is_unsubscribed = True
                return [Unsubscribe(place) for place in range(len(self.topics))]
            case "negativeAcknowledge":
                return self._refused(command.message_id, now)
            case "isEndOfTopic":
                return [Tell(end_of_topic_text(has_ended=len(self._ended) == len(self.topics)))]
            case _:
                return self._acknowledged(command.message_id, now)

    def _permitted(self, command: ConsumerCommand, now: Now) -> list[Effect]:
        if command.permit_messages is None:
            raise BadJson("Missing required permitMessages field for 'permit' command")
        if not self._options.is_pulled:
            return []
        self._window.allowed = max(0, min(self._window.allowed + command.permit_messages, DELIVERED_MAX))
        return self._deliver(now)

    def _acknowledged(self, text: str | None, now: Now) -> list[Effect]:
        entry, batch_index, batch_size = self._settled(text)
        is_whole = self._is_whole(entry, batch_index, batch_size)
        return [*([self._ack(entry)] if is_whole else []), *self._deliver(now)]

    def _settled(self, text: str | None) -> tuple[Entry, int, int]:
        """Entry of a message that the client has done with. NotAMessageId, BadJson."""
        if text is None:
            raise BadJson("Missing required messageId field")
        at = message_id_of(text)
        known = self._forget(text)
        if known is not None and not self._options.is_pulled:
            self._window.allowed += 1
        if known is not None:
            return known.entry, known.batch_index, at.batch_size
        place = at.partition if 0 <= at.partition < len(self.topics) and len(self.topics) > 1 else 0
        return (place, at.ledger_id, at.entry_id), at.batch_index, at.batch_size

    def _is_whole(self, entry: Entry, batch_index: int, batch_size: int) -> bool:
        """Whether all messages of an entry are acknowledged now. A batch of an earlier session has at most OLD_BATCH_MAX."""
        if batch_index < 0:
            return True
        if entry not in self._open_batches:
            if not batch_index < batch_size <= OLD_BATCH_MAX:
                return False
            self._open_batch(entry, _OpenBatch(batch_size, batch_size))
        batch = self._open_batches[entry]
        if batch_index < batch.size:
            batch.done.add(batch_index)
        if len(batch.done) < batch.count:
            return False
        del self._open_batches[entry]
        return True

    def _ack(self, entry: Entry) -> Send:
        place, ledger_id, entry_id = entry
        ack = CommandAck(consumer_id=place, ack_type=CommandAck.Individual)
        ack.message_id.append(MessageIdData(ledger_id=ledger_id, entry_id=entry_id))
        return Send(place, encode(BaseCommand(type=BaseCommand.ACK, ack=ack)))

    def _refused(self, text: str | None, now: Now) -> list[Effect]:
        entry, _, _ = self._settled(text)
        self._redelivery.refused(entry, now.seconds)
        return self._deliver(now)

    # ---- Time

    def due(self) -> float | None:
        return 0.0 if self._window.has_next else self._redelivery.due()

    def on_timer(self, now: Now) -> list[Effect]:
        entries = dict.fromkeys(self._redelivery.refusals_due(now.seconds))
        for text in self._redelivery.unanswered(now.seconds):
            known = self._forget(text)
            if known is not None:
                entries[known.entry] = None
                self._window.allowed += not self._options.is_pulled
        return [*(self._again(entries) if entries else ()), *self._deliver(now)]

    def _again(self, entries: dict[Entry, None]) -> list[Effect]:
        """Entries are delivered again: these of a shared subscription, otherwise all of their consumers (ConsumerImpl)."""
        effects: list[Effect] = []
        for place in dict.fromkeys(entry[0] for entry in entries):
            again = CommandRedeliverUnacknowledgedMessages(consumer_id=place)
            if self._options.subscription_type in SHARED:
                again.message_ids.extend(
                    MessageIdData(ledger_id=ledger_id, entry_id=entry_id) for at, ledger_id, entry_id in entries if at == place
                )
            else:
                self._forget_all(place)
            command = BaseCommand(type=BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES, redeliver_unacknowledged_messages=again)
            effects.append(Send(place, encode(command)))
        return effects

    def _forget_all(self, place: int) -> None:
        self._window.forget(place)
        gone = [text for text, known in self._delivered.items() if known.entry[0] == place]
        for text in gone:
            self._forget(text)
        self._window.allowed += 0 if self._options.is_pulled else len(gone)


def about_message(arrived: Arrived) -> dict[str, Any]:
    """Members of a ConsumerMessage beside its id and payload."""
    message = arrived.message
    return {
        "properties": message.properties,
        "publishTime": time_text(message.publish_time),
        "redeliveryCount": arrived.redelivery_count,
        "eventTime": time_text(message.event_time) if message.event_time else None,
        "key": message.key_text,
    }
