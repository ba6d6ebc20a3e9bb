"""A message is gone within a second after its time to live; a topic without time to live is never looked at."""

import asyncio
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from broker.dispatchers.settings import DispatcherSettings
from broker.policies.policies import TopicPolicies
from broker.policies.topic_settings import TopicSettings
from broker.topic.limits.broker_limits import BrokerLimits
from broker.topic.surroundings import TopicSurroundings
from broker.topic.topic import PersistentTopic
from broker.topic.upkeep.expiry_timer import SLACK_SECONDS, look_after_seconds
from managed_ledger.contract import ManagedLedgerError
from tests.broker.topic.memory_ledger import MemoryLedger
from tests.broker.topic.topic_world import TOPIC, World, payload, run
from wire.position import Position
from wire.run import EntryRun

TTL_SECONDS = 120


class LoopClock:
    """The loop's virtual time as a wall clock, after 1970."""

    def now_ms(self) -> int:
        return 1_000_000_000 + round(asyncio.get_running_loop().time() * 1000)


class CountedLedger(MemoryLedger):
    """Writes down when it was read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[float] = []
        self.failures_left = 0

    async def read(self, position: Position, entries_max: int, bytes_max: int) -> EntryRun | None:
        self.reads.append(asyncio.get_running_loop().time())
        if self.failures_left:
            self.failures_left -= 1
            raise ManagedLedgerError("not now")
        return await super().read(position, entries_max, bytes_max)


class TimedWorld(World):
    """A topic whose clock is the loop's."""

    def __init__(self, ttl_seconds: int) -> None:
        self.log = self.ledger = CountedLedger()
        self.clock = LoopClock()
        settings = TopicSettings(ttl_duration_default_in_seconds=ttl_seconds)
        around = TopicSurroundings(settings, DispatcherSettings(), self.clock, BrokerLimits(settings))
        self.topic = PersistentTopic(TOPIC, self.ledger, -1, around)

    async def subscribed(self) -> "TimedWorld":
        await self.topic.create_subscription("s", from_earliest=True, properties={})
        return self

    async def publish_now(self) -> None:
        await self.publish(payload(publish_time=self.clock.now_ms()))

    @property
    def backlog(self) -> int:
        return self.topic.stats().subscriptions["s"].msg_backlog


@given(st.integers(0, 10**9), st.integers(1, 10**6), st.none() | st.integers(0, 2 * 10**9))
def test_the_next_look_comes_after_the_oldest_is_due_and_before_a_second_has_passed(
    now_ms: int, ttl_seconds: int, oldest_ms: int | None
) -> None:
    at = now_ms / 1000 + look_after_seconds(now_ms, ttl_seconds, oldest_ms)
    oldest = now_ms if oldest_ms is None else min(oldest_ms, now_ms)
    due = max(oldest / 1000 + ttl_seconds, now_ms / 1000)
    assert due < at <= due + SLACK_SECONDS + 0.001


def test_each_message_is_there_for_its_time_and_gone_within_a_second_after_it() -> None:
    async def scenario() -> None:
        world = await TimedWorld(TTL_SECONDS).subscribed()
        for pause in (0.0, 0.3, 5.0, 0.2, 47.7):
            await asyncio.sleep(pause)
            await world.publish_now()
        published = [0.0, 0.3, 5.3, 5.5, 53.2]
        for place, (before, after) in enumerate(pairwise([*published, 1000.0])):
            await asyncio.sleep(before + TTL_SECONDS - 0.01 - asyncio.get_running_loop().time())
            assert world.backlog >= len(published) - place, "none goes before its time"
            await asyncio.sleep(min(1.01, after - before))
            if after - before > 1:
                assert world.backlog == len(published) - place - 1
        assert world.backlog == 0
        await world.topic.close()

    run(scenario)


def test_a_topic_is_looked_at_when_something_is_due_and_one_without_a_time_to_live_never() -> None:
    async def scenario() -> None:
        without, world = await TimedWorld(0).subscribed(), await TimedWorld(TTL_SECONDS).subscribed()
        await without.publish_now()
        await asyncio.sleep(86_400)
        assert without.ledger.reads == []
        assert world.ledger.reads == [], "without a backlog nothing is read"
        await world.publish_now()
        await asyncio.sleep(TTL_SECONDS + 1)
        assert world.backlog == 0
        assert len(world.ledger.reads) <= 6
        await without.topic.close()
        await world.topic.close()

    run(scenario)


def test_a_new_time_to_live_holds_at_once_and_none_any_more_ends_it() -> None:
    async def scenario() -> None:
        world = await TimedWorld(0).subscribed()
        await world.publish_now()
        await asyncio.sleep(10)
        world.topic.upkeep.apply(TopicPolicies(message_ttl_seconds=5))
        await asyncio.sleep(1)
        assert world.backlog == 0
        await world.publish_now()
        world.topic.upkeep.apply(TopicPolicies(message_ttl_seconds=0))
        await asyncio.sleep(100)
        assert world.backlog == 1
        await world.topic.close()

    run(scenario)


def test_a_log_that_cannot_be_read_for_a_while_is_looked_at_again_and_a_closed_topic_is_not() -> None:
    async def scenario() -> None:
        world = await TimedWorld(2).subscribed()
        await world.publish_now()
        world.ledger.failures_left = 2
        await asyncio.sleep(60)
        assert world.backlog == 0
        await world.publish_now()
        await world.topic.close()
        world.topic.upkeep.apply(TopicPolicies(message_ttl_seconds=1))
        read = len(world.ledger.reads)
        await asyncio.sleep(100)
        assert len(world.ledger.reads) == read

    run(scenario)
