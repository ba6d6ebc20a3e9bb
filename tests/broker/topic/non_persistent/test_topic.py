"""Non-persistent topics: to whom a message goes, what is dropped, and what clients are told, as Apache's NonPersistentTopic."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from broker.dispatchers.settings import DispatcherSettings
from broker.errors import BrokerError, ServerError
from broker.policies.policies import DispatchRate, TopicPolicies
from broker.policies.topic_settings import TopicSettings
from broker.topic.contract import AccessMode, KeySharedMeta, KeySharedMode, SubscriptionType
from broker.topic.limits.broker_limits import BrokerLimits
from broker.topic.non_persistent.opening import NonPersistentTopics
from broker.topic.non_persistent.topic import NonPersistentTopic
from broker.topic.publish.producer import TopicProducer
from broker.topic.subscription.consumer import TopicConsumer
from tests.broker.topic.topic_world import PRODUCER, SUBSCRIBE, ConsumerEnd, ProducerEnd, SetClock, payload, run, settle
from tests.broker.topic.topic_world import send_run as stored_send_run
from wire.position import Position
from wire.run import EntryBatch, EntryRun, SendRun

NAME = "non-persistent://public/default/x"


class Sender(ProducerEnd):
    """Also hears of runs of which a part was dropped."""

    kept = 0

    def receipts(self, run: SendRun, stored: EntryRun) -> None:
        assert stored.is_passing
        self.kept += stored.count
        self.heard.append(("receipts", list(run.sequence_ids), Position(stored.ledger_id, stored.first_entry_id)))


def send_run(payloads: Sequence[bytes]) -> SendRun:
    """Without room before each payload."""
    found = stored_send_run(range(len(payloads)), payloads)
    entries, size = found.entries, found.entries.header_bytes
    buffer, offsets = bytearray(), entries.offsets[:1]
    for start, end in zip(entries.offsets, entries.offsets[1:], strict=False):
        buffer += entries.buffer[start + size : end]
        offsets.append(len(buffer))
    return replace(found, entries=EntryBatch(buffer, offsets, 0, entries.message_count))


class World:
    """One topic and its clients."""

    def __init__(self, settings: TopicSettings | None = None) -> None:
        self.settings = settings or TopicSettings()
        self.clock = SetClock()

    async def open(self, partition_index: int = -1) -> NonPersistentTopic:
        topics = NonPersistentTopics(self.settings, DispatcherSettings(), self.clock, BrokerLimits(self.settings))
        self.topic = await topics(NAME, "public/default/non-persistent/x", partition_index, create=True)
        return self.topic

    async def consumer(self, permits: int = 1000, **fields: object) -> tuple[TopicConsumer, ConsumerEnd]:
        sink = ConsumerEnd()
        consumer = await self.topic.subscribe(replace(SUBSCRIBE, **fields), sink)  # type: ignore[arg-type]
        if permits:
            consumer.flow(permits)
        await settle()
        return consumer, sink

    async def producer(self, **fields: object) -> tuple[TopicProducer, Sender]:
        sink = Sender()
        return await self.topic.add_producer(replace(PRODUCER, **fields), sink), sink  # type: ignore[arg-type]

    def dropped(self, subscription: str = "s") -> int:
        return next(each.dropped_messages for each in self.topic._passing() if each.name == subscription)


def test_everybody_who_is_there_gets_what_is_published_and_later_ones_do_not() -> None:
    async def scenario() -> None:
        world = World()
        topic = await world.open()
        _, early = await world.consumer(subscription="early")
        producer, sink = await world.producer()
        producer.publish(send_run([payload(key="a"), payload(key="b")]))
        _, late = await world.consumer(subscription="late")
        producer.publish(send_run([payload(key="c")]))
        await settle()
        assert (len(early.got), len(late.got)) == (3, 1)
        assert sink.heard == [("receipts", [0, 1], Position(0, 0)), ("receipts", [0], Position(0, 0))]
        await topic.close()
        assert early.heard[-1] == late.heard[-1] == sink.heard[-1] == ("closed",)

    run(scenario)


@pytest.mark.parametrize("kind", list(SubscriptionType))
def test_messages_without_permits_are_dropped_and_counted(kind: SubscriptionType) -> None:
    async def scenario() -> None:
        world = World()
        topic = await world.open()
        consumer, sink = await world.consumer(permits=3, type=kind)
        producer, _ = await world.producer()
        producer.publish(send_run([payload(key=str(each)) for each in range(5)]))
        assert len(sink.got) == 3
        assert world.dropped() == 2
        consumer.flow(1)
        await settle()
        assert len(sink.got) == 3, "what was dropped does not come later"
        producer.publish(send_run([payload(key="z")] * 2))
        assert (len(sink.got), world.dropped()) == (4, 3)
        await topic.close()

    run(scenario)


@pytest.mark.parametrize("kind", list(SubscriptionType))
def test_a_consumer_with_a_full_connection_gets_nothing_until_it_is_writable(kind: SubscriptionType) -> None:
    async def scenario() -> None:
        world = World()
        topic = await world.open()
        consumer, sink = await world.consumer(type=kind)
        sink.room = 2
        producer, _ = await world.producer()
        for each in range(4):
            producer.publish(send_run([payload(key=str(each))]))
        assert (len(sink.got), world.dropped()) == (2, 2)
        sink.room, sink.is_writable = 100, True
        consumer.writable()
        producer.publish(send_run([payload()]))
        assert (len(sink.got), world.dropped()) == (3, 2)
        await topic.close()

    run(scenario)


def test_shared_consumers_take_turns_and_whoever_has_permits_takes_what_the_others_cannot() -> None:
    async def scenario() -> None:
        world = World()
        topic = await world.open()
        _, small = await world.consumer(permits=2, type=SubscriptionType.SHARED, consumer_name="small")
        _, large = await world.consumer(type=SubscriptionType.SHARED, consumer_name="large", consumer_id=2)
        producer, _ = await world.producer()
        producer.publish(send_run([payload()] * 50))
        assert (len(small.got), len(large.got), world.dropped()) == (2, 48, 0)
        await topic.close()

    run(scenario)


def test_a_key_stays_with_its_consumer_and_is_dropped_where_that_one_has_no_permits() -> None:
    async def scenario() -> None:
        world = World()
        topic = await world.open()
        halves = ((0, 32767),), ((32768, 65535),)
        ends: list[ConsumerEnd] = []
        for number, ranges in enumerate(halves):
            meta = KeySharedMeta(KeySharedMode.STICKY, ranges)
            kind = SubscriptionType.KEY_SHARED
            _, end = await world.consumer(
                10 - 9 * number, type=kind, key_shared=meta, consumer_id=number, consumer_name=str(number)
            )
            ends.append(end)
        producer, _ = await world.producer()
        for _ in range(3):
            producer.publish(send_run([payload(key=str(each)) for each in range(8)]))
        keys = [Counter(each.body for each in end.got) for end in ends]
        assert not keys[0].keys() & keys[1].keys()
        assert len(ends[1].got) == 1
        assert len(ends[0].got) + len(ends[1].got) + world.dropped() == 24
        await topic.close()

    run(scenario)


def test_a_failover_consumer_takes_over_at_once() -> None:
    async def scenario() -> None:
        world = World()
        topic = await world.open()
        _, second = await world.consumer(type=SubscriptionType.FAILOVER, consumer_name="b", priority_level=1)
        producer, _ = await world.producer()
        producer.publish(send_run([payload()]))
        first, better = await world.consumer(type=SubscriptionType.FAILOVER, consumer_name="a", consumer_id=2)
        producer.publish(send_run([payload()]))
        first.close()
        producer.publish(send_run([payload()]))
        assert (len(second.got), len(better.got), world.dropped()) == (2, 1, 0)
        assert ("active", False) in second.heard
        await topic.close()

    run(scenario)


def test_a_subscription_is_gone_with_its_last_consumer_and_keeps_no_place() -> None:
    async def scenario() -> None:
        world = World()
        topic = await world.open()
        consumer, _ = await world.consumer(type=SubscriptionType.SHARED)
        assert list(topic.stats().subscriptions) == ["s"]
        assert not topic.stats().subscriptions["s"].is_durable
        consumer.close()
        await settle()
        assert topic.stats().subscriptions == {}
        producer, _ = await world.producer()
        producer.publish(send_run([payload()]))
        _, sink = await world.consumer(type=SubscriptionType.EXCLUSIVE)
        assert sink.got == []
        await topic.close()

    run(scenario)


def test_acknowledging_redelivering_and_seeking_change_nothing() -> None:
    async def scenario() -> None:
        world = World()
        topic = await world.open()
        consumer, sink = await world.consumer(type=SubscriptionType.SHARED)
        producer, _ = await world.producer()
        producer.publish(send_run([payload()] * 2))
        consumer.redeliver((), None)
        await consumer.seek(Position(-1, -1), ())
        await consumer.seek_by_time(0)
        await consumer.acknowledgements_stored()
        await settle()
        assert (len(sink.got), sink.heard) == (2, [])
        with pytest.raises(BrokerError, match="getLastMessageId is not supported on non-persistent topic"):
            await consumer.last_message()
        await topic.close()

    run(scenario)


def test_more_than_may_come_at_once_on_a_connection_is_dropped_before_anybody_gets_it() -> None:
    async def scenario() -> None:
        world = World(TopicSettings(max_concurrent_non_persistent_message_per_connection=1))
        topic = await world.open()
        _, sink = await world.consumer()
        producer, sender = await world.producer()
        producer.publish(send_run([payload(), payload(), payload(batch=5)]))
        await settle()
        assert (len(sink.got), sender.kept, producer.counters.dropped) == (2, 2, 5)
        await topic.close()

    run(scenario)


def test_batches_go_whole_and_count_by_their_messages() -> None:
    async def scenario() -> None:
        world = World()
        topic = await world.open()
        _, sink = await world.consumer(permits=4, type=SubscriptionType.SHARED)
        producer, _ = await world.producer()
        producer.publish(send_run([payload(batch=3), payload(batch=3), payload(batch=3)]))
        assert (len(sink.got), world.dropped()) == (2, 3)
        await topic.close()

    run(scenario)


def test_drops_are_rates_in_stats() -> None:
    async def scenario() -> None:
        world = World(TopicSettings(max_concurrent_non_persistent_message_per_connection=9, stats_update_frequency_in_secs=10))
        topic = await world.open()
        await world.consumer(permits=5)
        producer, _ = await world.producer()
        producer.publish(send_run([payload()] * 20))
        await asyncio.sleep(10.5)
        stats = topic.stats()
        assert stats.publishers[0].msg_drop_rate == pytest.approx(1.0)
        assert stats.subscriptions["s"].msg_drop_rate == pytest.approx(0.5)
        assert stats.msg_drop_rate == pytest.approx(1.5)
        await topic.close()

    run(scenario)


def test_rates_of_deliveries_hold_nothing_back_because_it_would_be_lost() -> None:
    async def scenario() -> None:
        world = World()
        topic = await world.open()
        topic.upkeep.apply(TopicPolicies(dispatch_rate=DispatchRate(1), subscription_dispatch_rate=DispatchRate(1)))
        _, sink = await world.consumer()
        producer, _ = await world.producer()
        for _ in range(5):
            producer.publish(send_run([payload()]))
        assert len(sink.got) == 5
        await topic.close()

    run(scenario)


def test_an_exclusive_producer_keeps_the_others_out() -> None:
    async def scenario() -> None:
        world = World()
        topic = await world.open()
        await world.producer(access_mode=AccessMode.EXCLUSIVE)
        with pytest.raises(BrokerError) as refused:
            await world.producer(name="q", producer_id=2)
        assert refused.value.code is ServerError.PRODUCER_BUSY
        await topic.close()

    run(scenario)


def test_operations_that_need_storage_are_refused() -> None:
    async def scenario() -> None:
        world = World()
        topic = await world.open()
        with pytest.raises(BrokerError, match="readCompacted only valid on persistent topics"):
            await world.consumer(read_compacted=True)
        with pytest.raises(BrokerError, match="can only be done through client"):
            await topic.create_subscription("s", from_earliest=True, properties={})
        with pytest.raises(BrokerError, match="Need to provide a persistent topic name"):
            await topic.terminate()
        await topic.close()

    run(scenario)


def test_entry_ids_stay_small_however_much_passes() -> None:
    async def scenario() -> None:
        world = World()
        topic = await world.open()
        _, sink = await world.consumer(type=SubscriptionType.SHARED)
        producer, _ = await world.producer()
        producer.publish(send_run([payload()]))
        topic.ledger.last_confirmed = Position(0, (1 << 31) - 3)  # type: ignore[misc]
        producer.publish(send_run([payload()] * 3))
        assert sink.positions[1:] == [Position(1, 0), Position(1, 1), Position(1, 2)]
        assert world.dropped() == 0
        await topic.close()

    run(scenario)


def test_the_broker_s_limit_on_unacknowledged_messages_does_not_hold_for_what_nobody_acknowledges() -> None:
    async def scenario() -> None:
        world = World(
            TopicSettings(max_unacked_messages_per_broker=2, max_unacked_messages_per_subscription_on_broker_blocked=1.0)
        )
        topic = await world.open()
        _, sink = await world.consumer(type=SubscriptionType.SHARED)
        producer, _ = await world.producer()
        for _ in range(3):
            producer.publish(send_run([payload()] * 4))
        await settle()
        assert (len(sink.got), world.dropped()) == (12, 0)
        await topic.close()

    run(scenario)
