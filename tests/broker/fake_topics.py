"""Topics that remember what they were asked and answer when told to: `broker.topic.contract`, without storage."""

import asyncio
from array import array
from collections.abc import Mapping, Sequence

from broker.dispatchers.settings import DispatcherSettings
from broker.errors import BrokerError, ServerError
from broker.policies.defaults import broker_defaults, effective, resolve
from broker.policies.policies import NOTHING_SAID, TopicPolicies
from broker.policies.topic_settings import TopicSettings
from broker.topic.contract import (
    Acknowledgement,
    ConsumerSink,
    ConsumerStats,
    LastMessage,
    ProducerRequest,
    ProducerSink,
    SubscribeRequest,
    SubscriptionType,
    TopicActivity,
)
from broker.topic.operations_contract import TopicOperations
from broker.topic.sent_part import SentPart
from broker.topic.statistics.compaction_stats import CompactedLedgerFacts, CompactionState, CompactionStatus
from broker.topic.statistics.topic_stats import TopicStats, TopicTraffic
from broker.topic.statistics.transaction_facts import AckPlace, BufferFacts, InBufferFacts, InPendingAckFacts, PendingAckFacts
from metadata.store import MetadataStore
from wire.position import Position
from wire.run import HEADER_BYTES_CRC32C, AckRun, EntryRun, SendMix, SendRun
from wire.transactions import TxnAction, TxnId


class FakeProducer:
    """Answers each run at once, unless `is_held`; then when `release` is called."""

    def __init__(self, topic: "FakeTopic", request: ProducerRequest, sink: ProducerSink) -> None:
        self.topic, self.request, self.sink = topic, request, sink
        self.is_ready = True
        self.topic_epoch: int | None = None
        self.last_sequence_id = -1
        self.message_size_max = topic.message_size_max
        self.delay_ms_max = 0
        self.is_encryption_required = False
        self.is_closed = False
        self.is_held = topic.holds_publishes
        self.runs: list[SendRun] = []
        self.unanswered: list[SendRun] = []

    @property
    def name(self) -> str:
        return self.request.name

    def take_part(self, sends: SendMix, place: int, now: float) -> SentPart | None:
        return None

    def publish(self, run: SendRun) -> None:
        assert not self.is_closed
        self.runs.append(run)
        self.unanswered.append(run)
        if not self.is_held:
            self.release()

    def release(self, count: int | None = None) -> None:
        runs = self.unanswered[:count]
        del self.unanswered[:count]
        for run in runs:
            self.sink.receipts(run, self.topic.store(run))

    def close(self) -> None:
        self.is_closed = True

    @property
    def payloads(self) -> list[bytes]:
        return [payload for run in self.runs for payload in payloads_of(run)]


def payloads_of(run: SendRun) -> list[bytes]:
    entries = run.entries
    starts = [offset + entries.header_bytes for offset in entries.offsets[:-1]]
    return [bytes(entries.buffer[start:end]) for start, end in zip(starts, entries.offsets[1:], strict=True)]


class FakeConsumer:
    def __init__(self, topic: "FakeTopic", request: SubscribeRequest, sink: ConsumerSink) -> None:
        self.topic, self.request, self.sink = topic, request, sink
        self.permits: list[int] = []
        self.ack_runs: list[AckRun] = []
        self.acks: list[Acknowledgement] = []
        self.acknowledged_in: list[tuple[TxnId, Acknowledgement]] = []
        self.redeliveries: list[tuple[list[Position], int | None]] = []
        self.seeks: list[tuple[Position, tuple[int, ...]] | int] = []
        self.unsubscribes: list[bool] = []
        self.writable_count = 0
        self.is_closed = False
        self.failure: BaseException | None = None
        self.acknowledgements_gate = asyncio.Event()
        self.acknowledgements_gate.set()
        self.last = LastMessage(Position(7, 41), -1, Position(7, 12))

    @property
    def name(self) -> str:
        return self.request.consumer_name

    @property
    def subscription(self) -> str:
        return self.request.subscription

    @property
    def type(self) -> SubscriptionType:
        return self.request.type

    def flow(self, permits: int) -> None:
        self.permits.append(permits)

    def acknowledge_run(self, run: AckRun) -> None:
        self.ack_runs.append(run)

    def acknowledge_entry(self, ledger_id: int, entry_id: int) -> None:
        self.ack_runs.append(AckRun(0, array("Q", (ledger_id,)), array("Q", (entry_id,)), 0))

    async def acknowledge_in(self, txn_id: TxnId, acknowledgement: Acknowledgement) -> None:
        if self.failure is not None:
            raise self.failure
        self.acknowledged_in.append((txn_id, acknowledgement))

    async def acknowledgements_stored(self) -> None:
        await self.acknowledgements_gate.wait()

    def acknowledge(self, acknowledgement: Acknowledgement) -> None:
        self._fail()
        self.acks.append(acknowledgement)

    def redeliver(self, positions: Sequence[Position], consumer_epoch: int | None) -> None:
        self.redeliveries.append((list(positions), consumer_epoch))

    def writable(self) -> None:
        self.writable_count += 1

    async def seek(self, position: Position, ack_set: Sequence[int]) -> None:
        await asyncio.sleep(0)
        self._fail()
        self.seeks.append((position, tuple(ack_set)))
        self.sink.closed("seek")

    async def seek_by_time(self, publish_time_ms: int) -> None:
        await asyncio.sleep(0)
        self.seeks.append(publish_time_ms)
        self.sink.closed("seek")

    async def last_message(self) -> LastMessage:
        self._fail()
        return self.last

    async def unsubscribe(self, force: bool) -> None:
        self._fail()
        self.unsubscribes.append(force)
        self.sink.closed("unsubscribed")

    def stats(self) -> ConsumerStats:
        return ConsumerStats(1.5, 2.5, 0.0, 0.5, 10, 1000, 7, 3, False, 12, 0.0, 1_700_000_000_123)

    def close(self) -> None:
        self.is_closed = True

    def _fail(self) -> None:
        if self.failure is not None:
            raise self.failure


class FakeUpkeep:
    """Counts what it is asked."""

    def __init__(self) -> None:
        self.policies = effective(TopicPolicies(), TopicSettings())
        self.applied: list[TopicPolicies] = []
        self.expiries = 0
        self.subscription_expiries = 0
        self.quota_checks = 0
        self.compaction_checks = 0
        self.compaction_status = CompactionStatus()

    def apply(self, namespace: TopicPolicies, topic: TopicPolicies = NOTHING_SAID) -> None:
        self.applied.append(namespace)
        self.policies = resolve(broker_defaults(TopicSettings(), DispatcherSettings()), namespace, topic)

    async def expire(self) -> None:
        self.expiries += 1

    async def expire_subscriptions(self) -> None:
        self.subscription_expiries += 1

    async def check_quotas(self) -> None:
        self.quota_checks += 1

    def check_compaction(self) -> None:
        self.compaction_checks += 1

    def compact(self) -> None:
        self.compaction_status = CompactionStatus(CompactionState.RUNNING)

    async def compacted_ledger(self) -> CompactedLedgerFacts | None:
        return None


class FakeTopic:
    def __init__(self, name: str) -> None:
        self.name = name
        self.header_bytes = HEADER_BYTES_CRC32C
        self.is_closed = False
        self.holds_publishes = False
        self.message_size_max = 0
        self.wait: asyncio.Event | None = None
        """Event that add_producer and subscribe wait for; None: they do not wait."""
        self.failure: BrokerError | None = None
        self.producer_is_ready = True
        self.producers: list[FakeProducer] = []
        self.consumers: list[FakeConsumer] = []
        self.next_entry_id = 0
        self.trims = 0
        self.deletions: list[bool] = []
        self.close_count = 0
        self.now = TopicActivity(0, 0, 0, 0, 0)
        self.traffic_now = TopicTraffic()
        self.upkeep = FakeUpkeep()
        self.ended_transactions: list[tuple[TxnId, TxnAction, int]] = []
        self.ended_acknowledgements: list[tuple[str, TxnId, TxnAction, int]] = []

    def store(self, run: SendRun) -> EntryRun:
        entries = run.entries
        first, self.next_entry_id = self.next_entry_id, self.next_entry_id + entries.count
        return EntryRun(7, first, entries.buffer, entries.offsets, entries.header_bytes)

    async def add_producer(self, request: ProducerRequest, sink: ProducerSink) -> FakeProducer:
        await self._admit()
        producer = FakeProducer(self, request, sink)
        producer.is_ready = self.producer_is_ready
        self.producers.append(producer)
        return producer

    async def subscribe(self, request: SubscribeRequest, sink: ConsumerSink) -> FakeConsumer:
        await self._admit()
        consumer = FakeConsumer(self, request, sink)
        self.consumers.append(consumer)
        return consumer

    async def _admit(self) -> None:
        if self.wait is not None:
            await self.wait.wait()
        if self.failure is not None:
            raise self.failure

    @property
    def operations(self) -> TopicOperations:
        raise NotImplementedError

    def activity(self) -> TopicActivity:
        return self.now

    @property
    def is_schema_open(self) -> bool:
        return self.now.is_schema_open

    def traffic(self) -> TopicTraffic:
        return self.traffic_now

    def stats(self) -> TopicStats:
        raise NotImplementedError

    async def stats_in_slices(self) -> TopicStats:
        return self.stats()

    async def create_subscription(self, name: str, *, from_earliest: bool, properties: Mapping[str, str]) -> None:
        """Nothing is kept for it."""

    async def delete_subscription(self, name: str, *, force: bool) -> None:
        raise NotImplementedError

    def transaction_buffer(self) -> BufferFacts:
        raise NotImplementedError

    def transaction_in_buffer(self, txn_id: TxnId) -> InBufferFacts:
        raise NotImplementedError

    async def pending_acks(self, subscription: str) -> PendingAckFacts | None:
        raise NotImplementedError

    async def in_pending_acks(self, subscription: str, txn_id: TxnId) -> InPendingAckFacts | None:
        raise NotImplementedError

    async def place_in_pending_acks(self, subscription: str, position: Position, batch_index: int | None) -> AckPlace | None:
        raise NotImplementedError

    async def end_transaction(self, txn_id: TxnId, action: TxnAction, low_water_mark: int) -> None:
        self.ended_transactions.append((txn_id, action, low_water_mark))

    async def end_acknowledgements(self, subscription: str, txn_id: TxnId, action: TxnAction, low_water_mark: int) -> None:
        self.ended_acknowledgements.append((subscription, txn_id, action, low_water_mark))

    async def terminate(self) -> None:
        raise NotImplementedError

    async def trim(self) -> None:
        self.trims += 1

    async def close(self) -> None:
        await asyncio.sleep(0)
        self.is_closed = True
        self.close_count += 1

    async def delete(self, *, force: bool) -> None:
        await asyncio.sleep(0)
        if self.failure is not None:
            raise self.failure
        self.deletions.append(force)
        self.is_closed = True


class FakeTopics:
    """An `OpenTopic` that stores nothing but the node of the managed ledger."""

    def __init__(self, store: MetadataStore) -> None:
        self.store = store
        self.opened: list[str] = []
        self.topics: dict[str, FakeTopic] = {}
        self.wait: asyncio.Event | None = None
        self.failures: list[Exception] = []
        self.partition_indexes: dict[str, int] = {}

    async def __call__(self, name: str, managed_ledger_name: str, partition_index: int, *, create: bool) -> FakeTopic:
        self.opened.append(name)
        self.partition_indexes[name] = partition_index
        if self.wait is not None:
            await self.wait.wait()
        await asyncio.sleep(0)
        if self.failures:
            raise self.failures.pop(0)
        path = f"/managed-ledgers/{managed_ledger_name}"
        if not await self.store.exists(path):
            if not create:
                raise BrokerError(ServerError.TOPIC_NOT_FOUND, f"no {name}")
            await self.store.put(path, b"")
        topic = self.topics[name] = FakeTopic(name)
        return topic


def entry_run(ledger_id: int, first_entry_id: int, payloads: Sequence[bytes]) -> EntryRun:
    """Sealed entries with zeroes for headers."""
    offsets, buffer = array("I", [0]), bytearray()
    for payload in payloads:
        buffer += bytes(HEADER_BYTES_CRC32C) + payload
        offsets.append(len(buffer))
    return EntryRun(ledger_id, first_entry_id, buffer, offsets)
