"""Reads pass over entries that are acknowledged up to mark-delete.

One message at the beginning was acknowledged last, with ten thousands behind it: a consumer with permits and backlog was given
nothing for 20 s while the broker read through those.
"""

import pytest

from broker.topic.contract import SubscriptionType
from tests.broker.topic.topic_world import TopicWorld, ack_run, run, settle

COUNT = 5000


@pytest.mark.parametrize("kind", SubscriptionType)
def test_acknowledged_entries_up_to_mark_delete_are_not_read_again(kind: SubscriptionType) -> None:
    async def scenario() -> None:
        world = TopicWorld()
        positions = await world.publish_many(COUNT)
        before, _ = await world.consumer(permits=COUNT, type=kind)
        before.acknowledge_run(ack_run(*positions[1:-1]))
        before.close()
        consumer, end = await world.consumer(permits=1, type=kind)
        assert end.positions == positions[:1]
        consumer.acknowledge_run(ack_run(positions[0]))
        reads = 0

        def read_seconds() -> float:
            nonlocal reads
            reads += 1
            return 0.0

        world.ledger.read_seconds = read_seconds
        consumer.flow(10)
        await settle()
        assert end.positions == [positions[0], positions[-1]]
        assert reads <= 1

    run(scenario)
