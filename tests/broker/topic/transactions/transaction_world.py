"""A topic on the real managed ledger, and those who publish and acknowledge in transactions on it."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count

from broker.dispatchers.settings import DispatcherSettings
from broker.policies.topic_settings import TopicSettings
from broker.service.system_topics.event_log import COMPACTION_CURSOR, ServedEventLog
from broker.service.topic_name import TopicName
from broker.topic.opening import PersistentTopics
from broker.topic.publish.producer import TopicProducer
from broker.topic.topic import PersistentTopic
from broker.topic.transactions.snapshot_store import SnapshotStore
from broker.transaction.snapshots.schemas import Kind
from broker.transaction.snapshots.snapshot_topic import SnapshotTopic
from broker.transaction.snapshots.snapshots import segment_capacity
from broker.transaction.snapshots.topic_snapshots import TopicSnapshots
from managed_ledger.settings import ManagedLedgerSettings
from tests.broker.topic.topic_world import TOPIC, World, send_run
from tests.managed_ledger.ledger_world import NAME, trimming
from tests.managed_ledger.ledger_world import World as Storage
from wire.generated.pulsar_api_pb2 import MessageMetadata
from wire.payloads import payload_section
from wire.transactions import TxnId

ONE, TWO, THREE = TxnId(7, 1), TxnId(7, 2), TxnId(7, 3)


class SnapshotsHere:
    """The topics of snapshots of one namespace on one storage, each opened once and never trimmed."""

    def __init__(self, topics: PersistentTopics, storage: Storage, settings: TopicSettings) -> None:
        self._topics, self._storage, self._settings = topics, storage, settings
        self._names = count()
        self._opened: dict[TopicName, PersistentTopic] = {}
        self.topics = {kind: self._made(kind) for kind in Kind}

    def _made(self, kind: Kind) -> SnapshotTopic:
        return SnapshotTopic(TopicName.parse(f"public/default/{kind.value}"), self._open, self._storage.clock)

    async def _open(self, topic: TopicName, is_made: bool) -> ServedEventLog | None:
        if topic not in self._opened:
            if not is_made and not await self._storage.ledgers.exists(topic.managed_ledger_name):
                return None
            opened = await self._topics(str(topic), topic.managed_ledger_name, -1, create=True)
            await opened.create_subscription(COMPACTION_CURSOR, from_earliest=True, properties={})
            self._opened[topic] = opened
        return ServedEventLog(self._opened[topic], lambda: f"name-{next(self._names)}")

    def of(self, topic: str) -> SnapshotStore | None:
        if TopicName.parse(topic).is_system:
            return None
        topic_of: Callable[[Kind], SnapshotTopic] = self.topics.__getitem__
        return TopicSnapshots(
            topic,
            topic_of,
            self._storage.clock,
            is_segmented=self._settings.transaction_buffer_segmented_snapshot_enabled,
            segment_capacity=segment_capacity(topic, self._settings.transaction_buffer_snapshot_segment_size),
        )


class TransactionWorld(World):
    """A topic of a broker that can be killed."""

    def __init__(self, settings: TopicSettings | None = None, storage: ManagedLedgerSettings | None = None) -> None:
        self.settings = settings or TopicSettings()
        self.storage = Storage(storage or trimming())

    async def open(self) -> None:
        topics = PersistentTopics(self.storage.ledgers, self.settings, DispatcherSettings(), self.storage.clock)
        self.snapshots = SnapshotsHere(topics, self.storage, self.settings)
        topics.store_snapshots_in(self.snapshots.of)
        self.topic = await topics(TOPIC, NAME, -1, create=True)
        self.log = self.topic.ledger

    async def kill(self) -> None:
        """Kills the broker and starts it again: what was not stored is lost."""
        self.topic.transactions.stop()
        await self.storage.restart()
        await self.open()


def body(text: str, txn_id: TxnId | None = None, batch: int | None = None) -> bytes:
    """A message as a client makes it."""
    metadata = MessageMetadata(producer_name="p", sequence_id=0, publish_time=1)
    if batch is not None:
        metadata.num_messages_in_batch = batch
    if txn_id is not None:
        metadata.txnid_most_bits, metadata.txnid_least_bits = txn_id
    return payload_section(metadata, text.encode())


def send(producer: TopicProducer, text: str, txn_id: TxnId | None = None, sequence_id: int = 0) -> None:
    """Publish one message."""
    producer.publish(replace(send_run([sequence_id], [body(text, txn_id)]), txn_id=txn_id))


def text_of(payload: bytes) -> str:
    """Text from which `body` was made."""
    size = int.from_bytes(payload[6:10])
    return payload[10 + size :].decode()
