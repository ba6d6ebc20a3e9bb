"""Topics that are compacted: what readers get, that it survives trimming and restarts, and that nothing is left behind."""

import asyncio
import random

import pytest

from broker.compaction.compacted_topic import COMPACTION_CURSOR, LEDGER_PROPERTY
from broker.errors import BrokerError, ServerError
from broker.policies.topic_settings import TopicSettings
from broker.service.system_topics.event_log import ServedEventLog
from broker.topic.contract import Acknowledgement, SubscriptionType
from broker.topic.statistics.compaction_stats import CompactionState
from managed_ledger.contract import EARLIEST
from tests.broker.compaction.compaction_world import CompactedWorld, each, newest, published, seen_by
from tests.broker.compaction.messages import batched, compacted_by_hand, single
from tests.broker.topic.topic_world import run
from wire.generated.pulsar_api_pb2 import MessageIdData
from wire.position import Position


def test_readers_of_what_is_compacted_get_the_newest_of_each_key_then_what_came_after() -> None:
    async def scenario() -> None:
        world = CompactedWorld()
        await world.open()
        old = await published(world, *each(range(50), "v", 7))
        assert await world.compact() is CompactionState.SUCCESS
        assert await world.read() == compacted_by_hand(old)
        new = await published(world, single("k1", b"new"), single(None, b"keyless"))
        assert await world.read() == compacted_by_hand(old) + compacted_by_hand(new, retains_null_key=True)
        assert [each.position for each in await world.read(compacted=False)][-2:] == sorted(new)
        stored = world.storage.shared.ledgers[world.compacted_ledgers()[0]]
        assert stored.custom_metadata["application"] == b"pulsar"
        assert stored.custom_metadata["pulsar/compactedTopic"] == b"persistent://public/default/x"
        last = max(old)
        assert (
            stored.custom_metadata["pulsar/compactedTo"]
            == MessageIdData(ledger_id=last.ledger_id, entry_id=last.entry_id).SerializeToString()
        )

    run(scenario)


def test_compacted_messages_survive_trimming_of_the_log_and_a_kill_of_the_broker() -> None:
    async def scenario() -> None:
        world = CompactedWorld()
        await world.open()
        old = await published(world, *each(range(95), "v", 7))
        assert await world.compact() is CompactionState.SUCCESS
        await world.topic.trim()
        assert world.log.entry_count < 20, "the log has let go of what is compacted"
        assert await world.read() == compacted_by_hand(old)
        await world.restart()
        assert await world.read() == compacted_by_hand(old)
        reader, _ = await world.consumer(subscription="r", durable=False, start=EARLIEST, read_compacted=True)
        assert (await reader.last_message()).position == max(old)
        reader.close()
        more = await published(world, *each(range(20), "w", 3))
        assert await world.compact() is CompactionState.SUCCESS
        assert await world.read() == compacted_by_hand({**old, **more})
        assert world.compacted_ledgers() == [world.log.cursors[COMPACTION_CURSOR].properties[LEDGER_PROPERTY]]

    run(scenario)


def test_a_reader_may_begin_in_the_middle_of_what_is_compacted_and_goes_on_after_a_new_compaction() -> None:
    async def scenario() -> None:
        world = CompactedWorld()
        await world.open()
        old = await published(world, *each(range(40), "v"))
        await world.compact()
        await world.topic.trim()
        places = sorted(old)
        found = await world.read(start=places[17])
        assert [each.position for each in found] == places[17:]
        reader, sink = await world.consumer(
            permits=10, subscription="r", durable=False, start=EARLIEST, from_earliest=False, read_compacted=True
        )
        await asyncio.sleep(1)
        assert len(sink.got) == 10
        await published(world, *each(range(20, 40), "w"))
        await world.compact()
        reader.flow(1000)
        await asyncio.sleep(1)
        assert newest(seen_by(sink)) == {
            f"k{number}": f"{'v' if number < 20 else 'w'}{number}".encode() for number in range(40)
        }

    run(scenario)


def test_the_last_message_is_what_such_a_reader_gets_last() -> None:
    async def scenario() -> None:
        world = CompactedWorld()
        await world.open()
        [first, second] = await world.publish(batched([("a", b"1"), ("b", b"2"), ("c", b"3")]), single("c", b""))
        await world.compact()
        reader, _ = await world.consumer(subscription="r", durable=False, start=EARLIEST, read_compacted=True)
        last = await reader.last_message()
        assert (last.position, last.batch_index) == (first, 1), "the third of the batch is compacted out"
        plain, _ = await world.consumer(subscription="p", durable=False, start=EARLIEST)
        assert (await plain.last_message()).position == second
        await world.publish(single("a", b""), single("b", b""))
        await world.compact()
        assert (await reader.last_message()).position == Position(-1, -1), "nothing is left"
        [third] = await world.publish(single("a", b"again"))
        assert (await reader.last_message()).position == third

    run(scenario)


def test_the_broker_reads_a_system_topic_that_was_compacted_and_trimmed() -> None:
    async def scenario() -> None:
        world = CompactedWorld()
        await world.open()
        old = await published(world, *each(range(45), "v", 4))
        await world.compact()
        await world.topic.trim()
        log, got = ServedEventLog(world.topic, lambda: "r"), list[Position]()
        last = await log.read(lambda position, _: got.append(position), lambda _: None)
        await asyncio.sleep(1)
        log.close()
        assert got == sorted(old)[-4:]
        assert last == got[-1]

    run(scenario)


def test_a_durable_subscription_goes_on_where_it_was() -> None:
    async def scenario() -> None:
        world = CompactedWorld()
        await world.open()
        consumer, sink = await world.consumer(read_compacted=True, subscription="durable")
        places = await world.publish(*each(range(30), "v", 10))
        await world.compact()
        consumer.close()
        back, sink = await world.consumer(read_compacted=True, subscription="durable")
        await asyncio.sleep(1)
        assert sink.positions == places[20:]
        back.acknowledge(Acknowledgement(True, (places[24],), ((),), (0,)))
        await asyncio.sleep(1)
        await world.unload()
        _, sink = await world.consumer(read_compacted=True, subscription="durable")
        await asyncio.sleep(1)
        assert sink.positions == places[25:]

    run(scenario)


@pytest.mark.parametrize("kind", [SubscriptionType.SHARED, SubscriptionType.KEY_SHARED])
def test_only_one_consumer_at_a_time_may_read_what_is_compacted(kind: SubscriptionType) -> None:
    async def scenario() -> None:
        world = CompactedWorld()
        await world.open()
        with pytest.raises(BrokerError) as refused:
            await world.consumer(type=kind, read_compacted=True)
        assert refused.value.code is ServerError.NOT_ALLOWED

    run(scenario)


def test_f46_what_is_not_compacted_yet_is_never_trimmed_nor_expired() -> None:
    async def scenario() -> None:
        world = CompactedWorld(settings=TopicSettings(ttl_duration_default_in_seconds=1))
        await world.open()
        old = await published(world, *each(range(30), "v"))
        await world.compact()
        new = await published(world, *each(range(15, 45), "w"))
        world.storage.clock.ms += 3_600_000
        await world.topic.upkeep.expire()
        await world.topic.trim()
        assert await world.compact() is CompactionState.SUCCESS
        assert await world.read() == compacted_by_hand({**old, **new})

    run(scenario)


def test_a_topic_without_news_is_not_compacted_again_and_an_empty_one_not_at_all() -> None:
    async def scenario() -> None:
        world = CompactedWorld()
        await world.open()
        assert await world.compact() is CompactionState.SUCCESS
        assert world.compacted_ledgers() == []
        await world.publish(single("a", b"1"))
        await world.compact()
        [ledger_id] = world.compacted_ledgers()
        await world.compact()
        assert world.compacted_ledgers() == [ledger_id]

    run(scenario)


def test_one_run_at_a_time() -> None:
    async def scenario() -> None:
        world = CompactedWorld()
        await world.open()
        await world.publish(single("a", b"1"))
        world.topic.compaction.trigger()
        with pytest.raises(BrokerError, match="already in progress"):
            world.topic.compaction.trigger()
        await world.topic.compaction.finished()
        assert world.topic.compaction.status.state is CompactionState.SUCCESS
        assert world.topic.compaction.stats is not None
        assert world.topic.compaction.stats.last_removed_events == 0

    run(scenario)


def test_the_compacted_ledger_goes_with_its_topic_and_with_its_cursor() -> None:
    async def scenario() -> None:
        world = CompactedWorld()
        await world.open()
        await world.publish(single("a", b"1"))
        await world.compact()
        assert len(world.compacted_ledgers()) == 1
        await world.topic.delete_subscription(COMPACTION_CURSOR, force=False)
        assert world.compacted_ledgers() == []
        await world.compact()
        assert len(world.compacted_ledgers()) == 1
        await world.topic.delete(force=True)
        assert world.compacted_ledgers() == []

    run(scenario)


def test_compaction_by_threshold() -> None:
    async def scenario() -> None:
        world = CompactedWorld()
        await world.open()
        await world.publish(*[single("a", bytes(1000)) for _ in range(20)])
        compaction = world.topic.compaction

        def begins(threshold_bytes: int) -> bool:
            compaction.check(threshold_bytes)
            return compaction.is_running

        assert not begins(0)
        assert not begins(50_000)
        assert begins(15_000)
        await compaction.finished()
        assert not begins(15_000), "it is compacted"
        await world.publish(*[single("a", bytes(1000)) for _ in range(20)])
        assert begins(15_000)
        await compaction.finished()

    run(scenario)


@pytest.mark.parametrize("seed", range(12))
def test_readers_and_compactions_in_any_order(seed: int) -> None:
    async def scenario() -> None:
        rng, world = random.Random(seed), CompactedWorld()
        await world.open()
        table: dict[str | None, bytes] = {}
        for number in range(60):
            match rng.randrange(7):
                case 0:
                    await world.compact()
                case 1:
                    await world.topic.trim()
                case 2:
                    await world.unload()
                case 3:
                    assert newest(await world.read()) == table
                case _:
                    pairs: list[tuple[str | None, bytes]] = [
                        (f"k{rng.randrange(6)}", rng.choice([b"", b"%d" % number, b"%d" % number])) for _ in range(4)
                    ]
                    sections = [batched(pairs, rng.randrange(5))] if rng.random() < 0.5 else [single(*pair) for pair in pairs]
                    await world.publish(*sections)
                    for key, body in pairs:
                        table[key] = body
                        if not body:
                            del table[key]
        assert newest(await world.read()) == table

    run(scenario, seed)
