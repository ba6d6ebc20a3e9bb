"""The broker's own reader of `__change_events` and of snapshots: whatever size an entry says that it has, it goes on."""

import asyncio

import pytest

from broker.service.system_topics.event_log import ServedEventLog
from tests.broker.topic.topic_world import TopicWorld, payload, run
from wire.position import Position


@pytest.mark.parametrize(("entries", "batch"), [(60, 65), (3, 1 << 20)])
def test_batches_are_read_to_the_end_however_many_messages_they_say_they_have(entries: int, batch: int) -> None:
    """Each gave back one permit: after a thousand messages nothing came, and no topic of the namespace could be loaded."""

    async def scenario() -> None:
        world = TopicWorld()
        log, got = ServedEventLog(world.topic, lambda: "r"), list[Position]()
        for _ in range(entries):
            await world.publish(payload(batch=batch))
        end = await log.read(lambda position, _: got.append(position), lambda reason: None)
        await asyncio.sleep(1)
        assert (len(got), got[-1]) == (entries, end)
        log.close()

    run(scenario)
