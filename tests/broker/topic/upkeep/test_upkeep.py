"""Expiry, exceeded quotas, and what a topic does about them: the three policies, by size and by age."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from broker.errors import BrokerError, ServerError
from broker.policies.policies import BacklogQuota, QuotaPolicy, QuotaType, RetentionPolicy, TopicPolicies
from broker.policies.topic_settings import TopicSettings
from broker.topic.contract import SubscriptionType
from broker.topic.upkeep.backlog import backlog_bytes, closed_before, entries_after, entries_to_evict, nth_in
from managed_ledger.contract import EARLIEST, LedgerFacts
from tests.broker.topic.topic_world import TopicWorld, ack_run, payload, run, send_run, settle
from wire.position import Position

NOW_MS = 1_000_000
EXCEEDED = {
    QuotaPolicy.PRODUCER_REQUEST_HOLD: ServerError.PRODUCER_BLOCKED_QUOTA_EXCEEDED_ERROR,
    QuotaPolicy.PRODUCER_EXCEPTION: ServerError.PRODUCER_BLOCKED_QUOTA_EXCEEDED_EXCEPTION,
}


def log(*ledgers: tuple[int, int, int]) -> list[LedgerFacts]:
    """Ledgers of (entries, bytes, closed at); the last one is open."""
    return [
        LedgerFacts(place, entries, size, closed, place == len(ledgers) - 1)
        for place, (entries, size, closed) in enumerate(ledgers)
    ]


def size_quota(limit: int, policy: QuotaPolicy) -> TopicPolicies:
    return TopicPolicies(quotas={QuotaType.DESTINATION_STORAGE: BacklogQuota(limit, -1, policy)})


def age_quota(seconds: int, policy: QuotaPolicy) -> TopicPolicies:
    return TopicPolicies(quotas={QuotaType.MESSAGE_AGE: BacklogQuota(-1, seconds, policy)})


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=5),
    st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4))),
    st.tuples(st.integers(0, 4), st.integers(-1, 4)),
    st.integers(1, 12),
)
def test_skipping_counts_what_is_not_acknowledged(
    sizes: list[int], holes: set[tuple[int, int]], mark: tuple[int, int], count: int
) -> None:
    ledgers = log(*[(size, 10 * size, 1) for size in sizes])
    left = [(n, e) for n, size in enumerate(sizes) for e in range(size) if (n, e) > mark and (n, e) not in holes]
    beyond = {n: BitMap([e for m, e in holes if m == n and (n, e) > mark and e < sizes[n]]) for n in range(len(sizes))}
    found, rest = None, count
    for ledger, first in entries_after(ledgers, Position(*mark)):
        place, rest = nth_in(ledger, first, beyond[ledger.ledger_id], rest)
        found = place or found
        if not rest:
            break
    assert found == (Position(*left[:count][-1]) if left else None)
    assert rest == max(count - len(left), 0)
    assert backlog_bytes(ledgers, Position(*mark)) == 10 * sum((n, e) > mark for n, s in enumerate(sizes) for e in range(s))


def test_a_backlogs_size_subtracts_a_whole_mean_for_each_consumed_entry() -> None:
    """AdminApi2Test.testBacklogNoDelayedForPartitionedTopic expects the size to the byte."""
    ledgers = log((10, 608, 0))
    assert [backlog_bytes(ledgers, Position(0, entry)) for entry in (-1, 0, 5, 8, 9)] == [608, 548, 248, 68, 0]


def test_a_ledger_ages_from_its_close_and_the_open_one_not_at_all() -> None:
    ledgers = log((3, 30, 100), (3, 30, 200), (3, 30, 0))
    assert closed_before(ledgers, EARLIEST, 100) is None
    assert closed_before(ledgers, EARLIEST, 101) == Position(0, 2)
    assert closed_before(ledgers, Position(0, 2), 150) is None
    assert closed_before(ledgers, Position(0, 1), 10_000) == Position(1, 2)
    assert closed_before(ledgers, Position(1, 2), 10_000) is None


def test_eviction_brings_the_backlog_to_nine_tenths_of_its_limit() -> None:
    assert entries_to_evict(2000, 1000, 200) == 110
    assert entries_to_evict(900, 1000, 90) == 0
    assert entries_to_evict(0, 0, 0) == 0


def test_messages_expire_in_order_and_consumers_stay() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        world.clock.time_ms = NOW_MS
        _, sink = await world.consumer(permits=0, type=SubscriptionType.SHARED)
        await world.consumer(permits=0, subscription="reader", durable=False)
        times = [NOW_MS - 9_000, NOW_MS - 8_000, NOW_MS - 1_000, NOW_MS - 7_000]
        await world.publish(*[payload(publish_time=time) for time in times])
        await world.topic.upkeep.expire()
        assert world.topic.stats().subscriptions["s"].msg_backlog == 4
        world.topic.upkeep.apply(TopicPolicies(message_ttl_seconds=5))
        await world.topic.upkeep.expire()
        stats = world.topic.stats().subscriptions
        assert (stats["s"].msg_backlog, stats["s"].total_msg_expired) == (2, 2)
        assert stats["s"].last_expire_timestamp == NOW_MS
        assert stats["reader"].msg_backlog == 4, "nobody's place but a subscription's expires"
        world.clock.time_ms += 10_000
        await world.topic.upkeep.expire()
        assert world.topic.stats().subscriptions["s"].msg_backlog == 0
        assert sink.heard == []

    run(scenario)


def test_a_message_that_does_not_say_how_old_it_is_does_not_expire() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        world.clock.time_ms = NOW_MS
        await world.topic.create_subscription("s", from_earliest=True, properties={})
        old = payload(publish_time=NOW_MS - 9_000)
        await world.publish(old, b"no metadata", old)
        world.topic.upkeep.apply(TopicPolicies(message_ttl_seconds=5))
        for _ in range(2):
            await world.topic.upkeep.expire()
            assert world.topic.stats().subscriptions["s"].msg_backlog == 2
        assert await world.topic.operations.oldest_in_backlog() is None

    run(scenario)


def test_a_message_that_expires_with_a_consumer_is_not_redelivered_and_frees_its_place() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        consumer, sink = await world.consumer(type=SubscriptionType.SHARED)
        await world.publish(*[payload(publish_time=1) for _ in range(5)])
        assert len(sink.got) == 5
        world.topic.upkeep.apply(TopicPolicies(message_ttl_seconds=1))
        await world.topic.upkeep.expire()
        consumer.redeliver([], None)
        await settle()
        assert len(sink.got) == 5
        assert consumer.stats().unacked_messages == 0
        await world.publish_many(1)
        assert len(sink.got) == 6

    run(scenario)


def test_a_ledger_closed_long_ago_expires_without_being_read() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        world.clock.time_ms = NOW_MS
        await world.topic.create_subscription("s", from_earliest=True, properties={})
        await world.publish(*[payload(publish_time=NOW_MS)] * 3)
        world.ledger.roll_over()
        world.ledger.closed_at_ms[3] = NOW_MS - 60_000
        world.topic.upkeep.apply(TopicPolicies(message_ttl_seconds=30))
        await world.topic.upkeep.expire()
        assert world.topic.stats().subscriptions["s"].msg_backlog == 0

    run(scenario)


@pytest.mark.parametrize("policy", list(EXCEEDED))
def test_a_backlog_too_large_sends_producers_away_and_keeps_them_out_until_it_is_smaller(policy: QuotaPolicy) -> None:
    async def scenario() -> None:
        world = TopicWorld()
        producer, heard = await world.producer()
        consumer, sink = await world.consumer(type=SubscriptionType.SHARED)
        world.topic.upkeep.apply(size_quota(100, policy))
        await world.topic.upkeep.check_quotas()
        assert heard.heard == []
        producer.publish(send_run(range(20)))
        await settle()
        world.ledger.hold = True
        producer.publish(send_run([20]))
        checking = asyncio.ensure_future(world.topic.upkeep.check_quotas())
        await settle()
        world.ledger.release()
        await checking
        assert heard.answered == list(range(21))
        assert heard.heard[-1] == ("closed",)
        with pytest.raises(BrokerError) as refused:
            await world.producer(producer_id=2, name="q")
        assert refused.value.code is EXCEEDED[policy]
        consumer.acknowledge_run(ack_run(*sink.positions))
        await world.producer(producer_id=3, name="q")

    run(scenario)


def test_eviction_takes_from_the_slowest_and_leaves_who_keeps_up() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        await world.topic.create_subscription("slow", from_earliest=True, properties={})
        consumer, sink = await world.consumer(type=SubscriptionType.SHARED, subscription="fast")
        producer, heard = await world.producer()
        producer.publish(send_run(range(100)))
        await settle()
        consumer.acknowledge_run(ack_run(*sink.positions[:95]))
        limit = world.ledger.size_bytes // 2
        world.topic.upkeep.apply(size_quota(limit, QuotaPolicy.CONSUMER_BACKLOG_EVICTION))
        await world.topic.upkeep.check_quotas()
        stats = world.topic.stats().subscriptions
        assert (stats["slow"].msg_backlog, stats["fast"].msg_backlog) == (45, 5)
        assert stats["slow"].backlog_size <= 0.9 * limit
        assert world.topic.stats().quota_evictions == (1, 0)
        assert heard.answered == list(range(100))
        assert ("closed",) not in heard.heard
        await world.producer(producer_id=2, name="q")

    run(scenario)


@pytest.mark.parametrize("is_precise", [False, True])
def test_a_backlog_too_old_by_its_ledger_or_to_the_message(is_precise: bool) -> None:
    async def scenario() -> None:
        world = TopicWorld(settings=TopicSettings(precise_time_based_backlog_quota_check=is_precise))
        world.clock.time_ms = NOW_MS
        await world.topic.create_subscription("s", from_earliest=True, properties={})
        world.topic.upkeep.apply(age_quota(10, QuotaPolicy.PRODUCER_EXCEPTION))
        await world.publish(*[payload(publish_time=NOW_MS - 20_000), payload(publish_time=NOW_MS)])
        if is_precise:
            with pytest.raises(BrokerError):
                await world.producer()
        else:
            await world.producer()
        world.ledger.roll_over()
        world.ledger.closed_at_ms[3] = NOW_MS - 11_000
        with pytest.raises(BrokerError) as refused:
            await world.producer(name="q")
        assert refused.value.code is ServerError.PRODUCER_BLOCKED_QUOTA_EXCEEDED_EXCEPTION
        world.topic.upkeep.apply(age_quota(10, QuotaPolicy.CONSUMER_BACKLOG_EVICTION))
        await world.topic.upkeep.check_quotas()
        assert world.topic.stats().subscriptions["s"].msg_backlog == 0
        assert world.topic.stats().quota_evictions == (0, 1)
        await world.producer(name="r")

    run(scenario)


@pytest.mark.parametrize("is_precise", [False, True])
def test_the_age_of_a_backlog_is_known_from_the_last_check_and_costs_a_reader_of_it_nothing(is_precise: bool) -> None:
    async def scenario() -> None:
        world = TopicWorld(settings=TopicSettings(precise_time_based_backlog_quota_check=is_precise))
        world.clock.time_ms = NOW_MS
        await world.topic.create_subscription("s", from_earliest=True, properties={})
        await world.publish(payload(publish_time=NOW_MS - 20_000))
        assert world.topic.stats().oldest_backlog_message_age_seconds == -1, "nobody has looked"
        await world.topic.upkeep.check_quotas()
        assert world.topic.stats().oldest_backlog_message_age_seconds == (20 if is_precise else -1)
        world.ledger.roll_over()
        world.ledger.closed_at_ms[3] = NOW_MS - 11_000
        await world.topic.upkeep.check_quotas()
        world.clock.time_ms = NOW_MS + 1000
        assert world.topic.stats().oldest_backlog_message_age_seconds == (21 if is_precise else 12)
        await world.topic.operations.clear_backlog("s")
        assert world.topic.stats().oldest_backlog_message_age_seconds == -1

    run(scenario)


def test_without_subscriptions_there_is_no_backlog() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        world.topic.upkeep.apply(size_quota(1, QuotaPolicy.PRODUCER_EXCEPTION))
        await world.publish_many(10)
        await world.producer()

    run(scenario)


def test_the_namespaces_word_wins_over_the_brokers_and_can_be_taken_back() -> None:
    async def scenario() -> None:
        settings: dict[str, Any] = {"ttl_duration_default_in_seconds": 60, "default_retention_time_in_minutes": 7}
        settings |= {"backlog_quota_default_limit_gb": 0.5, "backlog_quota_default_retention_policy": "producer_exception"}
        world = TopicWorld(settings=TopicSettings(**settings, default_retention_size_in_mb=3))
        upkeep = world.topic.upkeep
        assert (upkeep.policies.message_ttl_seconds, upkeep.policies.size_quota.limit_bytes) == (60, 1 << 29)
        assert upkeep.policies.age_quota.policy is QuotaPolicy.PRODUCER_EXCEPTION
        upkeep.apply(TopicPolicies(0, RetentionPolicy(-1, 5), {QuotaType.MESSAGE_AGE: BacklogQuota(limit_seconds=9)}))
        assert (upkeep.policies.message_ttl_seconds, upkeep.policies.age_quota.limit_seconds) == (0, 9)
        assert upkeep.policies.size_quota.limit_bytes == 1 << 29
        assert world.ledger.retention == (-1, 5 << 20)
        upkeep.apply(TopicPolicies())
        assert world.ledger.retention == (7 * 60_000, 3 << 20)
        assert upkeep.policies.message_ttl_seconds == 60

    run(scenario)


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="backlogQuotaDefaultRetentionPolicy: expected one of producer_request_hold"):
        TopicSettings(backlog_quota_default_retention_policy="drop")
    with pytest.raises(ValueError, match="ttlDurationDefaultInSeconds"):
        TopicSettings(ttl_duration_default_in_seconds=-1)
