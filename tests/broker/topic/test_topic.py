"""A topic's life: activity, unloading, deletion, the end of a terminated topic, stats, loading."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from broker.dispatchers.contract import Dispatcher, Effect, EntriesRead, Event, PermitsAdded, TimerFired
from broker.dispatchers.settings import DispatcherSettings
from broker.errors import BrokerError, ServerError
from broker.policies.topic_settings import TopicSettings
from broker.topic.contract import OpenTopic, SubscriptionType, Topic
from broker.topic.errors import broker_error
from broker.topic.opening import PersistentTopics
from managed_ledger.contract import (
    InvalidCursorPosition,
    ManagedLedgerError,
    ManagedLedgerFenced,
    ManagedLedgerNotFound,
    ManagedLedgerTerminated,
)
from ports.settings import build_settings
from tests.broker.topic.memory_ledger import MemoryLedgers
from tests.broker.topic.topic_world import TopicWorld, ack_run, payload, run, send_run, settle

SHARED = SubscriptionType.SHARED


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ManagedLedgerError("x"), ServerError.PERSISTENCE),
        (ManagedLedgerFenced("x"), ServerError.SERVICE_NOT_READY),
        (ManagedLedgerTerminated("x"), ServerError.TOPIC_TERMINATED),
        (ManagedLedgerNotFound("x"), ServerError.TOPIC_NOT_FOUND),
        (InvalidCursorPosition("x"), ServerError.NOT_ALLOWED),
    ],
)
def test_failures_of_the_log_have_one_code_each(error: ManagedLedgerError, code: ServerError) -> None:
    assert broker_error(error).code is code


def test_a_topic_is_loaded_from_its_managed_ledger_or_not_found() -> None:
    async def scenario() -> None:
        ledgers = MemoryLedgers()
        world = TopicWorld()
        open_topic: OpenTopic = PersistentTopics(ledgers, TopicSettings(), DispatcherSettings(), world.clock)
        with pytest.raises(BrokerError) as refused:
            await open_topic("persistent://a/b/c", "a/b/persistent/c", -1, create=False)
        assert refused.value.code is ServerError.TOPIC_NOT_FOUND
        topic: Topic = await open_topic("persistent://a/b/c", "a/b/persistent/c", -1, create=True)
        assert topic.name == "persistent://a/b/c"
        assert topic.header_bytes == 36
        await topic.close()
        assert ledgers.by_name["a/b/persistent/c"].is_closed

    run(scenario)


def test_activity_says_who_is_there_and_since_when_nobody_is() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        loop = asyncio.get_running_loop()
        assert world.topic.activity().last_active_ms == int(loop.time() * 1000)
        producer, _ = await world.producer()
        consumer, _ = await world.consumer()
        await world.consumer(subscription="reader", durable=False)
        await world.publish_many(3)
        busy = world.topic.activity()
        assert (busy.producers, busy.consumers, busy.durable_subscriptions, busy.backlog_entries) == (1, 2, 1, 3)
        await asyncio.sleep(5)
        producer.close()
        await asyncio.sleep(5)
        world.clock.time_ms += 86_400_000  # the wall clock is set, which is no time that the topic was unused
        consumer.close()
        idle = world.topic.activity()
        assert (idle.producers, idle.consumers) == (0, 1)
        assert idle.last_active_ms == int(loop.time() * 1000)

    run(scenario)


@pytest.mark.parametrize("who", ["nobody", "a reader of anything", "a reader", "a producer", "messages"])
def test_the_schema_is_open_until_somebody_depends_on_what_is_written(who: str) -> None:
    async def scenario() -> None:
        world = TopicWorld()
        match who:
            case "a reader of anything":
                await world.consumer(takes_any_schema=True)
            case "a reader":
                await world.consumer()
            case "a producer":
                await world.producer()
            case "messages":
                await world.publish_many(1)
        assert world.topic.activity().is_schema_open == (who in ("nobody", "a reader of anything"))

    run(scenario)


def test_unloading_tells_everybody_flushes_and_refuses_newcomers() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        _, producer = await world.producer()
        _, consumer = await world.consumer()
        first = asyncio.ensure_future(world.topic.close())
        await settle()
        await world.topic.close()
        await first
        assert producer.heard == [("closed",)]
        assert consumer.heard == [("closed",)]
        assert world.ledger.is_closed
        for refused in (world.producer(name="q"), world.consumer(subscription="q")):
            with pytest.raises(BrokerError) as refusal:
                await refused
            assert refusal.value.code is ServerError.SERVICE_NOT_READY

    run(scenario)


def test_a_topic_whose_log_another_broker_has_lets_its_consumers_go_also_where_nobody_publishes() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        _, consumer = await world.consumer()
        (told,) = world.ledger.fenced_listeners
        told()
        assert world.topic.is_closed
        await settle()
        assert consumer.heard == [("closed",)]
        assert world.ledger.fenced_listeners == []
        told()
        await settle()
        assert consumer.heard == [("closed",)], "once"

    run(scenario)


def test_a_subscriber_whose_topic_closes_meanwhile_is_refused() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        subscribing = asyncio.ensure_future(world.consumer())
        closing = asyncio.ensure_future(world.topic.close())
        with pytest.raises(BrokerError) as refused:
            await subscribing
        assert refused.value.code is ServerError.SERVICE_NOT_READY
        await closing

    run(scenario)


def test_a_topic_in_use_is_deleted_only_by_force() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        producer, heard = await world.producer()
        with pytest.raises(BrokerError) as busy:
            await world.topic.delete(force=False)
        assert busy.value.code is ServerError.PRODUCER_BUSY
        producer.close()
        _, sink = await world.consumer()
        with pytest.raises(BrokerError) as still:
            await world.topic.delete(force=False)
        assert still.value.code is ServerError.CONSUMER_BUSY
        assert not world.topic.is_closed
        await world.topic.delete(force=True)
        assert sink.heard == [("closed",)]
        assert heard.heard == []
        assert world.ledger.is_deleted

    run(scenario)


def test_a_topic_with_subscriptions_but_nobody_on_them_is_deleted_without_force() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        consumer, _ = await world.consumer()
        consumer.close()
        await world.topic.delete(force=False)
        assert world.ledger.is_deleted
        await world.topic.close()

    run(scenario)


def test_a_deletion_that_fails_leaves_a_closed_topic_that_can_be_loaded_again() -> None:
    async def scenario() -> None:
        world = TopicWorld()

        async def fail(beside: Callable[[], Awaitable[None]] | None = None) -> None:
            raise ManagedLedgerError("no metadata")

        world.ledger.delete = fail  # type: ignore[method-assign]
        with pytest.raises(BrokerError) as refused:
            await world.topic.delete(force=False)
        assert refused.value.code is ServerError.PERSISTENCE
        assert world.topic.is_closed
        await world.topic.close()
        assert world.ledger.is_closed

    run(scenario)


def test_trim_reaches_the_log() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        await world.topic.trim()
        assert world.ledger.trims == 1

    run(scenario)


@pytest.mark.parametrize("where", ["request", "read", "timer"])
def test_an_error_of_ours_in_dispatching_closes_the_topic_so_that_it_starts_anew(where: str) -> None:
    async def scenario() -> None:
        world = TopicWorld()
        consumer, sink = await world.consumer(type=SHARED)
        (subscription,) = world.topic.subscriptions.all
        driver = subscription._driver
        assert driver is not None
        driver.dispatcher = cast(Dispatcher, _Broken(driver.dispatcher, where))
        if where == "request":
            with pytest.raises(ZeroDivisionError):
                consumer.flow(1)
        elif where == "read":
            await world.publish_many(1)
        else:
            with pytest.raises(ZeroDivisionError):
                driver.handle(TimerFired())
        await settle()
        assert world.topic.is_closed
        assert sink.heard == [("closed",)]

    run(scenario)


class _Broken:
    """A dispatcher with a bug."""

    def __init__(self, inner: Dispatcher, where: str) -> None:
        self._inner = inner
        self._kind = {"request": PermitsAdded, "read": EntriesRead, "timer": TimerFired}[where]

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        if isinstance(event, self._kind):
            raise ZeroDivisionError
        return self._inner.handle(event, now_ms)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


# the end of a terminated topic


def test_a_consumer_that_acknowledged_all_of_a_terminated_topic_is_told_its_end_once() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        consumer, sink = await world.consumer(type=SHARED)
        positions = await world.publish_many(2)
        await world.topic.terminate()
        assert sink.heard == []
        consumer.acknowledge_run(ack_run(positions[0]))
        assert sink.heard == []
        consumer.acknowledge_run(ack_run(positions[1]))
        consumer.acknowledge_run(ack_run(positions[1]))
        assert sink.heard == [("end",)]

    run(scenario)


def test_consumers_without_backlog_are_told_of_termination_at_once_or_on_subscribing() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        _, sink = await world.consumer()
        await world.topic.terminate()
        assert sink.heard == [("end",)]
        _, late = await world.consumer(subscription="late")
        assert late.heard == [("end",)]

    run(scenario)


# stats


def test_rates_are_those_of_the_last_period() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        producer, _ = await world.producer()
        consumer, sink = await world.consumer(type=SHARED)
        producer.publish(send_run(range(120)))
        await settle()
        consumer.acknowledge_run(ack_run(*sink.positions[:60]))
        await asyncio.sleep(61)
        stats = world.topic.stats()
        assert stats.msg_rate_in == pytest.approx(2.0, rel=0.01)
        assert stats.average_msg_size == pytest.approx(world.ledger.size_bytes / 120, rel=0.01)
        assert stats.publishers[0].msg_rate_in == pytest.approx(2.0, rel=0.01)
        subscription = stats.subscriptions["s"]
        assert subscription.msg_rate_out == pytest.approx(2.0, rel=0.01)
        assert subscription.message_ack_rate == pytest.approx(1.0, rel=0.01)
        assert consumer.stats().message_rate_out == subscription.msg_rate_out
        await asyncio.sleep(60)
        assert world.topic.stats().msg_rate_in == 0

    run(scenario)


def test_subscription_stats_say_what_is_outstanding() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        consumer, sink = await world.consumer(type=SHARED, permits=5)
        await world.publish(payload(batch=3), payload(batch=3), payload())
        stats = world.topic.stats().subscriptions["s"]
        assert (stats.msg_backlog, stats.unacked_messages, stats.msg_out_counter) == (3, 6, 6)
        assert stats.bytes_out_counter == 2 * len(payload(batch=3))
        assert stats.consumers[0].available_permits == -1
        assert stats.consumers[0].avg_messages_per_entry == 3
        assert stats.last_mark_delete_advanced_timestamp == 0
        consumer.acknowledge_run(ack_run(*sink.positions))
        stats = world.topic.stats().subscriptions["s"]
        assert stats.last_mark_delete_advanced_timestamp == stats.last_acked_timestamp == world.clock.time_ms
        consumer.close()
        stats = world.topic.stats().subscriptions["s"]
        assert (stats.msg_out_counter, stats.bytes_out_counter) == (6, 2 * len(payload(batch=3)))

    run(scenario)


def test_delivered_messages_stay_counted_when_their_subscription_is_deleted() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        reader, _ = await world.consumer(subscription="reader", durable=False)
        await world.consumer()
        await world.publish(payload(batch=3), payload())
        reader.close()
        assert world.topic.stats().msg_out_counter == 8
        await world.topic.delete_subscription("s", force=True)
        stats = world.topic.stats()
        assert (stats.subscriptions, stats.msg_out_counter) == ({}, 8)
        assert stats.bytes_out_counter == 2 * len(payload(batch=3)) + 2 * len(payload())

    run(scenario)


def test_the_active_consumer_of_failover_is_named() -> None:
    async def scenario() -> None:
        world = TopicWorld()
        for name in "ba":
            await world.consumer(type=SubscriptionType.FAILOVER, consumer_name=name)
        assert world.topic.stats().subscriptions["s"].active_consumer_name == "a"

    run(scenario)


def test_settings_are_filled_from_apaches_keys() -> None:
    settings = build_settings(
        TopicSettings,
        {"maxProducersPerTopic": "3", "subscriptionTypesEnabled": "Shared,Exclusive", "statsUpdateFrequencyInSecs": "7"},
    )
    assert settings.max_producers_per_topic == 3
    assert settings.subscription_types_enabled == ("Shared", "Exclusive")
    assert settings.stats_update_frequency_in_secs == 7
    with pytest.raises(ValueError, match="at least 1"):
        TopicSettings(stats_update_frequency_in_secs=0)
