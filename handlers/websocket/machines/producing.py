"""ProducerSession: messages in JSON become SENDs, and their receipts become ProducerAcks. Pure.

Messages without a receipt are kept, and sent again once a lost producer is attached again. Bounds: maxPendingMessages, at which
a message is answered with an error, as Apache does; PENDING_BYTES_MAX, at which the client has to wait.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from broker.service.topic_name import TopicName
from wire.client_end import Received
from wire.compression import compress
from wire.frames import encode
from wire.generated.pulsar_api_pb2 import (
    BaseCommand,
    CommandProducer,
    CommandSend,
    CommandSendError,
    CommandSendReceipt,
    KeyValue,
    MessageMetadata,
    SingleMessageMetadata,
)
from wire.payloads import payload_section

from ..errors import PASSING, WebSocketError
from .effects import Effect, Now, Reattach, Send, Tell
from .json_forms import (
    BadJson,
    BadPayload,
    ProducerMessage,
    ack_text,
    event_time_of,
    payload_of,
    read_message,
    send_error_text,
    text_of,
)
from .message_ids import text_of as id_text
from .options import ProducerOptions
from .routing import Router

PENDING_BYTES_MAX = 8 * 1024 * 1024
BATCH_BYTES_MAX = 128 * 1024
"""Apache's batchingMaxBytes."""


@dataclass(frozen=True, slots=True)
class Written:
    """A message before it has a place in the topic."""

    metadata: SingleMessageMetadata
    payload: bytes
    context: str | None
    deliver_at_ms: int
    replicate_to: Sequence[str]

    @property
    def size_bytes(self) -> int:
        return len(self.payload) + self.metadata.ByteSize()

    @property
    def may_be_batched(self) -> bool:
        """Apache's clients send a delayed message alone (canAddToBatch)."""
        return not self.deliver_at_ms and not self.replicate_to


@dataclass(frozen=True, slots=True)
class _Pending:
    sequence_id: int
    frame: bytes
    contexts: Sequence[str | None]
    is_batch: bool
    expires_at: float


@dataclass(slots=True)
class _Place:
    name: str
    next_sequence_id: int | None
    epoch: int = 0
    is_attached: bool = False
    pending: deque[_Pending] = field(default_factory=deque)
    batch: list[Written] = field(default_factory=list)
    batch_bytes: int = 0
    batch_due_at: float = 0.0
    schema_version: bytes = b""


class ProducerSession:
    """Satisfies `effects.Machine`. `chance`: any number; `message_bytes_max`: of a broker."""

    def __init__(self, options: ProducerOptions, topics: Sequence[str], chance: int) -> None:
        self.topics = topics
        self.message_bytes_max = 5 << 20
        self._options = options
        initial = options.initial_sequence_id
        self._places = [_Place(options.name, None if initial is None else initial + 1) for _ in topics]
        self._router = Router(options.routing, options.hashing, len(topics), chance)
        self._partitions = [TopicName.parse(topic).partition_index for topic in topics]
        self._messages = self._bytes = 0

    @property
    def is_full(self) -> bool:
        return self._bytes >= PENDING_BYTES_MAX

    # ---- The broker

    def introduction(self, place: int) -> BaseCommand:
        own = self._places[place]
        producer = CommandProducer(topic=self.topics[place], producer_id=place, request_id=0, epoch=own.epoch)
        if own.name:
            producer.producer_name = own.name
        producer.user_provided_producer_name = bool(self._options.name)
        return BaseCommand(type=BaseCommand.PRODUCER, producer=producer)

    def on_attached(self, place: int, answer: BaseCommand, now: Now) -> list[Effect]:
        own, success = self._places[place], answer.producer_success
        own.name, own.is_attached, own.schema_version = success.producer_name, True, success.schema_version
        own.epoch += 1
        if own.next_sequence_id is None:
            own.next_sequence_id = success.last_sequence_id + 1
        return [Send(place, pending.frame) for pending in own.pending]

    def on_lost(self, place: int) -> None:
        self._places[place].is_attached = False

    def on_received(self, place: int, received: Received, now: Now) -> list[Effect]:
        match received.command.type:
            case BaseCommand.SEND_RECEIPT:
                return self._receipt(place, received.command.send_receipt)
            case BaseCommand.SEND_ERROR:
                return self._refusal(place, received.command.send_error)
            case BaseCommand.CLOSE_PRODUCER:
                return [Reattach(place, is_closed=True)]
        return []

    def _receipt(self, place: int, receipt: CommandSendReceipt) -> list[Effect]:
        """Receipts come in order; one of a message that was given up, or of before a new connection, is of no use."""
        own = self._places[place]
        if not own.pending or receipt.sequence_id < own.pending[0].sequence_id:
            return []
        if receipt.sequence_id > own.pending[0].sequence_id:
            return [Reattach(place)]
        done = self._taken(own)
        at, partition = receipt.message_id, self._partitions[place]
        if not done.is_batch:
            return [Tell(ack_text(id_text(at.ledger_id, at.entry_id, partition), done.contexts[0]))]
        size = len(done.contexts)
        return [
            Tell(ack_text(id_text(at.ledger_id, at.entry_id, partition, index, size), context))
            for index, context in enumerate(done.contexts)
        ]

    def _refusal(self, place: int, error: CommandSendError) -> list[Effect]:
        own = self._places[place]
        if not own.pending or error.sequence_id != own.pending[0].sequence_id or error.error in PASSING:
            return [Reattach(place)]
        return self._given_up(self._taken(own), error.message)

    def _taken(self, own: _Place) -> _Pending:
        done = own.pending.popleft()
        self._messages -= len(done.contexts)
        self._bytes -= len(done.frame)
        return done

    def _given_up(self, pending: _Pending, reason: str) -> list[Effect]:
        return [Tell(send_error_text(WebSocketError.UNKNOWN_ERROR, reason, context)) for context in pending.contexts]

    # ---- The client

    def on_text(self, text: bytes, now: Now) -> list[Effect]:
        try:
            message = read_message(text)
        except BadJson as bad:
            return [Tell(send_error_text(WebSocketError.FAILED_TO_DESERIALIZE_FROM_JSON, str(bad), None))]
        try:
            written = _written(message, now)
        except BadPayload as bad:
            return [Tell(send_error_text(WebSocketError.PAYLOAD_ENCODING_ERROR, str(bad), bad.context))]
        reason = self._refused(written)
        if reason:
            return [Tell(send_error_text(WebSocketError.UNKNOWN_ERROR, reason, written.context))]
        return self._put(self._router.of(text_of(message.key)), written, now)

    def _refused(self, written: Written) -> str:
        if self._messages >= self._options.pending_messages_max:
            return f"Producer send queue is full: {self._messages} messages are without a receipt (maxPendingMessages)"
        if written.size_bytes > self.message_bytes_max:
            return f"a message of {written.size_bytes} bytes, more than the {self.message_bytes_max} of maxMessageSize"
        return ""

    def _put(self, place: int, written: Written, now: Now) -> list[Effect]:
        own, options = self._places[place], self._options
        self._messages += 1
        if not options.batches or not written.may_be_batched:
            return [
                *self._flushed(place, now),
                *self._sent(place, _alone(written), compressed(written.payload, options), written, now),
            ]
        early = self._flushed(place, now) if own.batch_bytes + written.size_bytes > BATCH_BYTES_MAX else []
        if not own.batch:
            own.batch_due_at = now.seconds + options.batch_delay_ms / 1000
        own.batch.append(written)
        own.batch_bytes += written.size_bytes
        self._bytes += written.size_bytes
        return early + (self._flushed(place, now) if len(own.batch) >= options.batch_messages_max else [])

    def _sent(self, place: int, metadata: MessageMetadata, payload: bytes, written: Written, now: Now) -> list[Effect]:
        metadata.uncompressed_size = len(written.payload)
        return self._send(place, metadata, payload, [written.context], now, is_batch=False)

    def _flushed(self, place: int, now: Now) -> list[Effect]:
        """Sends the batch of a place, if there is one."""
        own = self._places[place]
        batch, own.batch = own.batch, []
        if not batch:
            return []
        self._bytes -= own.batch_bytes
        own.batch_bytes = 0
        payload = batch_payload(batch)
        metadata = MessageMetadata(num_messages_in_batch=len(batch), uncompressed_size=len(payload))
        contexts = [written.context for written in batch]
        return self._send(place, metadata, compressed(payload, self._options), contexts, now, is_batch=True)

    def _send(
        self, place: int, metadata: MessageMetadata, payload: bytes, contexts: Sequence[str | None], now: Now, *, is_batch: bool
    ) -> list[Effect]:
        own, options = self._places[place], self._options
        sequence_id = own.next_sequence_id or 0
        own.next_sequence_id = sequence_id + len(contexts)
        metadata.producer_name, metadata.sequence_id, metadata.publish_time = own.name, sequence_id, now.ms
        if options.compression:
            metadata.compression = options.compression  # type: ignore[assignment]  # protobuf's enums are ints
        if own.schema_version:
            metadata.schema_version = own.schema_version
        send = CommandSend(producer_id=place, sequence_id=sequence_id, num_messages=len(contexts))
        if is_batch:
            send.highest_sequence_id = metadata.highest_sequence_id = own.next_sequence_id - 1
        frame = encode(BaseCommand(type=BaseCommand.SEND, send=send), payload_section(metadata, payload))
        expires_at = now.seconds + options.send_timeout_ms / 1000 if options.send_timeout_ms else float("inf")
        own.pending.append(_Pending(sequence_id, frame, contexts, is_batch, expires_at))
        self._bytes += len(frame)
        return [Send(place, frame)] if own.is_attached else []

    # ---- Time

    def due(self) -> float | None:
        moments = [own.batch_due_at for own in self._places if own.batch]
        moments += [own.pending[0].expires_at for own in self._places if own.pending]
        first = min(moments, default=float("inf"))
        return None if first == float("inf") else first

    def on_timer(self, now: Now) -> list[Effect]:
        effects: list[Effect] = []
        for place, own in enumerate(self._places):
            if own.batch and own.batch_due_at <= now.seconds:
                effects += self._flushed(place, now)
            while own.pending and own.pending[0].expires_at <= now.seconds:
                reason = f"no receipt within {self._options.send_timeout_ms} ms (sendTimeoutMillis): it may be stored, or not"
                effects += self._given_up(self._taken(own), reason)
        return effects


def _written(message: ProducerMessage, now: Now) -> Written:
    """BadPayload."""
    payload, event_time = payload_of(message), event_time_of(message)
    metadata = SingleMessageMetadata(payload_size=len(payload))
    for name, value in (message.properties or {}).items():
        text = text_of(value)
        metadata.properties.append(KeyValue(key=name, value="" if text is None else text))
    key = text_of(message.key)
    if key is not None:
        metadata.partition_key = key
    if event_time:
        metadata.event_time = event_time
    deliver_at = now.ms + message.deliver_after_ms if message.deliver_after_ms > 0 else max(message.deliver_at, 0)
    if deliver_at >= 1 << 63:
        raise BadPayload("deliverAt, deliverAfterMs: the time is too far away", text_of(message.context))
    return Written(metadata, payload, text_of(message.context), deliver_at, message.replication_clusters or ())


def _alone(written: Written) -> MessageMetadata:
    single = written.metadata
    metadata = MessageMetadata(properties=single.properties, replicate_to=written.replicate_to)
    if single.HasField("partition_key"):
        metadata.partition_key = single.partition_key
    if single.event_time:
        metadata.event_time = single.event_time
    if written.deliver_at_ms:
        metadata.deliver_at_time = written.deliver_at_ms
    return metadata


def compressed(payload: bytes, options: ProducerOptions) -> bytes:
    return compress(options.compression, payload)


def batch_payload(batch: Sequence[Written]) -> bytes:
    parts: list[bytes] = []
    for written in batch:
        encoded = written.metadata.SerializeToString()
        parts += (len(encoded).to_bytes(4), encoded, written.payload)
    return b"".join(parts)
