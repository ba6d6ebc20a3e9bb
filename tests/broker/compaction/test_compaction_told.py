"""Stats, internal stats and metrics of compactions, under Apache's names."""

import asyncio
from typing import Any

from broker.admin.metrics.text import family
from broker.admin.metrics.topics import Tables
from broker.admin.stats.internal_stats import internal_stats_json
from broker.admin.stats.topic_stats import topic_stats_json
from broker.metrics_settings import MetricsSettings
from broker.service.topic_name import TopicName
from broker.topic.statistics.compaction_stats import CompactionState
from tests.broker.compaction.compaction_world import CompactedWorld
from tests.broker.compaction.messages import single
from tests.broker.topic.topic_world import TOPIC, run


async def _told(world: CompactedWorld) -> tuple[dict[str, Any], dict[str, Any]]:
    """Compaction in stats and in internal stats."""
    internal = await internal_stats_json(world.log, await world.topic.upkeep.compacted_ledger())
    return (await topic_stats_json(world.topic))["compaction"], internal["compactedLedger"]


async def _metrics(world: CompactedWorld, settings: MetricsSettings | None = None) -> dict[str, float]:
    """Metrics of compaction, by name; all are gauges."""
    tables = Tables("c", settings or MetricsSettings(), 1)
    await tables.add(TopicName.parse(TOPIC), world.topic.stats(), None)
    tables.finish()
    assert tables.compactions in tables.all()
    label = f'{{cluster="c",namespace="public/default",topic="{TOPIC}"}} '
    found = {}
    for column, (name, kind) in enumerate(tables.compactions.names):
        for text in family(name, kind, tables.compactions.series, tables.compactions.rows, column):
            _, head, sample = text.splitlines()
            assert head == f"# TYPE {name} gauge"
            found[name] = float(sample.removeprefix(name + label))
    return found


NEVER = {
    "lastCompactionRemovedEventCount": 0,
    "lastCompactionSucceedTimestamp": 0,
    "lastCompactionFailedTimestamp": 0,
    "lastCompactionDurationTimeInMills": 0,
}
NO_LEDGER = {"ledgerId": -1, "entries": -1, "size": -1, "offloaded": False, "underReplicated": False}


def test_a_topic_that_was_never_compacted_reports_no_compaction() -> None:
    async def scenario() -> None:
        world = CompactedWorld()
        await world.open()
        assert await _told(world) == (NEVER, NO_LEDGER)
        assert (await _metrics(world)) == {}

    run(scenario)


def test_stats_and_metrics_show_a_compaction_until_the_topic_is_reloaded() -> None:
    async def scenario() -> None:
        world = CompactedWorld(step_s=0.003)
        await world.open()
        for number in range(40):
            await world.publish(single(f"k{number % 4}", b"0123456789"))
        assert await world.compact() is CompactionState.SUCCESS
        stats, ledger = await _told(world)
        assert stats["lastCompactionRemovedEventCount"] == 36
        assert stats["lastCompactionSucceedTimestamp"] == world.storage.clock.now_ms()
        assert stats["lastCompactionFailedTimestamp"] == 0
        assert stats["lastCompactionDurationTimeInMills"] > 3
        assert ledger["ledgerId"] == world.compacted_ledgers()[0]
        assert (ledger["entries"], ledger["size"] > 40) == (4, True)

        metrics = await _metrics(world)
        assert metrics["pulsar_compaction_removed_event_count"] == 36
        assert metrics["pulsar_compaction_succeed_count"] == 1
        assert metrics["pulsar_compaction_failed_count"] == 0
        assert metrics["pulsar_compaction_duration_time_in_mills"] == stats["lastCompactionDurationTimeInMills"]
        assert metrics["pulsar_compaction_compacted_entries_count"] == 4
        assert metrics["pulsar_compaction_compacted_entries_size"] == ledger["size"]
        assert metrics["pulsar_compaction_latency_le_5"] == metrics["pulsar_compaction_latency_count"] == 4
        assert 3 <= metrics["pulsar_compaction_latency_sum"] / 4 <= 5
        assert (await _metrics(world, MetricsSettings(expose_topic_level_metrics_in_prometheus=False))) == {}

        await world.unload()
        assert await _told(world) == (NEVER, ledger), "the ledger stays"
        assert (await _metrics(world)) == {}

    run(scenario)


def test_rates_of_reading_and_writing_are_of_the_time_between_two_samples() -> None:
    async def scenario() -> None:
        world = CompactedWorld()
        await world.open()
        await world.publish(single("a", bytes(1000)), single("a", bytes(1000)))
        await world.compact()
        assert (await _metrics(world))["pulsar_compaction_read_throughput"] == 0
        await asyncio.sleep(world.settings.stats_update_frequency_in_secs)
        metrics = await _metrics(world)
        seconds = world.settings.stats_update_frequency_in_secs
        assert metrics["pulsar_compaction_read_throughput"] * seconds > 4000, "two phases read two messages"
        assert 1000 < metrics["pulsar_compaction_write_throughput"] * seconds < 2000
        await asyncio.sleep(seconds)
        assert (await _metrics(world))["pulsar_compaction_read_throughput"] == 0

    run(scenario)


def test_a_compaction_that_fails_is_told_and_a_ledger_that_cannot_be_opened_too() -> None:
    async def scenario() -> None:
        world = CompactedWorld()
        await world.open()
        await world.publish(single("a", b"1"))
        await world.compact()
        [ledger_id] = world.compacted_ledgers()
        await world.unload()
        world.storage.shared.ledgers.pop(ledger_id)
        await world.publish(single("a", b"2"))
        assert await world.compact() is CompactionState.ERROR
        stats, ledger = await _told(world)
        assert stats["lastCompactionFailedTimestamp"] == world.storage.clock.now_ms()
        assert (await _metrics(world))["pulsar_compaction_failed_count"] == 1
        assert (ledger["ledgerId"], ledger["entries"]) == (ledger_id, -1)

    run(scenario)
