"""A topic on the real managed ledger, and those who publish and acknowledge in transactions on it."""

from dataclasses import replace

from broker.subscription.settings import DispatcherSettings
from broker.topic.opening import PersistentTopics
from broker.topic.producer import TopicProducer
from broker.topic.settings import TopicSettings
from managed_ledger.settings import ManagedLedgerSettings
from tests.broker.topic.topic_world import TOPIC, World, send_run
from tests.managed_ledger.ledger_world import NAME, trimming
from tests.managed_ledger.ledger_world import World as Storage
from wire.generated.pulsar_api_pb2 import MessageMetadata
from wire.payloads import payload_section
from wire.transactions import TxnId

ONE, TWO, THREE = TxnId(7, 1), TxnId(7, 2), TxnId(7, 3)


class TransactionWorld(World):
    """A topic of a broker that can be killed."""

    def __init__(self, settings: TopicSettings | None = None, storage: ManagedLedgerSettings | None = None) -> None:
        self.settings = settings or TopicSettings()
        self.storage = Storage(storage or trimming())

    async def open(self) -> None:
        topics = PersistentTopics(self.storage.ledgers, self.settings, DispatcherSettings(), self.storage.clock)
        self.topic = await topics(TOPIC, NAME, -1, create=True)
        self.log = self.topic.ledger

    async def kill(self) -> None:
        """And start again: what was not stored is lost."""
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
    """What `body` was made of."""
    size = int.from_bytes(payload[6:10])
    return payload[10 + size :].decode()
