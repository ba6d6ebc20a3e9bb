"""F46: topics of snapshots are compacted, also while read, and the next owner knows all aborted transactions."""

import asyncio
from dataclasses import replace

import pytest

from broker.policies.topic_settings import TopicSettings
from broker.topic.statistics.compaction_stats import CompactionState
from broker.topic.transactions.snapshot_store import SnapshotStore
from tests.broker.topic.topic_world import TOPIC, run
from tests.broker.topic.transactions.transaction_world import TransactionWorld, send, text_of
from wire.transactions import TxnAction, TxnId

SINGLE = TopicSettings(transaction_buffer_snapshot_max_transaction_count=3)
SEGMENTED = replace(
    SINGLE, transaction_buffer_segmented_snapshot_enabled=True, transaction_buffer_snapshot_segment_size=60
)  # of eight transactions each
COUNT, COMMITTED = 60, 5


def snapshots(world: TransactionWorld) -> SnapshotStore:
    found = world.snapshots.of(TOPIC)
    assert found is not None
    return found


async def compact(world: TransactionWorld) -> int:
    """All topics of snapshots; how many there are."""
    opened = list(world.snapshots._opened.values())
    for topic in opened:
        topic.compaction.trigger()
        await topic.compaction.finished()
        assert topic.compaction.status.state is CompactionState.SUCCESS
    return len(opened)


async def abort_most(world: TransactionWorld, first: int) -> None:
    producer, _ = await world.producer()
    for number in range(first, first + COUNT):
        send(producer, str(number), TxnId(7, number), number)
        await asyncio.sleep(0.1)
        action = TxnAction.ABORT if number % COMMITTED else TxnAction.COMMIT
        await world.topic.end_transaction(TxnId(7, number), action, -1)
    producer.close()
    await asyncio.sleep(10)  # for a snapshot


@pytest.mark.parametrize("settings", [SINGLE, SEGMENTED], ids=["single", "segmented"])
def test_f46_the_next_owner_knows_all_that_were_aborted_from_snapshots_that_were_compacted(settings: TopicSettings) -> None:
    async def scenario() -> None:
        world = TransactionWorld(settings)
        await world.open()
        await world.topic.create_subscription("s", from_earliest=True, properties={})
        for first in (0, COUNT):
            await abort_most(world, first)
            reading = asyncio.create_task(snapshots(world).read())
            assert await compact(world) == (2 if settings is SEGMENTED else 1)
            during = await reading
            await world.kill()
            after = await snapshots(world).read()
            for read in (during, after):
                assert read is not None
                assert len(read.aborted) == (first + COUNT) * (COMMITTED - 1) // COMMITTED
        assert len(world.topic.transactions.buffer.aborted) == 2 * COUNT * (COMMITTED - 1) // COMMITTED
        _, sink = await world.consumer()
        await asyncio.sleep(1)
        assert [text_of(delivery.body) for delivery in sink.got] == [str(each) for each in range(0, 2 * COUNT, COMMITTED)]

    run(scenario)
