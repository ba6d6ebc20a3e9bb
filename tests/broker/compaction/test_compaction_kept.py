"""Messages are kept until they are compacted, and nothing takes the compacted ones away."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from broker.compaction.compacted_topic import COMPACTION_CURSOR
from broker.errors import BrokerError, ServerError
from broker.policies.policies import TopicPolicies
from broker.topic.contract import SubscriptionType
from broker.topic.statistics.compaction_stats import CompactionState
from broker.topic.upkeep.topic_operations import StoredTopicOperations
from managed_ledger.contract import LATEST, ManagedLedgerError
from tests.broker.compaction.compaction_world import CompactedWorld, each, published
from tests.broker.compaction.messages import compacted_by_hand
from tests.broker.topic.topic_world import run
from wire.position import Position


@pytest.mark.parametrize("is_loaded_anew", [False, True])
def test_a_compaction_policy_keeps_messages_from_the_first_one_on(is_loaded_anew: bool) -> None:
    """With no subscription and no retention (Apache: preCreateSubscriptionForCompactionIfNeeded), whatever other limits say."""

    async def scenario() -> None:
        world = CompactedWorld()
        await world.open()
        await world.topic.delete_subscription(COMPACTION_CURSOR, force=False)
        if is_loaded_anew:
            await world.topic.close()
            await world.load()
        else:
            await world.topic.create_subscription("other", from_earliest=True, properties={})
        world.topic.upkeep.apply(TopicPolicies(compaction_threshold_bytes=1 << 20, max_subscriptions=1))
        await asyncio.sleep(1)
        world.topic.upkeep.apply(TopicPolicies(compaction_threshold_bytes=1 << 20))
        if not is_loaded_anew:
            await world.topic.delete_subscription("other", force=False)
        new = await published(world, *each(range(35), "v", keys=10))
        await world.topic.trim()
        assert await world.compact() is CompactionState.SUCCESS
        assert await world.read() == compacted_by_hand(new)

    run(scenario)


def test_a_cursor_of_compaction_that_could_not_be_made_is_made_at_the_next_check(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: object) -> None:
        raise ManagedLedgerError("the metadata store is away")

    async def scenario() -> None:
        world = CompactedWorld()
        await world.load()
        with monkeypatch.context() as patched:
            patched.setattr(world.log, "open_cursor", refuse)
            world.topic.upkeep.apply(TopicPolicies(compaction_threshold_bytes=1 << 20))
            await asyncio.sleep(1)
        assert not world.topic.is_closed
        assert world.topic.subscriptions.get(COMPACTION_CURSOR) is None
        world.topic.upkeep.check_compaction()
        await asyncio.sleep(1)
        assert world.topic.subscriptions.get(COMPACTION_CURSOR) is not None

    run(scenario)


MOVES: dict[str, Callable[[StoredTopicOperations, Position], Awaitable[object]]] = {
    "skip": lambda operations, last: operations.skip(COMPACTION_CURSOR, 5),
    "skip_all": lambda operations, last: operations.clear_backlog(COMPACTION_CURSOR),
    "expire": lambda operations, last: operations.expire_older_than(COMPACTION_CURSOR, 1),
    "expire_through": lambda operations, last: operations.expire_through(COMPACTION_CURSOR, last),
    "reset": lambda operations, last: operations.reset(COMPACTION_CURSOR, LATEST),
    "reset_to_time": lambda operations, last: operations.reset_to_time(COMPACTION_CURSOR, 1 << 50),
}


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_no_command_moves_the_place_up_to_which_a_topic_is_compacted(
    move: Callable[[StoredTopicOperations, Position], Awaitable[object]],
) -> None:
    """Messages between would be in no compacted ledger, and in none of the log once that is trimmed."""

    async def scenario() -> None:
        world = CompactedWorld()
        await world.open()
        old = await published(world, *each(range(30), "v"))
        await world.compact()
        new = await published(world, *each(range(15, 45), "w"))
        world.storage.clock.ms += 3_600_000
        with pytest.raises(BrokerError, match="compact") as refused:
            await move(world.topic.operations, world.log.last_confirmed)
        assert refused.value.code is ServerError.NOT_ALLOWED
        await world.topic.trim()
        assert await world.compact() is CompactionState.SUCCESS
        assert await world.read() == compacted_by_hand({**old, **new})

    run(scenario)


def test_a_consumer_on_the_compaction_cursor_is_refused() -> None:
    async def scenario() -> None:
        world = CompactedWorld()
        await world.open()
        for kind in SubscriptionType:
            with pytest.raises(BrokerError, match="compact") as refused:
                await world.consumer(subscription=COMPACTION_CURSOR, type=kind)
            assert refused.value.code is ServerError.NOT_ALLOWED

    run(scenario)


def test_a_broker_that_lost_the_topic_to_another_deletes_nothing_of_it() -> None:
    """A broker that slept through the end of its session still holds the topic, without clients."""

    async def scenario() -> None:
        world = CompactedWorld()
        await world.open()
        old = await published(world, *each(range(30), "v"))
        await world.topic.create_subscription("s", from_earliest=True, properties={})
        await world.compact()
        sleeper = world.topic
        world.storage.start()
        await world.open()
        new = await published(world, *each(range(15, 45), "w"))
        with pytest.raises(BrokerError):
            await sleeper.delete(force=False)
        assert await world.compact() is CompactionState.SUCCESS
        assert await world.read() == compacted_by_hand({**old, **new})
        assert world.topic.stats().subscriptions["s"].msg_backlog == 60

    run(scenario)
