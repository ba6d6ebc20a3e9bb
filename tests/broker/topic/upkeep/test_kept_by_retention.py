"""Retention keeps the messages of a backlog, however the backlog is taken away; without retention they go."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from broker.compaction.compacted_topic import COMPACTION_CURSOR
from broker.policies.policies import BacklogQuota, QuotaPolicy, QuotaType, RetentionPolicy, TopicPolicies
from broker.topic.contract import SubscriptionType
from managed_ledger.contract import EARLIEST, LATEST
from tests.broker.topic.test_topic_on_managed_ledger import StoredWorld
from tests.broker.topic.topic_world import ack_run, payload, run

MESSAGES = 35
FOR_EVER = RetentionPolicy(-1, -1)
NO_RETENTION = RetentionPolicy(0, 0)
EVICTION = QuotaPolicy.CONSUMER_BACKLOG_EVICTION
DAY_MS = 86_400_000


async def acknowledge(world: StoredWorld) -> None:
    consumer, sink = await world.consumer(type=SubscriptionType.SHARED)
    await asyncio.sleep(1)
    consumer.acknowledge_run(ack_run(*sink.positions))
    await asyncio.sleep(1)
    consumer.close()


async def expire(world: StoredWorld) -> None:
    await world.topic.upkeep.expire()


async def evict(world: StoredWorld) -> None:
    await world.topic.upkeep.check_quotas()


async def skip(world: StoredWorld) -> None:
    await world.topic.operations.skip("s", MESSAGES)


async def clear(world: StoredWorld) -> None:
    await world.topic.operations.clear_backlog("s")


async def expire_by_hand(world: StoredWorld) -> None:
    await world.topic.operations.expire_older_than("s", 1)


async def reset_to_the_end(world: StoredWorld) -> None:
    await world.topic.operations.reset("s", LATEST)


async def unsubscribe(world: StoredWorld) -> None:
    await world.topic.delete_subscription("s", force=False)


async def let_the_subscription_expire(world: StoredWorld) -> None:
    await asyncio.sleep(6 * 60)
    await world.topic.upkeep.expire_subscriptions()
    assert world.topic.subscriptions.get("s") is None


async def read(world: StoredWorld) -> None:
    """Reads with a single reader, which leaves."""
    await unsubscribe(world)
    reader, sink = await world.consumer(durable=False, subscription="reader", start=EARLIEST)
    await asyncio.sleep(1)
    assert len(sink.got) == MESSAGES
    reader.close()


async def load_anew(world: StoredWorld) -> None:
    """Loads the topic anew; its policies are not known at once."""
    await clear(world)
    await world.topic.close()
    await world.open()
    await asyncio.sleep(60)


async def kill(world: StoredWorld) -> None:
    await clear(world)
    await world.restart()
    await asyncio.sleep(60)


async def roll_over(world: StoredWorld) -> None:
    await clear(world)
    world.storage.clock.ms += DAY_MS
    await world.publish(*[payload() for _ in range(10)])
    await clear(world)


Way = Callable[[StoredWorld], Awaitable[None]]
WAYS: dict[str, tuple[Way, TopicPolicies]] = {
    "acknowledged": (acknowledge, TopicPolicies()),
    "expired": (expire, TopicPolicies(message_ttl_seconds=1)),
    "evicted by size": (evict, TopicPolicies(quotas={QuotaType.DESTINATION_STORAGE: BacklogQuota(100, -1, EVICTION)})),
    "evicted by age": (evict, TopicPolicies(quotas={QuotaType.MESSAGE_AGE: BacklogQuota(-1, 1, EVICTION)})),
    "skipped": (skip, TopicPolicies()),
    "cleared": (clear, TopicPolicies()),
    "expired by hand": (expire_by_hand, TopicPolicies()),
    "reset to the end": (reset_to_the_end, TopicPolicies()),
    "unsubscribed": (unsubscribe, TopicPolicies()),
    "subscription expired": (let_the_subscription_expire, TopicPolicies(subscription_expiration_minutes=5)),
    "read": (read, TopicPolicies()),
    "loaded anew": (load_anew, TopicPolicies()),
    "killed": (kill, TopicPolicies()),
    "rolled over": (roll_over, TopicPolicies()),
}


def with_retention(policies: TopicPolicies, retention: RetentionPolicy) -> TopicPolicies:
    return TopicPolicies(
        message_ttl_seconds=policies.message_ttl_seconds,
        quotas=policies.quotas,
        subscription_expiration_minutes=policies.subscription_expiration_minutes,
        retention=retention,
    )


async def filled(policies: TopicPolicies) -> StoredWorld:
    """Four ledgers, and a subscription that has read nothing of them."""
    world = StoredWorld()
    await world.open()
    world.topic.upkeep.apply(policies)
    await world.topic.create_subscription("s", from_earliest=True, properties={})
    for count in (10, 10, 10, 5):
        await world.publish(*[payload() for _ in range(count)])
    world.storage.clock.ms += DAY_MS
    return world


async def stored(world: StoredWorld) -> int:
    """Messages that who comes now can read, once all is trimmed that may be."""
    await world.topic.trim()
    await asyncio.sleep(1)
    reader, sink = await world.consumer(durable=False, subscription="late", start=EARLIEST)
    await asyncio.sleep(1)
    reader.close()
    return len(sink.got)


@pytest.mark.parametrize(("way", "policies"), WAYS.values(), ids=WAYS)
def test_retention_keeps_the_messages_however_their_backlog_is_removed(way: Way, policies: TopicPolicies) -> None:
    async def scenario() -> None:
        kept = with_retention(policies, FOR_EVER)
        world = await filled(kept)
        await way(world)
        world.topic.upkeep.apply(kept)
        assert await stored(world) >= MESSAGES
        world.topic.upkeep.apply(with_retention(policies, NO_RETENTION))
        assert await stored(world) <= 15, "it was retention that kept them"

    run(scenario)


@pytest.mark.parametrize("minutes", [60, 24 * 60 + 60])
def test_retention_by_time_counts_from_the_end_of_each_ledger(minutes: int) -> None:
    async def scenario() -> None:
        world = await filled(TopicPolicies(retention=RetentionPolicy(minutes, -1)))
        await clear(world)
        assert await stored(world) == (MESSAGES if minutes > 24 * 60 else 5)

    run(scenario)


@pytest.mark.parametrize("holder", ["s", COMPACTION_CURSOR, "pulsar.dedup"])
def test_messages_that_one_cursor_has_not_read_are_kept_without_retention(holder: str) -> None:
    async def scenario() -> None:
        world = await filled(TopicPolicies(retention=NO_RETENTION))
        await world.log.open_cursor(holder, EARLIEST)
        await world.topic.create_subscription("fast", from_earliest=False, properties={})
        if holder != "s":
            await clear(world)
        assert await stored(world) == MESSAGES

    run(scenario)


def test_a_subscription_reset_into_what_is_retained_holds_it_when_retention_ends() -> None:
    async def scenario() -> None:
        world = await filled(TopicPolicies(retention=FOR_EVER))
        await clear(world)
        second = world.log.ledgers()[1].ledger_id
        await world.topic.operations.reset("s", world.log.next_position(world.log.first_position())._replace(ledger_id=second))
        world.topic.upkeep.apply(TopicPolicies(retention=NO_RETENTION))
        assert await stored(world) == MESSAGES - 10

    run(scenario)
