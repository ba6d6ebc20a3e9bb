"""The contract between a connection and the topics, and between a topic's drivers and the pure dispatchers' owner.

Connections hand in requests and a sink; topics call the sink. All calls are on the event loop. Errors are BrokerError.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import IntEnum
from typing import Protocol

from wire.position import Position
from wire.record import record
from wire.run import AckRun, EntryRun, SendMix, SendRun
from wire.transactions import TxnAction, TxnId

from ..errors import ServerError
from .operations_contract import TopicOperations, TopicUpkeep
from .sent_part import SentPart
from .statistics.topic_stats import TopicStats, TopicTraffic
from .statistics.transaction_facts import AckPlace, BufferFacts, InBufferFacts, InPendingAckFacts, PendingAckFacts


class AccessMode(IntEnum):
    """PulsarApi.ProducerAccessMode."""

    SHARED = 0
    EXCLUSIVE = 1
    WAIT_FOR_EXCLUSIVE = 2
    EXCLUSIVE_WITH_FENCING = 3


class SubscriptionType(IntEnum):
    """PulsarApi.CommandSubscribe.SubType."""

    EXCLUSIVE = 0
    SHARED = 1
    FAILOVER = 2
    KEY_SHARED = 3


@record(frozen=True, slots=True)
class ProducerRequest:
    """CommandProducer, checked. `name` is never empty: the service gave one where the client did not."""

    producer_id: int
    name: str
    name_is_generated: bool
    epoch: int
    access_mode: AccessMode
    topic_epoch: int | None
    is_encrypted: bool
    metadata: Mapping[str, str]
    address: str
    client_version: str
    initial_subscription_name: str = ""


class ProducerSink(Protocol):
    """The connection's end of a producer."""

    async def is_alive(self) -> bool:
        """Whether the peer is alive, asked when another client wants its place. A peer that does not answer a PING in
        time loses its connection: once the answer is False, all that it held is closed."""

    def receipts(self, run: SendRun, stored: EntryRun) -> None:
        """The whole run is durable; called in the order of publish."""

    def part_stored(self, part: SentPart) -> None:
        """Same as `receipts`, for a part that `Producer.take_part` has taken."""

    def send_failed(self, run: SendRun, code: ServerError, message: str) -> None:
        """The whole run was not stored; called in the same order as receipts."""

    def hold_reading(self) -> None:
        """Reads nothing from the producer's connection until `resume_reading`: it has published more than a rate allows.
        `resume_reading` comes also when the producer ends. Messages that were read already are published all the same.
        """

    def resume_reading(self) -> None: ...
    def ready(self, topic_epoch: int) -> None:
        """A WaitForExclusive producer may publish now (the second PRODUCER_SUCCESS)."""

    def refused(self, code: ServerError, message: str) -> None:
        """A WaitForExclusive producer that still waits will never get its turn (it was fenced out): ERROR for its request."""

    def closed(self, reason: str) -> None:
        """The broker ends the producer (fenced, topic deleted or unloaded): CLOSE_PRODUCER.

        Right after it come `send_failed` for the runs not answered yet, so that the connection can release them; the client
        gets no error: it sends them again on its next connection.
        """


class Producer(Protocol):
    """A producer on a topic."""

    @property
    def name(self) -> str: ...
    @property
    def is_ready(self) -> bool:
        """False while WaitForExclusive waits."""

    @property
    def topic_epoch(self) -> int | None: ...
    @property
    def last_sequence_id(self) -> int:
        """-1 without deduplication."""

    @property
    def message_size_max(self) -> int:
        """Bytes with metadata, by the topic's policies; 0: the broker's maximum."""

    @property
    def delay_ms_max(self) -> int:
        """Longest delay of a delivery after the publish (delayedDeliveryMaxDelayInMillis); 0: no limit."""

    @property
    def is_encryption_required(self) -> bool:
        """Whether each message has to be encrypted, by the topic's policies."""

    def take_part(self, sends: SendMix, place: int, now: float) -> SentPart | None:
        """Same as `publish`, for a part of one read; the caller hands all parts to `bookkeeper.write.together.send`.

        `now`: the loop's time. None: nothing has changed, `publish` has to be called.
        """

    def publish(self, run: SendRun) -> None:
        """Never raises for a storage failure: the sink gets the result of each run exactly once, in order (see `closed`)."""

    def close(self) -> None:
        """The client is gone, or has closed it. Runs published before are still answered; closing twice is fine."""


class KeySharedMode(IntEnum):
    """PulsarApi.KeySharedMode."""

    AUTO_SPLIT = 0
    STICKY = 1


@record(frozen=True, slots=True)
class KeySharedMeta:
    """CommandSubscribe.keySharedMeta; ranges are inclusive [start, end] in 0..65535."""

    mode: KeySharedMode = KeySharedMode.AUTO_SPLIT
    hash_ranges: tuple[tuple[int, int], ...] = ()
    allow_out_of_order: bool = False


@record(frozen=True, slots=True)
class SubscribeRequest:
    """CommandSubscribe, checked. `start` is set for non-durable subscriptions (readers) that name a message id."""

    consumer_id: int
    subscription: str
    type: SubscriptionType
    consumer_name: str
    priority_level: int
    durable: bool
    start: Position | None
    start_batch_index: int
    start_rollback_seconds: int
    from_earliest: bool
    metadata: Mapping[str, str]
    subscription_properties: Mapping[str, str]
    key_shared: KeySharedMeta
    consumer_epoch: int | None
    read_compacted: bool
    address: str
    client_version: str
    auto_create_subscription: bool = True
    takes_any_schema: bool = False
    """Schema.AUTO_CONSUME."""


class ConsumerSink(Protocol):
    """The connection's end of a consumer."""

    @property
    def is_writable(self) -> bool:
        """False while the peer does not read the bytes sent; the dispatcher then pauses this consumer."""

    async def is_alive(self) -> bool:
        """Same as a producer's."""

    def deliver(
        self,
        run: EntryRun,
        indexes: range | Sequence[int],
        redelivery_counts: Sequence[int] | None,
        ack_sets: Mapping[int, Sequence[int]] | None,
        consumer_epoch: int | None,
    ) -> None:
        """Write the entries of `run` at these indexes as MESSAGE frames. `redelivery_counts` are parallel to `indexes`;
        `ack_sets` (key: index in the run) hold 64-bit words, bit 1 = unacknowledged."""

    def active_changed(self, is_active: bool) -> None: ...
    def reached_end_of_topic(self) -> None: ...
    def closed(self, reason: str) -> None:
        """The broker ends the consumer (seek, unload, delete): CLOSE_CONSUMER."""


@record(frozen=True, slots=True)
class Acknowledgement:
    """A CommandAck that is not part of an AckRun. `ack_sets[i]` belongs to `positions[i]`; empty: the whole entry."""

    is_cumulative: bool
    positions: tuple[Position, ...]
    ack_sets: tuple[tuple[int, ...], ...]
    batch_sizes: tuple[int, ...]
    properties: Mapping[str, int] = field(default_factory=dict)
    """int64; of a cumulative one, kept with the cursor's place until the next."""


@record(frozen=True, slots=True)
class LastMessage:
    """GET_LAST_MESSAGE_ID: `batch_index` is -1 for an unbatched entry; `mark_delete` is the subscription's."""

    position: Position
    batch_index: int
    mark_delete: Position | None


@record(frozen=True, slots=True)
class ConsumerStats:
    """Values of a consumer for CONSUMER_STATS and the admin's stats; rates are per second over the last minute."""

    message_rate_out: float
    byte_rate_out: float
    redelivery_rate: float
    ack_rate: float
    messages_out: int
    bytes_out: int
    available_permits: int
    unacked_messages: int
    is_blocked_on_unacked: bool
    backlog_messages: int
    expired_rate: float
    connected_since_ms: int


class Consumer(Protocol):
    """A consumer on a subscription."""

    @property
    def name(self) -> str: ...
    @property
    def subscription(self) -> str: ...
    @property
    def type(self) -> SubscriptionType: ...
    def flow(self, permits: int) -> None: ...
    def acknowledge_run(self, run: AckRun) -> None: ...
    def acknowledge_entry(self, ledger_id: int, entry_id: int) -> None:
        """Same as `acknowledge_run`, for one entry."""

    def acknowledge(self, acknowledgement: Acknowledgement) -> None:
        """BrokerError(NOT_ALLOWED) for a cumulative one on Shared and Key_Shared."""

    async def acknowledge_in(self, txn_id: TxnId, acknowledgement: Acknowledgement) -> None:
        """Acknowledges in a transaction: counts when that is committed. The acknowledgement is stored when this returns.
        BrokerError(TRANSACTION_CONFLICT) when one of the messages is acknowledged already, or by another transaction: then
        none of them is acknowledged by this one."""

    async def acknowledgements_stored(self) -> None:
        """Returns when the acknowledgements so far would survive a crash (if the subscription is durable)."""

    def redeliver(self, positions: Sequence[Position], consumer_epoch: int | None) -> None:
        """Empty: everything that this consumer has not acknowledged."""

    def writable(self) -> None:
        """The sink is writable again."""

    async def seek(self, position: Position, ack_set: Sequence[int]) -> None: ...
    async def seek_by_time(self, publish_time_ms: int) -> None: ...
    async def last_message(self) -> LastMessage: ...
    async def unsubscribe(self, force: bool) -> None: ...
    def stats(self) -> ConsumerStats: ...
    def close(self) -> None: ...


@record(frozen=True, slots=True)
class TopicActivity:
    """Values that decide whether a topic is inactive (brokerDeleteInactiveTopicsMode). Cursors of readers do not count."""

    producers: int
    consumers: int
    durable_subscriptions: int
    backlog_entries: int
    """The largest backlog of a durable subscription."""
    last_active_ms: int
    """The loop's time of the load or of the last departure of a producer or consumer, whichever is later."""
    entries: int = 0
    """Stored in it, however many of them are consumed."""
    is_schema_open: bool = True
    """Whether no message is stored, no producer is there, and readers take any schema: the next client decides the schema."""


class Topic(Protocol):
    """A loaded topic."""

    @property
    def name(self) -> str:
        """`persistent://tenant/namespace/topic`."""

    @property
    def header_bytes(self) -> int: ...
    async def add_producer(self, request: ProducerRequest, sink: ProducerSink) -> Producer: ...
    async def subscribe(self, request: SubscribeRequest, sink: ConsumerSink) -> Consumer: ...
    @property
    def is_closed(self) -> bool:
        """Closed or closing, by `close` or by itself (its managed ledger failed or is fenced): it admits no clients. The
        service then awaits `close` (twice is fine; the second call waits for the first) and loads the topic again."""

    @property
    def upkeep(self) -> TopicUpkeep: ...
    @property
    def operations(self) -> TopicOperations: ...
    def activity(self) -> TopicActivity: ...
    @property
    def is_schema_open(self) -> bool: ...
    def traffic(self) -> TopicTraffic: ...
    def stats(self) -> TopicStats: ...
    async def stats_in_slices(self) -> TopicStats:
        """The same; with very many subscriptions others on the loop have their turn meanwhile."""

    def transaction_buffer(self) -> BufferFacts: ...
    def transaction_in_buffer(self, txn_id: TxnId) -> InBufferFacts: ...
    async def pending_acks(self, subscription: str) -> PendingAckFacts | None:
        """None: there is no such subscription; likewise the next. BrokerError when they cannot be read."""

    async def in_pending_acks(self, subscription: str, txn_id: TxnId) -> InPendingAckFacts | None: ...
    async def place_in_pending_acks(
        self, subscription: str, position: Position, batch_index: int | None
    ) -> AckPlace | None: ...
    async def create_subscription(self, name: str, *, from_earliest: bool, properties: Mapping[str, str]) -> None:
        """A durable one; nothing happens when it is there already."""

    async def delete_subscription(self, name: str, *, force: bool) -> None:
        """SUBSCRIPTION_NOT_FOUND; CONSUMER_BUSY while consumers are connected and not `force`."""

    async def end_transaction(self, txn_id: TxnId, action: TxnAction, low_water_mark: int) -> None:
        """Commits or aborts the messages that were published in it: durably done when this returns, also if it was before. Open
        transactions of its coordinator up to `low_water_mark` are aborted. TRANSACTION_CONFLICT: it has ended the other way."""

    async def end_acknowledgements(self, subscription: str, txn_id: TxnId, action: TxnAction, low_water_mark: int) -> None:
        """Same as `end_transaction`, for acknowledgements on a subscription; nothing happens when that is not there."""

    async def terminate(self) -> None:
        """Ends the topic for ever; consumers of a subscription without backlog get REACHED_END_OF_TOPIC."""

    async def trim(self) -> None:
        """Let go of the ledgers that every durable subscription has consumed and retention does not keep."""

    async def close(self) -> None:
        """Unloads the topic: producers and consumers are closed, marks are flushed, the managed ledger is closed."""

    async def delete(self, *, force: bool) -> None:
        """BrokerError when in use and not `force`."""


class OpenTopic(Protocol):
    """Loads a topic; handed to the broker service, which calls it once per topic."""

    async def __call__(self, name: str, managed_ledger_name: str, partition_index: int, *, create: bool) -> Topic:
        """`partition_index` is -1 for a topic that is no partition. BrokerError(TOPIC_NOT_FOUND) when nothing is stored and
        `create` is false."""
