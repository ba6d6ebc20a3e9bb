"""History: what the clients of a run saw and did, and what happened to the server, as values in the order of virtual time.

Only observations: nothing here is read from inside the server. A `session` is one life of a producer or consumer on one
connection. A message is known by its producer and sequence id, its place by MessageId (batch index -1: not in a batch).
"""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias

from broker.topic.contract import SubscriptionType
from wire.position import Position


class MessageKey(NamedTuple):
    """Identity of a message."""

    producer: str
    sequence: int


class MessageId(NamedTuple):
    """Place of a message."""

    ledger_id: int
    entry_id: int
    batch_index: int

    @property
    def position(self) -> Position:
        return Position(self.ledger_id, self.entry_id)


class Stop(Enum):
    """Kind of the server's end."""

    CLEAN = "clean"
    KILL = "kill"
    POWER_CUT = "power cut"


@dataclass(frozen=True, slots=True)
class Message:
    """A message as sent or as delivered; `key` is the partition key."""

    batch_index: int
    id: MessageKey
    key: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class ProducerOpened:
    """A producer may send. It sends messages again that an earlier session of it has pending."""

    at: float
    session: int
    producer: str


@dataclass(frozen=True, slots=True)
class Sent:
    """One SEND: an entry of one message, or a batch."""

    at: float
    session: int
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """A SEND_RECEIPT; `sequence` as it says."""

    at: float
    session: int
    sequence: int
    position: Position


@dataclass(frozen=True, slots=True)
class Refused:
    """A SEND_ERROR: the entry was not stored, or not surely."""

    at: float
    session: int
    sequence: int


@dataclass(frozen=True, slots=True)
class Subscribed:
    """A consumer is accepted (SUCCESS)."""

    at: float
    session: int
    connection: int
    subscription: str
    type: SubscriptionType
    from_earliest: bool
    durable: bool = True


@dataclass(frozen=True, slots=True)
class SessionEnded:
    """A consumer is no more: closed by either side, or its connection broke. Later deliveries are not looked at."""

    at: float
    session: int


@dataclass(frozen=True, slots=True)
class Delivered:
    """One MESSAGE, without the messages of a batch that its ack set takes out."""

    at: float
    session: int
    position: Position
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class AckSent:
    """Acknowledgement of messages delivered to this session; cumulative: of everything up to the (one) id."""

    at: float
    session: int
    ids: tuple[MessageId, ...]
    cumulative: bool = False


@dataclass(frozen=True, slots=True)
class AckAnswered:
    """An ACK_RESPONSE without an error, to what AckSent said at `sent`: it is stored (ADR 13)."""

    at: float
    session: int
    ids: tuple[MessageId, ...]
    cumulative: bool
    sent: float


@dataclass(frozen=True, slots=True)
class Nacked:
    """REDELIVER_UNACKNOWLEDGED_MESSAGES; no ids: all of this consumer's."""

    at: float
    session: int
    ids: tuple[MessageId, ...]


@dataclass(frozen=True, slots=True)
class SeekAsked:
    """The first message to read is to be the one at `position`, or the next there is."""

    at: float
    session: int
    position: Position


@dataclass(frozen=True, slots=True)
class SeekDone:
    """SUCCESS for that session's seek (the session itself ended before)."""

    at: float
    session: int


@dataclass(frozen=True, slots=True)
class SeekRefused:
    """ERROR for that session's seek."""

    at: float
    session: int


@dataclass(frozen=True, slots=True)
class LastMessageReported:
    """GET_LAST_MESSAGE_ID_RESPONSE."""

    at: float
    session: int
    last: Position
    mark_delete: Position | None


@dataclass(frozen=True, slots=True)
class ActiveNotified:
    """ACTIVE_CONSUMER_CHANGE."""

    at: float
    session: int
    is_active: bool


@dataclass(frozen=True, slots=True)
class Connected:
    """A connection is ready for commands."""

    at: float
    connection: int


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """The answer to a request sent at `started` is here: all that the server sent before has arrived, and it had seen all
    that was sent to it before `started`."""

    at: float
    connection: int
    started: float


@dataclass(frozen=True, slots=True)
class ServerStopped:
    """`acks_kept_until`: marks set in memory before this time must have been persisted by now."""

    at: float
    how: Stop
    acks_kept_until: float


@dataclass(frozen=True, slots=True)
class DrainStarted:
    """Every consumer is gone and all faults are healed: who comes now must get all that is not acknowledged."""

    at: float
    subscription: str


@dataclass(frozen=True, slots=True)
class DrainEnded:
    """The subscription says that it has nothing more."""

    at: float
    subscription: str


ConsumerEvent: TypeAlias = (
    SessionEnded
    | Delivered
    | AckSent
    | AckAnswered
    | Nacked
    | SeekAsked
    | SeekDone
    | SeekRefused
    | LastMessageReported
    | ActiveNotified
)
"""Events that concern one consumer's session."""

Event: TypeAlias = (
    ConsumerEvent
    | ProducerOpened
    | Sent
    | Acknowledged
    | Refused
    | Subscribed
    | Connected
    | RoundTrip
    | ServerStopped
    | DrainStarted
    | DrainEnded
)


class Violation(Exception):
    """A promise was broken; the message says which, with the messages concerned."""
