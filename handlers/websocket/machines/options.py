"""Options of a session, from the parameters of its request. Pure. Names, bounds and defaults are Apache's ProducerHandler's,
ConsumerHandler's and ReaderHandler's. Refused(400) for a value that does not fit.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from wire.generated.pulsar_api_pb2 import CommandSubscribe, CompressionType, MessageIdData

from ..errors import Refused
from .message_ids import EARLIEST, LATEST, NotAMessageId, message_id_of

Query = Mapping[str, str]
RECEIVER_QUEUE_SIZE_MAX = 1000
PENDING_MESSAGES_MAX = 10_000
BATCH_MESSAGES_MAX = 10_000
ACK_TIMEOUT_MS_MIN = 1000
_INT_MAX = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class ProducerOptions:
    """`send_timeout_ms` 0: no limit. `initial_sequence_id` None: by the broker."""

    name: str = ""
    initial_sequence_id: int | None = None
    send_timeout_ms: int = 30_000
    batches: bool = False
    batch_messages_max: int = 1000
    batch_delay_ms: int = 1
    pending_messages_max: int = 1000
    routing: str = "SinglePartition"
    hashing: str = "JavaStringHash"
    compression: int = CompressionType.NONE


@dataclass(frozen=True, slots=True)
class ConsumerOptions:
    """`ack_timeout_ms` 0: none. `dead_letter_topic` empty: none. `window`: messages that a client may have unacknowledged."""

    subscription_type: int = CommandSubscribe.Exclusive
    is_durable: bool = True
    starts_at_earliest: bool = False
    window: int = RECEIVER_QUEUE_SIZE_MAX
    name: str = ""
    priority: int = 0
    is_pulled: bool = False
    ack_timeout_ms: int = 0
    nack_delay_ms: int = 60_000
    redeliveries_max: int = 0
    dead_letter_topic: str = ""


@dataclass(frozen=True, slots=True)
class ReaderOptions:
    """`start`: the message behind which it begins."""

    start: MessageIdData
    window: int = RECEIVER_QUEUE_SIZE_MAX
    name: str = ""
    is_pulled: bool = False


def producer_options(query: Query) -> ProducerOptions:
    if query.get("encryptionKeys"):
        raise Refused(400, "Invalid query params: encryptionKeys: this server encrypts nothing")
    initial = query.get("initialSequenceId")
    default = ProducerOptions()
    return ProducerOptions(
        name=query.get("producerName", ""),
        initial_sequence_id=None if initial is None else _number(query, "initialSequenceId", 0, -1, (1 << 62)),
        send_timeout_ms=_number(query, "sendTimeoutMillis", default.send_timeout_ms),
        batches=_flag(query, "batchingEnabled"),
        batch_messages_max=_number(query, "batchingMaxMessages", default.batch_messages_max, 1, BATCH_MESSAGES_MAX),
        batch_delay_ms=_number(query, "batchingMaxPublishDelay", default.batch_delay_ms, 1),
        pending_messages_max=min(
            _number(query, "maxPendingMessages", default.pending_messages_max) or PENDING_MESSAGES_MAX, PENDING_MESSAGES_MAX
        ),
        routing=_one_of(
            query, "messageRoutingMode", default.routing, ("SinglePartition", "RoundRobinPartition", "CustomPartition")
        ),
        hashing=_one_of(query, "hashingScheme", default.hashing, ("JavaStringHash", "Murmur3_32Hash")),
        compression=CompressionType.Value(_one_of(query, "compressionType", "NONE", tuple(CompressionType.keys()))),
    )


def consumer_options(query: Query, topic: str, subscription: str) -> ConsumerOptions:
    types = tuple(CommandSubscribe.SubType.keys())
    dead_letters = "maxRedeliverCount" in query or "deadLetterTopic" in query
    redeliveries = _number(query, "maxRedeliverCount", 0)
    if dead_letters and redeliveries < 1:
        raise Refused(400, "Invalid query params: MaxRedeliverCount must be > 0.")
    ack_timeout = _number(query, "ackTimeoutMillis", 0)
    if 0 < ack_timeout < ACK_TIMEOUT_MS_MIN:
        raise Refused(400, f"Invalid query params: Ack timeout should be greater than {ACK_TIMEOUT_MS_MIN} ms")
    position = _one_of(query, "subscriptionInitialPosition", "Latest", ("Latest", "Earliest"))
    return ConsumerOptions(
        subscription_type=CommandSubscribe.SubType.Value(_one_of(query, "subscriptionType", "Exclusive", types)),
        is_durable=_one_of(query, "subscriptionMode", "Durable", ("Durable", "NonDurable")) == "Durable",
        starts_at_earliest=position == "Earliest",
        window=_window(query),
        name=query.get("consumerName", ""),
        priority=_number(query, "priorityLevel", 0),
        is_pulled=_flag(query, "pullMode"),
        ack_timeout_ms=ack_timeout,
        nack_delay_ms=_number(query, "negativeAckRedeliveryDelay", 60_000),
        redeliveries_max=redeliveries,
        dead_letter_topic=query.get("deadLetterTopic") or (f"{topic}-{subscription}-DLQ" if dead_letters else ""),
    )


def reader_options(query: Query) -> ReaderOptions:
    text = query.get("messageId", "").strip()
    try:
        start = {"": LATEST, "latest": LATEST, "earliest": EARLIEST}.get(text) or message_id_of(text)
    except NotAMessageId as error:
        raise Refused(400, f"Invalid query params: messageId: {error}") from None
    return ReaderOptions(start, _window(query), query.get("readerName", ""), _flag(query, "pullMode"))


def _window(query: Query) -> int:
    """Apache's receiverQueueSize: at most 1000, and 0 stands for one message at a time."""
    return min(_number(query, "receiverQueueSize", RECEIVER_QUEUE_SIZE_MAX), RECEIVER_QUEUE_SIZE_MAX) or 1


def _number(query: Query, name: str, default: int, low: int = 0, high: int = _INT_MAX) -> int:
    text = query.get(name)
    if text is None:
        return default
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 20 and low <= int(text) <= high):
        raise Refused(400, f"Invalid query params: {name}: expected {low} to {high}, not {text[:40]!r}")
    return int(text)


def _flag(query: Query, name: str) -> bool:
    return query.get(name, "").lower() == "true"


def _one_of(query: Query, name: str, default: str, values: tuple[str, ...]) -> str:
    given = query.get(name, default)
    if given not in values:
        raise Refused(400, f"Invalid query params: Invalid {name} {given[:40]}: expected one of {', '.join(values)}")
    return given
