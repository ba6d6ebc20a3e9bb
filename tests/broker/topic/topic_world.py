"""A topic on a ledger in memory, with the connection's end of producers and consumers as lists of what they heard."""

import asyncio
import random
from array import array
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from broker.dispatchers.settings import DispatcherSettings
from broker.errors import ServerError
from broker.policies.topic_settings import TopicSettings
from broker.topic.contract import AccessMode, KeySharedMeta, ProducerRequest, SubscribeRequest, SubscriptionType
from broker.topic.limits.broker_limits import BrokerLimits
from broker.topic.publish.producer import TopicProducer
from broker.topic.sent_part import SentPart
from broker.topic.subscription.consumer import TopicConsumer
from broker.topic.surroundings import TopicSurroundings
from broker.topic.topic import PersistentTopic
from managed_ledger.contract import ManagedLedger
from simulation.world.loop import SimLoop
from tests.broker.topic.memory_ledger import MemoryLedger
from wire.generated.pulsar_api_pb2 import MessageMetadata
from wire.position import Position
from wire.run import HEADER_BYTES_CRC32C, AckRun, EntryBatch, EntryRun, SendRun

TOPIC = "persistent://public/default/x"


class SetClock:
    """A wall clock that the test sets."""

    def __init__(self, now_ms: int = 1_000_000) -> None:
        self.time_ms = now_ms

    def now_ms(self) -> int:
        return self.time_ms


async def _there() -> bool:
    return True


class ProducerEnd:
    """Writes down what it hears, in order."""

    def __init__(self) -> None:
        self.heard: list[tuple[Any, ...]] = []
        self.ask: Callable[[], Coroutine[Any, Any, bool]] = _there

    async def is_alive(self) -> bool:
        return await self.ask()

    def receipts(self, run: SendRun, stored: EntryRun) -> None:
        assert run.entries.count == stored.count
        self.heard.append(("receipts", list(run.sequence_ids), Position(stored.ledger_id, stored.first_entry_id)))

    def part_stored(self, part: SentPart) -> None:
        self.receipts(part.send_run(), part.run())

    def send_failed(self, run: SendRun, code: ServerError, message: str) -> None:
        self.heard.append(("send_failed", list(run.sequence_ids), code))

    def hold_reading(self) -> None:
        self.heard.append(("hold_reading",))

    def resume_reading(self) -> None:
        self.heard.append(("resume_reading",))

    def ready(self, topic_epoch: int) -> None:
        self.heard.append(("ready", topic_epoch))

    def refused(self, code: ServerError, message: str) -> None:
        self.heard.append(("refused", code))

    def closed(self, reason: str) -> None:
        self.heard.append(("closed",))

    @property
    def answered(self) -> list[int]:
        return [sequence_id for what, *more in self.heard if what in ("receipts", "send_failed") for sequence_id in more[0]]


@dataclass
class Delivery:
    """One entry as a consumer got it."""

    position: Position
    redelivery_count: int
    ack_set: tuple[int, ...] | None
    consumer_epoch: int | None
    body: bytes


@dataclass
class ConsumerEnd:
    """Writes down what it hears."""

    is_writable: bool = True
    got: list[Delivery] = field(default_factory=list)
    heard: list[tuple[Any, ...]] = field(default_factory=list)
    room: int = 1 << 60
    """Entries that it takes before it is not writable any more."""
    check: Callable[[Position], None] = lambda position: None
    """Check that the test makes at the moment of delivery."""
    ask: Callable[[], Coroutine[Any, Any, bool]] = _there
    """Whether its peer is alive."""
    _fills_up: bool = False
    """Whether `room` ran out in this turn of the loop: entries that one read picked are delivered together."""

    async def is_alive(self) -> bool:
        return await self.ask()

    def deliver(
        self,
        run: EntryRun,
        indexes: range | Sequence[int],
        redelivery_counts: Sequence[int] | None,
        ack_sets: Mapping[int, Sequence[int]] | None,
        consumer_epoch: int | None,
    ) -> None:
        assert self.is_writable or self._fills_up
        for place, index in enumerate(indexes):
            count = 0 if redelivery_counts is None else redelivery_counts[place]
            words = None if ack_sets is None or index not in ack_sets else tuple(ack_sets[index])
            position = Position(run.ledger_id, run.first_entry_id + index)
            self.check(position)
            self.got.append(Delivery(position, count, words, consumer_epoch, bytes(run.payload(position.entry_id))))
        self.is_writable = len(self.got) < self.room
        if not self.is_writable and not self._fills_up:
            self._fills_up = True
            asyncio.get_running_loop().call_soon(self._is_full)

    def _is_full(self) -> None:
        self._fills_up = False

    def active_changed(self, is_active: bool) -> None:
        self.heard.append(("active", is_active))

    def reached_end_of_topic(self) -> None:
        self.heard.append(("end",))

    def closed(self, reason: str) -> None:
        self.heard.append(("closed",))

    @property
    def positions(self) -> list[Position]:
        return [delivery.position for delivery in self.got]

    @property
    def entries(self) -> list[int]:
        return [delivery.position.entry_id for delivery in self.got]


def payload(*, publish_time: int = 1, batch: int | None = None, marker: int | None = None, key: str | None = None) -> bytes:
    metadata = MessageMetadata(producer_name="p", sequence_id=0, publish_time=publish_time)
    if batch is not None:
        metadata.num_messages_in_batch = batch
    if marker is not None:
        metadata.marker_type = marker
    if key is not None:
        metadata.partition_key = key
    encoded = metadata.SerializeToString()
    return len(encoded).to_bytes(4, "big") + encoded + b"body"


def send_run(sequence_ids: Sequence[int], payloads: Sequence[bytes] | None = None, **fields: Any) -> SendRun:
    payloads = payloads or [payload() for _ in sequence_ids]
    buffer, offsets = bytearray(), array("I", [0])
    for body in payloads:
        buffer += bytes(HEADER_BYTES_CRC32C) + body
        offsets.append(len(buffer))
    entries = EntryBatch(buffer, offsets, HEADER_BYTES_CRC32C, len(payloads))
    ids = array("Q", sequence_ids)
    return SendRun(0, entries, ids, array("Q", [0] * len(ids)), fields.pop("flags", 0), 0, **fields)


def ack_run(*positions: tuple[int, int]) -> AckRun:
    return AckRun(1, array("Q", [p[0] for p in positions]), array("Q", [p[1] for p in positions]), 0)


PRODUCER = ProducerRequest(1, "p", True, 0, AccessMode.SHARED, None, False, {}, "10.0.0.1:1000", "test")
SUBSCRIBE = SubscribeRequest(
    consumer_id=1,
    subscription="s",
    type=SubscriptionType.EXCLUSIVE,
    consumer_name="c",
    priority_level=0,
    durable=True,
    start=None,
    start_batch_index=-1,
    start_rollback_seconds=0,
    from_earliest=True,
    metadata={},
    subscription_properties={},
    key_shared=KeySharedMeta(),
    consumer_epoch=None,
    read_compacted=False,
    address="10.0.0.1:1000",
    client_version="test",
)


def run(scenario: Callable[[], Coroutine[Any, Any, None]], seed: int = 1) -> None:
    """Runs on virtual time: timers cost nothing, and an error that nobody takes fails the test."""
    loop = SimLoop(random.Random(seed))
    try:
        loop.run_until_complete(scenario())
    finally:
        loop.finish()


async def settle() -> None:
    """Let everything that is ready to run do so; nothing here waits for time."""
    for _ in range(40):
        await asyncio.sleep(0)


class World:
    """One topic and its clients, on any managed ledger."""

    topic: PersistentTopic
    log: ManagedLedger

    async def producer(self, **fields: Any) -> tuple[TopicProducer, ProducerEnd]:
        sink = ProducerEnd()
        return await self.topic.add_producer(replace(PRODUCER, **fields), sink), sink

    async def consumer(self, permits: int = 1000, is_writable: bool = True, **fields: Any) -> tuple[TopicConsumer, ConsumerEnd]:
        sink = ConsumerEnd(is_writable)
        consumer = await self.topic.subscribe(replace(SUBSCRIBE, **fields), sink)
        if permits:
            consumer.flow(permits)
        await settle()
        return consumer, sink

    async def publish(self, *payloads: bytes) -> list[Position]:
        """Store messages without a producer."""
        run = await self.log.append(send_run(range(len(payloads)), payloads).entries)
        await settle()
        return [Position(run.ledger_id, entry_id) for entry_id in range(run.first_entry_id, run.last_entry_id + 1)]

    async def publish_many(self, count: int) -> list[Position]:
        return await self.publish(*[payload() for _ in range(count)])


class TopicWorld(World):
    """On a ledger in memory."""

    def __init__(
        self,
        ledger: MemoryLedger | None = None,
        settings: TopicSettings | None = None,
        dispatching: DispatcherSettings | None = None,
        partition_index: int = -1,
    ) -> None:
        self.ledger = ledger or MemoryLedger()
        self.log = self.ledger
        self.clock = SetClock()
        settings = settings or TopicSettings()
        around = TopicSurroundings(settings, dispatching or DispatcherSettings(), self.clock, BrokerLimits(settings))
        self.topic = PersistentTopic(TOPIC, self.ledger, partition_index, around)
