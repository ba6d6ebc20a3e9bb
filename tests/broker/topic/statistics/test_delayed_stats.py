"""Stats and metrics of stored delayed messages: Apache's names, keys, labels and bounds."""

from dataclasses import replace

import pytest

from broker.admin.metrics.text import family
from broker.admin.metrics.topics import Tables
from broker.admin.stats.partitioned_stats import partitioned_stats_json
from broker.admin.stats.topic_stats import topic_stats_json
from broker.metrics_settings import MetricsSettings
from broker.service.topic_name import TopicName
from broker.topic.statistics.delayed_stats import CREATE, LOAD, IndexMetric, IndexStats, OperationCounts, index_metrics, summed
from broker.topic.statistics.topic_stats import TopicStats
from tests.broker.topic.topic_world import SUBSCRIBE, TOPIC, ConsumerEnd, TopicWorld, run

NAME = "pulsar_delayed_message_index"
OPS, LATENCY = f"{NAME}_bucket_op_count", f"{NAME}_bucket_op_latency_ms"


def told() -> list[IndexMetric]:
    """Two buckets; one was loaded, one stored, another one could not be."""
    create, load = OperationCounts(begun=2), OperationCounts(begun=1)
    create.ended(0.0501, is_good=True)
    create.ended(9.0, is_good=False)
    load.ended(61.0, is_good=True)
    return index_metrics(IndexStats(2, 70_000, 999, {CREATE: create, LOAD: load}))


def test_the_numbers_have_apaches_names_labels_and_keys() -> None:
    assert {each.key: each.value for each in told()} == {
        f"{NAME}_bucket_total": 2,
        f"{NAME}_loaded": 70_000,
        f"{NAME}_bucket_snapshot_size_bytes": 999,
        f"{OPS}state_all_type_create": 2,
        f"{OPS}state_succeed_type_create": 1,
        f"{OPS}state_failed_type_create": 1,
        f"{OPS}state_all_type_load": 1,
        f"{OPS}state_succeed_type_load": 1,
        f"{LATENCY}type_create_quantile_100": 1,
        f"{LATENCY}_counttype_create": 1,
        f"{LATENCY}_sumtype_create": pytest.approx(50.1),
        f"{LATENCY}type_load_quantile_overflow": 1,
        f"{LATENCY}_counttype_load": 1,
        f"{LATENCY}_sumtype_load": 61_000,
    }


@pytest.mark.parametrize(("milliseconds", "place"), [(0, 0), (50, 0), (51, 1), (60_000, 6), (60_001, 7)])
def test_a_bound_is_in_its_own_part(milliseconds: int, place: int) -> None:
    counts = OperationCounts()
    counts.ended(milliseconds / 1000, is_good=True)
    assert [index for index, count in enumerate(counts.latencies) if count] == [place]


def test_several_are_summed_by_name_and_labels() -> None:
    both = {each.key: each.value for each in summed([told(), told(), ()])}
    assert both == {each.key: 2 * each.value for each in told()}


def series(tables: Tables) -> dict[str, float]:
    found: dict[str, float] = {}
    for table in tables.delayed_index.all():
        assert table in tables.all()
        for column, (name, kind) in enumerate(table.names):
            for text in family(name, kind, table.series, table.rows, column):
                _, head, *samples = text.splitlines()
                assert head == f"# TYPE {name} gauge"
                found |= {label: float(value) for label, value in (sample.rsplit(" ", 1) for sample in samples)}
    return found


@pytest.mark.parametrize("with_topics", [True, False])
def test_a_topic_has_the_sum_of_its_subscriptions_and_who_stores_nothing_has_none(with_topics: bool) -> None:
    async def scenario() -> None:
        world = TopicWorld()
        for name in ("a", "b", "idle"):
            await world.topic.subscribe(replace(SUBSCRIBE, subscription=name), ConsumerEnd())
        stats = world.topic.stats()
        parts = {each: replace(one, delayed_index=told()) for each, one in stats.subscriptions.items() if each != "idle"}
        tables = Tables("c", MetricsSettings(expose_topic_level_metrics_in_prometheus=with_topics), 1)
        topic = TopicName.parse(TOPIC)
        await tables.add(topic, replace(stats, subscriptions={**stats.subscriptions, **parts}), None)
        tables.finish()
        found = series(tables)
        start = '{cluster="c",namespace="public/default"'
        if not with_topics:
            assert len(found) == len(told())
            assert found[f"{NAME}_bucket_total{start}}}"] == 4
            return
        start += f',topic="{TOPIC}"'
        assert len(found) == 3 * len(told())
        assert found[f"{NAME}_bucket_total{start}}}"] == 4
        assert found[f'{NAME}_bucket_total{start},subscription="b"}}'] == 2
        assert found[f'{OPS}{start},subscription="a",state="failed",type="create"}}'] == 1
        assert found[f'{LATENCY}{start},type="load",quantile="overflow"}}'] == 2

    run(scenario)


def test_stats_have_it_by_subscription_as_beans_and_partitions_are_summed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        world = TopicWorld()
        await world.topic.subscribe(replace(SUBSCRIBE, subscription="a"), ConsumerEnd())
        assert (await topic_stats_json(world.topic))["subscriptions"]["a"]["bucketDelayedIndexStats"] == {}
        stats = world.topic.stats()
        with_index = replace(stats, subscriptions={"a": replace(stats.subscriptions["a"], delayed_index=told())})

        async def told_stats() -> TopicStats:
            return with_index

        monkeypatch.setattr(world.topic, "stats_in_slices", told_stats)
        body = await topic_stats_json(world.topic)
        found = body["subscriptions"]["a"]["bucketDelayedIndexStats"]
        assert found[f"{NAME}_loaded"] == {"name": f"{NAME}_loaded", "value": 70_000.0}
        labels = ["state", "all", "type", "create"]
        assert found[f"{OPS}state_all_type_create"] == {"name": OPS, "value": 2.0, "labelsAndValues": labels}
        whole = await partitioned_stats_json({}, {"p-0": body, "p-1": body}, per_partition=False)
        summed_up = whole["subscriptions"]["a"]["bucketDelayedIndexStats"]
        assert {key: each["value"] for key, each in summed_up.items()} == {each.key: 2 * each.value for each in told()}
        assert found[f"{NAME}_loaded"]["value"] == 70_000.0

    run(scenario)
