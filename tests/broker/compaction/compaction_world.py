"""A topic that is compacted, on managed ledgers with small ledgers, over fakes that outlive the broker."""

import asyncio
from typing import Any

from broker.compaction.compacted_topic import COMPACTION_CURSOR
from broker.dispatchers.settings import DispatcherSettings
from broker.policies.topic_settings import TopicSettings
from broker.topic.opening import PersistentTopics
from broker.topic.statistics.compaction_stats import CompactionState
from managed_ledger.contract import EARLIEST
from tests.broker.compaction.messages import Seen, seen_in, single
from tests.broker.topic.topic_world import TOPIC, ConsumerEnd, World
from tests.broker.topic.transactions.transaction_world import SnapshotsHere
from tests.managed_ledger.fake_ledgers import FakeLedger
from tests.managed_ledger.ledger_world import NAME, trimming
from tests.managed_ledger.ledger_world import World as Storage
from wire.position import Position

COMPONENT = "component"


class CompactedWorld(World):
    """`open` and `restart` are a broker's."""

    def __init__(self, step_s: float = 0.0, settings: TopicSettings | None = None, **storage: Any) -> None:
        self.storage = Storage(trimming(**storage), step_s)
        self.settings = settings or TopicSettings()

    async def open(self) -> None:
        await self.load()
        await self.topic.create_subscription(COMPACTION_CURSOR, from_earliest=True, properties={})  # or all would be trimmed

    async def load(self) -> None:
        topics = PersistentTopics(self.storage.ledgers, self.settings, DispatcherSettings(), self.storage.clock)
        topics.store_snapshots_in(SnapshotsHere(topics, self.storage, self.settings).of)
        self.topic = await topics(TOPIC, NAME, -1, create=True)
        self.log = self.topic.ledger

    async def restart(self) -> None:
        await self.storage.restart()
        await self.open()

    async def unload(self) -> None:
        await self.topic.close()
        await self.open()

    async def compact(self) -> CompactionState:
        self.topic.compaction.trigger()
        await self.topic.compaction.finished()
        return self.topic.compaction.status.state

    def compacted_ledgers(self) -> list[int]:
        """Existing compacted ledgers, named by the cursor or not."""
        return [each.ledger_id for each in self.storage.shared.ledgers.values() if is_compacted(each)]

    async def read(self, *, compacted: bool = True, start: Position = EARLIEST) -> list[Seen]:
        """Messages that a reader gets from there on, until no more come."""
        reader, sink = await self.consumer(
            subscription="reader", durable=False, start=start, from_earliest=False, read_compacted=compacted
        )
        await asyncio.sleep(1)
        reader.close()
        await asyncio.sleep(0)
        return seen_by(sink)


def seen_by(sink: ConsumerEnd) -> list[Seen]:
    return [each for delivery in sink.got for each in seen_in(delivery.position, delivery.body)]


def is_compacted(ledger: FakeLedger) -> bool:
    return ledger.custom_metadata.get(COMPONENT) == b"compacted-ledger"


def newest(seen: list[Seen]) -> dict[str | None, bytes]:
    """Newest value of each key, as a table of keys has it after these."""
    found: dict[str | None, bytes] = {}
    for each in seen:
        if each.body:
            found[each.key] = each.body
        else:
            found.pop(each.key, None)
    return found


async def published(world: CompactedWorld, *sections: bytes) -> dict[Position, bytes]:
    """Publishes the messages in ledgers of ten entries."""
    found: dict[Position, bytes] = {}
    for start in range(0, len(sections), 10):
        some = sections[start : start + 10]
        found |= zip(await world.publish(*some), some, strict=True)
    return found


def each(numbers: range, body: str, keys: int = 1000) -> list[bytes]:
    """A message for each number, its key the number modulo `keys`."""
    return [single(f"k{number % keys}", f"{body}{number}".encode()) for number in numbers]
