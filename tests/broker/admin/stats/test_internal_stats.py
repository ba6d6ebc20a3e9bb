"""Internal stats of a topic on the real managed ledger: where its dispatchers are, and what keeps its cursors."""

import asyncio
from datetime import datetime
from typing import Any

import pytest

from broker.admin.stats.internal_stats import internal_stats_json
from broker.admin.stats.topic_stats import topic_stats_json
from broker.topic.contract import SubscriptionType
from tests.broker.topic.test_topic_on_managed_ledger import StoredWorld
from tests.broker.topic.topic_world import ack_run, run


async def told(world: StoredWorld) -> dict[str, Any]:
    topic = world.topic
    return await internal_stats_json(topic.ledger, None, topic.stats().subscriptions)


@pytest.mark.parametrize("kind", [SubscriptionType.SHARED, SubscriptionType.KEY_SHARED, SubscriptionType.EXCLUSIVE])
def test_a_dispatchers_read_position_and_whether_it_waits_are_shown(kind: SubscriptionType) -> None:
    async def scenario() -> None:
        world = StoredWorld()
        await world.open()
        consumer, end = await world.consumer(type=kind, subscription="a b", permits=3)
        await world.publish_many(3)
        stats = await told(world)
        cursor, first = stats["cursors"]["a+b"], end.positions[0]
        assert (cursor["readPosition"], cursor["waitingReadOp"]) == (f"{first.ledger_id}:3", True)
        assert (cursor["subscriptionHavePendingRead"], stats["waitingCursorsCount"]) == (True, 1)
        await world.publish_many(4)
        stuck = (await told(world))["cursors"]["a+b"]
        assert (stuck["readPosition"], stuck["waitingReadOp"]) == (f"{first.ledger_id}:3", False), "nobody has permits"
        consumer.close()
        assert (await told(world))["cursors"]["a+b"]["readPosition"] == str(first), "who comes next begins there"
        await world.topic.close()

    run(scenario)


def test_the_ledger_of_a_cursor_its_last_entry_and_when_it_was_changed() -> None:
    async def scenario() -> None:
        world = StoredWorld()
        await world.open()
        consumer, end = await world.consumer(type=SubscriptionType.SHARED)
        await world.publish_many(4)
        cursor = (await told(world))["cursors"]["s"]
        assert (cursor["cursorLedger"], cursor["cursorLedgerLastEntry"], cursor["state"]) == (-1, -1, "NoLedger")
        for position in end.positions[:2]:
            consumer.acknowledge_run(ack_run(position))
            await asyncio.sleep(5)
        cursor = (await told(world))["cursors"]["s"]
        assert (cursor["state"], cursor["cursorLedgerLastEntry"]) == ("Open", 1)
        assert cursor["cursorLedger"] == world.topic.subscriptions.all[0].cursor.hole_stats().ledger_id >= 0
        assert not cursor["lastLedgerSwitchTimestamp"].startswith("1970-01-01T00:00:00.000")
        await world.topic.close()

    run(scenario)


def test_the_ledger_that_is_written_to_is_told_apart_as_apache_does() -> None:
    async def scenario() -> None:
        world = StoredWorld()
        await world.open()
        await world.publish_many(3)
        stats = await told(world)
        assert (stats["ledgers"][-1]["entries"], stats["ledgers"][-1]["size"]) == (0, 0)
        assert (stats["currentLedgerEntries"], stats["state"]) == (3, "LedgerOpened")
        assert stats["currentLedgerSize"] == stats["totalSize"] > 0
        await world.topic.close()

    run(scenario)


def test_the_creation_time_of_the_last_ledger_is_shown_before_and_after_the_first_append() -> None:
    """Apache never tells 1970: its ledger begins when the topic is opened. Here it is begun by the first append."""

    async def scenario() -> None:
        world = StoredWorld()
        await world.open()
        opened = datetime.fromisoformat((await told(world))["lastLedgerCreatedTimestamp"])
        assert opened.timestamp() > 0
        world.storage.clock.ms += 60_000
        await world.publish_many(1)
        begun = datetime.fromisoformat((await told(world))["lastLedgerCreatedTimestamp"])
        assert (begun - opened).total_seconds() >= 60
        world.storage.clock.ms += 60_000
        await world.publish_many(1)
        assert datetime.fromisoformat((await told(world))["lastLedgerCreatedTimestamp"]) == begun, "it goes on in that ledger"
        await world.topic.close()

    run(scenario)


def test_the_holes_of_a_subscription_are_told_whatever_its_name_is() -> None:
    async def scenario() -> None:
        world = StoredWorld()
        await world.open()
        consumer, end = await world.consumer(type=SubscriptionType.SHARED, subscription="a b")
        await world.publish_many(3)
        consumer.acknowledge_run(ack_run(end.positions[1]))
        await asyncio.sleep(5)
        stats = await topic_stats_json(world.topic)
        assert stats["subscriptions"]["a b"]["nonContiguousDeletedMessagesRanges"] == 1
        assert stats["nonContiguousDeletedMessagesRanges"] == 1
        await world.topic.close()

    run(scenario)
