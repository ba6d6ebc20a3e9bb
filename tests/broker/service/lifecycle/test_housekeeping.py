"""Unused topics are deleted in time and no sooner; consumed ledgers are trimmed."""

import asyncio
import logging
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import BrokerError, ServerError
from broker.policies.policies import InactiveMode, InactiveTopicPolicy, RetentionPolicy, TopicPolicies
from broker.service.lifecycle.housekeeping import Housekeeping, Inactivity, SeenTopic, Standing
from broker.service.settings import BrokerSettings
from broker.topic.contract import Topic, TopicActivity
from tests.broker.fake_topics import FakeTopic, FakeUpkeep
from tests.simulation.worlds import run

IDLE = TopicActivity(producers=0, consumers=0, durable_subscriptions=0, backlog_entries=0, last_active_ms=0)
UNUSED = InactiveTopicPolicy(True, InactiveMode.NO_SUBSCRIPTIONS, 60)
CAUGHT_UP = InactiveTopicPolicy(True, InactiveMode.CAUGHT_UP, 60)
KEPT = InactiveTopicPolicy(False, InactiveMode.CAUGHT_UP, 60)
NO_RETENTION = RetentionPolicy(0, 0)


def activity(
    producers: int = 0, consumers: int = 0, subscriptions: int = 0, backlog: int = 0, last_ms: int = 0, entries: int = 0
) -> TopicActivity:
    return TopicActivity(producers, consumers, subscriptions, backlog, last_ms, entries)


def expired(
    inactivity: Inactivity,
    now: TopicActivity,
    policy: InactiveTopicPolicy,
    now_ms: int,
    retention: RetentionPolicy = NO_RETENTION,
) -> bool:
    """Whether the topic `t` expires in a round at that time."""
    standing = inactivity.judged("t", SeenTopic(now, policy, retention), now_ms)
    inactivity.round_ended()
    return standing is Standing.EXPIRED


@pytest.mark.parametrize(
    ("policy", "now", "is_deleted"),
    [
        (UNUSED, activity(), True),
        (UNUSED, activity(producers=1), False),
        (UNUSED, activity(consumers=1), False),
        (UNUSED, activity(subscriptions=1), False),
        (CAUGHT_UP, activity(subscriptions=1), True),
        (CAUGHT_UP, activity(subscriptions=1, backlog=1), False),
        (CAUGHT_UP, activity(subscriptions=1, consumers=1), False),
        (UNUSED, activity(last_ms=70_000), False),
        (InactiveTopicPolicy(True, InactiveMode.NO_SUBSCRIPTIONS, 200), activity(), False),
        (KEPT, activity(), False),
    ],
)
def test_the_topics_policy_and_activity_decide_whether_it_is_inactive(
    policy: InactiveTopicPolicy, now: TopicActivity, is_deleted: bool
) -> None:
    inactivity = Inactivity()
    expired(inactivity, now, policy, 60_000)
    assert expired(inactivity, now, policy, 120_000) == is_deleted


@pytest.mark.parametrize(
    ("retention", "entries", "kept_ms"),
    [
        (RetentionPolicy(-1, -1), 1, 1 << 60),
        (RetentionPolicy(-1, 5), 1, 1 << 60),
        (RetentionPolicy(-1, -1), 0, 60_000),
        (RetentionPolicy(0, 0), 1, 60_000),
        (RetentionPolicy(0, -1), 1, 60_000),
        (RetentionPolicy(10, 5), 1, 600_000),
        (RetentionPolicy(10, -1), 1, 600_000),
        (RetentionPolicy(10, -1), 0, 60_000),
        (RetentionPolicy(1, 1), 1, 60_000),
    ],
)
def test_an_inactive_topic_with_entries_is_kept_for_its_retention_time(
    retention: RetentionPolicy, entries: int, kept_ms: int
) -> None:
    inactivity, idle = Inactivity(), activity(entries=entries, last_ms=1000)
    assert not expired(inactivity, idle, UNUSED, 1000 + kept_ms - 1, retention)
    assert expired(inactivity, idle, UNUSED, 1000 + kept_ms, retention) == (kept_ms < 1 << 60)


def test_the_time_counts_from_when_the_topic_was_last_seen_in_use() -> None:
    inactivity = Inactivity()
    assert not expired(inactivity, activity(subscriptions=1), UNUSED, 600_000)
    assert not expired(inactivity, IDLE, UNUSED, 630_000)
    assert not expired(inactivity, IDLE, UNUSED, 659_999)
    assert expired(inactivity, IDLE, UNUSED, 660_000)


@given(st.lists(st.tuples(st.integers(1, 50_000), st.booleans()), max_size=30))
def test_no_topic_is_deleted_before_it_was_idle_for_the_whole_time(rounds: list[tuple[int, bool]]) -> None:
    """Each round: so many ms later, and whether the topic was in use."""
    inactivity, now, last_use = Inactivity(), 0, 0
    for step, in_use in rounds:
        now += step
        if in_use:
            last_use = now
        is_expired = expired(inactivity, activity(subscriptions=int(in_use)), UNUSED, now)
        assert not (is_expired and now - last_use < 60_000)


def test_the_sweep_deletes_what_is_idle_and_survives_what_cannot_be_deleted() -> None:
    async def scenario() -> None:
        names = [f"persistent://public/default/{name}" for name in ("idle", "refused", "broken", "used", "closed")]
        topics = {name: FakeTopic(name) for name in (*names, "persistent://pulsar/system/x")}
        topics[names[3]].now = activity(producers=1)
        topics[names[4]].is_closed = True
        deleted: list[str] = []

        async def delete(name: str, check: Callable[[Topic], None]) -> None:
            check(topics[name])
            deleted.append(name)
            if name == names[1]:
                raise BrokerError(ServerError.NOT_ALLOWED, "in use")
            if name == names[2]:
                raise ZeroDivisionError

        keeper = Housekeeping(BrokerSettings(), topics, delete)
        task = asyncio.create_task(keeper.run())
        await asyncio.sleep(59)
        assert deleted == []
        await asyncio.sleep(121)
        assert deleted[:3] == names[:3]
        assert len(deleted) > 3
        assert [topic.trims for topic in topics.values()] == [1, 1, 1, 1, 0, 1]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(lambda _: scenario())


def test_a_topic_that_somebody_used_while_others_were_deleted_is_not_deleted() -> None:
    async def scenario() -> None:
        names = [f"persistent://public/default/t{number}" for number in range(5)]
        topics = {name: FakeTopic(name) for name in names}
        deleted: list[str] = []

        async def delete(name: str, check: Callable[[Topic], None]) -> None:
            await asyncio.sleep(5)
            check(topics[name])
            deleted.append(name)
            topics[names[1]].now = activity(subscriptions=1, backlog=3)
            topics[names[2]].now = activity(last_ms=int(asyncio.get_running_loop().time() * 1000))
            topics[names[3]].upkeep.apply(TopicPolicies(inactive=KEPT))

        keeper = Housekeeping(BrokerSettings(), topics, delete)
        await asyncio.sleep(120)
        await keeper.sweep()
        assert deleted == [names[0], names[4]]

    run(lambda _: scenario())


def test_a_topic_that_retention_alone_keeps_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        name = "persistent://public/default/t"
        topic = FakeTopic(name)
        topic.upkeep.apply(TopicPolicies(retention=RetentionPolicy(-1, -1)))
        topic.now = activity(entries=5)
        keeper = Housekeeping(BrokerSettings(), {name: topic}, never)
        with caplog.at_level(logging.INFO):
            for _ in range(4):
                await asyncio.sleep(61)
                await keeper.sweep()
            kept = [record.getMessage() for record in caplog.records]
            assert kept == [f'what="inactive topic kept by its retention" topic={name} entries=5 retention_minutes=-1']
            topic.now = activity(producers=1, entries=6)
            await keeper.sweep()
            topic.now = activity(entries=6)
            await asyncio.sleep(61)
            await keeper.sweep()
        assert len(caplog.records) == 2

    run(lambda _: scenario())


def test_nothing_is_deleted_when_that_is_switched_off() -> None:
    async def scenario() -> None:
        topics = {"persistent://public/default/idle": FakeTopic("idle")}
        topics["persistent://public/default/idle"].upkeep.apply(TopicPolicies(inactive=KEPT))

        task = asyncio.create_task(Housekeeping(BrokerSettings(), topics, never).run())
        await asyncio.sleep(1000)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(lambda _: scenario())


def test_each_round_has_its_own_time_and_one_topic_that_fails_does_not_keep_the_others_waiting() -> None:
    async def scenario() -> None:
        topics = {f"persistent://public/default/t{number}": FakeTopic(str(number)) for number in range(120)}
        broken, closed, *others = topics.values()
        broken.upkeep = closed.upkeep = BrokenUpkeep()
        closed.is_closed = True
        turns = 0

        async def count_turns() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        for topic in topics.values():
            topic.upkeep.apply(TopicPolicies(inactive=KEPT))
        settings = BrokerSettings()
        keeper = asyncio.create_task(Housekeeping(settings, topics, never).run())
        await asyncio.sleep(61)
        assert [topic.upkeep.quota_checks for topic in others] == [1] * 118
        assert broken.upkeep.quota_checks == 1
        await asyncio.sleep(240)
        assert [(topic.upkeep.expiries, topic.trims) for topic in others] == [(1, 2)] * 118
        keeper.cancel()
        counter = asyncio.create_task(count_turns())
        await asyncio.sleep(0)
        housekeeping = Housekeeping(settings, topics, never)
        for work in (housekeeping.expire, housekeeping.sweep, housekeeping.trim):
            before = turns
            await work()
            assert turns >= before + 3, "others run between slices of topics"
        counter.cancel()
        await asyncio.gather(keeper, counter, return_exceptions=True)

    run(lambda _: scenario())


def test_quotas_are_not_checked_when_that_is_switched_off() -> None:
    async def scenario() -> None:
        topic = FakeTopic("t")
        topic.upkeep.apply(TopicPolicies(inactive=KEPT))
        settings = BrokerSettings(backlog_quota_check_enabled=False)
        keeper = asyncio.create_task(Housekeeping(settings, {"persistent://a/b/t": topic}, never).run())
        await asyncio.sleep(1000)
        assert (topic.upkeep.quota_checks, topic.upkeep.expiries, topic.upkeep.subscription_expiries) == (0, 3, 3)
        keeper.cancel()
        await asyncio.gather(keeper, return_exceptions=True)

    run(lambda _: scenario())


class BrokenUpkeep(FakeUpkeep):
    async def check_quotas(self) -> None:
        self.quota_checks += 1
        raise ZeroDivisionError


async def never(name: str, check: Callable[[Topic], None]) -> None:
    raise AssertionError(name)
