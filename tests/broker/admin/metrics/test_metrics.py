"""GET /metrics of a broker: Apache's names and labels, levels by settings, written in slices."""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from broker.admin.metrics.metrics import MetricsRoutes
from broker.admin.metrics.text import ROWS_LET_GO, Table, labels
from broker.metrics_settings import MetricsSettings
from broker.topic.contract import SubscriptionType
from managed_ledger.meters import CursorFacts, CursorMeters, LedgerMeters, SharedMeters, Writes
from tests.broker.admin.admin_world import NAME, AdminWorld, play
from tests.broker.topic.topic_world import PRODUCER, SUBSCRIBE, ConsumerEnd, ProducerEnd, payload, send_run, settle

LINE = re.compile(r'([a-zA-Z_:][\w:]*)(?:\{((?:\w+="(?:[^"\\]|\\.)*",?)*)\})? (\S+)')


class FakeManagedLedgers:
    """Managed ledgers, one of which has stored something: the named one."""

    def __init__(self, name: str) -> None:
        self.count, self.cached_bytes, self.cache_evictions = 1, 77, 3
        self.meters = SharedMeters()
        self._stored = LedgerMeters(self.meters, 0.0)
        self._stored.stored(0.002, 5, 500)
        self._name = name

    def reads_in_flight_bytes(self) -> tuple[int, int]:
        return -1, -1

    def meters_of(self, name: str) -> LedgerMeters | None:
        return self._stored if name == self._name else None

    def cursors_of(self, name: str) -> Iterator[tuple[str, CursorFacts]]:
        meters = CursorMeters(Writes(7, 1), Writes(2, 0), 1000)
        return iter([("s", CursorFacts(meters, 3))] if name == self._name else [])


def parsed(text: str) -> dict[str, float]:
    """Values by name and labels; every line is a comment or a sample, and none comes twice."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        if line.startswith("#"):
            assert re.fullmatch(r"# (TYPE \w+ (gauge|counter|summary|histogram)|HELP \w+ .+\.)", line), line
            continue
        match = LINE.fullmatch(line)
        assert match, line
        key = f"{match[1]}{{{match[2] or ''}}}"
        assert key not in found, key
        found[key] = float(match[3])
    return found


async def scrape(world: AdminWorld) -> dict[str, float]:
    answer = await world.get("/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return parsed(answer.body.decode())


async def busy(world: AdminWorld) -> None:
    """Two topics in two namespaces; one has a subscription with a consumer and five entries in the log."""
    world.service.meters.managed_ledgers = FakeManagedLedgers("public/default/persistent/t")
    topic = await world.loaded(f"{NAME}/t")
    await topic.subscribe(replace(SUBSCRIBE, subscription='s"1', type=SubscriptionType.SHARED), ConsumerEnd())
    await topic.ledger.append(send_run([0], [payload()]).entries)
    assert (await world.call("PUT", "/admin/v2/namespaces/public/other")).status == 204
    await world.loaded("persistent://public/other/u-partition-x")
    await settle()


T = 'cluster="standalone",namespace="public/default",topic="persistent://public/default/t"'
S = T + ',subscription="s\\"1"'


def test_topics_and_subscriptions_have_series_of_their_own() -> None:
    async def scenario(world: AdminWorld) -> None:
        await busy(world)
        found = await scrape(world)
        assert found[f"pulsar_subscriptions_count{{{T}}}"] == 1
        assert found[f"pulsar_consumers_count{{{T}}}"] == 1
        assert found[f"pulsar_storage_write_latency_le_5{{{T}}}"] == 5
        assert found[f"pulsar_storage_write_latency_count{{{T}}}"] == 5
        assert found[f"pulsar_entry_size_le_128{{{T}}}"] == 5
        assert found[f"pulsar_subscription_back_log{{{S}}}"] == 1
        assert found[f"pulsar_out_messages_total{{{S}}}"] >= 0
        assert found['pulsar_topics_count{cluster="standalone",namespace="public/default"}'] == 1
        assert found['pulsar_broker_topics_count{cluster="standalone"}'] == 2
        assert found['pulsar_broker_subscriptions_count{cluster="standalone"}'] == 1
        assert found['pulsar_broker_publish_latency_count{cluster="standalone"}'] == 5
        assert found['pulsar_ml_cache_used_size{cluster="standalone"}'] == 77
        ledgers = 'cluster="standalone",namespace="public/default/persistent"'
        assert found[f'pulsar_ml_AddEntryLatencyBuckets{{{ledgers},quantile="1.0_5.0"}}'] == 5
        assert found[f"pulsar_ml_AddEntrySucceed{{{ledgers}}}"] == 5
        assert not any("consumer_name" in key or "producer_name" in key for key in found)
        assert not any(key.startswith("pulsar_storage_write_latency_le_5{") and "public/other" in key for key in found)

    play(scenario)


def test_without_series_of_topics_there_are_sums_of_namespaces() -> None:
    async def scenario(world: AdminWorld) -> None:
        await busy(world)
        world.service.meters.settings = MetricsSettings(expose_topic_level_metrics_in_prometheus=False)
        found = await scrape(world)
        namespace = 'cluster="standalone",namespace="public/default"'
        assert found[f"pulsar_subscriptions_count{{{namespace}}}"] == 1
        assert found[f"pulsar_storage_write_latency_le_5{{{namespace}}}"] == 5
        assert found[f"pulsar_subscription_back_log{{{namespace}}}"] == 1
        assert found['pulsar_broker_topics_count{cluster="standalone"}'] == 2
        assert not any(',topic="' in key for key in found)

    play(scenario)


def test_settings_turn_optional_metrics_on_and_off() -> None:
    async def scenario(world: AdminWorld) -> None:
        await busy(world)
        world.service.meters.settings = MetricsSettings(
            expose_consumer_level_metrics_in_prometheus=True,
            expose_subscription_backlog_size_in_prometheus=True,
            split_topic_and_partition_label_in_prometheus=True,
            expose_managed_ledger_metrics_in_prometheus=False,
            expose_producer_level_metrics_in_prometheus=True,
            expose_managed_cursor_metrics_in_prometheus=True,
        )
        await (await world.loaded(f"{NAME}/t")).add_producer(PRODUCER, ProducerEnd())
        found = await scrape(world)
        split = T + ',partition="-1",subscription="s\\"1"'
        assert f"pulsar_subscription_backlog_size{{{split}}}" in found
        assert any(key.startswith(f"pulsar_consumer_available_permits{{{split},consumer_name=") for key in found)
        producer = f'{T},partition="-1",producer_name="p",producer_id="1"'
        assert found[f"pulsar_producer_msg_rate_in{{{producer}}}"] == 0
        ledger = 'cluster="standalone",namespace="public/default/persistent",ledger_name="public/default/persistent/t"'
        cursors = {
            key.split("{")[0].removeprefix("pulsar_ml_cursor_"): value for key, value in found.items() if "cursor_name" in key
        }
        assert f'pulsar_ml_cursor_writeLedgerSize{{{ledger},cursor_name="s"}}' in found
        assert list(cursors.values()) == [3, 7, 1, 2, 0, 1000, 1000]
        assert list(cursors)[1:4] == ["persistLedgerSucceed", "persistLedgerErrors", "persistZookeeperSucceed"]
        assert not any(key.startswith("pulsar_ml_AddEntry") for key in found)

    play(scenario)


def test_waiting_for_a_rate_is_counted_by_reason_in_stats_and_series_and_is_not_there_before_it_happened() -> None:
    async def scenario(world: AdminWorld) -> None:
        await busy(world)
        found = await scrape(world)
        assert found[f"pulsar_publish_rate_limit_times{{{T}}}"] == 0
        assert not any("dispatch_throttled" in key for key in found)
        topic = await world.loaded(f"{NAME}/t")
        topic.publishers.rate_limited_times = 9
        times = topic.subscriptions.get('s"1').throttled_times
        times.by_messages.update(subscription=1, topic=2, broker=3)
        times.by_bytes.update(subscription=4, topic=5, broker=6)
        found = await scrape(world)
        assert found[f"pulsar_publish_rate_limit_times{{{T}}}"] == 9
        stats = (await world.topic("GET", "t/stats")).json
        assert stats["publishRateLimitedTimes"] == 9
        for count, level in enumerate(("subscription", "topic", "broker"), start=1):
            assert found[f'pulsar_subscription_dispatch_throttled_msg_events{{{S},reason="{level}"}}'] == count
            assert found[f'pulsar_subscription_dispatch_throttled_bytes_events{{{S},reason="{level}"}}'] == count + 3
            subscription = stats["subscriptions"]['s"1']
            assert subscription[f"dispatchThrottledMsgEventsBy{level.title()}Limit"] == count
            assert subscription[f"dispatchThrottledBytesEventsBy{level.title()}Limit"] == count + 3

    play(scenario)


def test_lookups_and_loads_are_told_with_their_times() -> None:
    async def scenario(world: AdminWorld) -> None:
        await busy(world)
        world.service.meters.lookups.record(0.25)
        found = await scrape(world)
        assert found['pulsar_topic_load_times_count{cluster="standalone"}'] == 2
        assert found['pulsar_broker_lookup_count{cluster="standalone"}'] == 1
        assert 240 < found['pulsar_broker_lookup{cluster="standalone",quantile="0.5"}'] < 270

    play(scenario)


def test_a_scrape_that_takes_too_long_is_given_up() -> None:
    async def scenario(world: AdminWorld) -> None:
        world.service.meters.settings = MetricsSettings(metrics_servlet_timeout_ms=1)

        async def never(_: MetricsRoutes) -> None:
            await asyncio.Event().wait()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(MetricsRoutes, "collect", never)
            answer = await world.get("/metrics")
        assert answer.refused == (503, "The metrics were not collected within metricsServletTimeoutMs (0.001 s)")

    play(scenario)


def test_the_loop_has_its_turn_while_topics_are_collected_and_while_lines_are_written() -> None:
    async def scenario(world: AdminWorld) -> None:
        for number in range(45):
            await world.loaded(f"{NAME}/many-{number}")
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        tables = await MetricsRoutes(world.service).collect()
        while_collecting = turns
        await world.get("/metrics")
        counting.cancel()
        assert len(tables.topics.series) == 45
        assert while_collecting >= 2
        assert turns > 2 * while_collecting + 20

    play(scenario)


def test_labels_are_escaped() -> None:
    assert labels(cluster='a"b\\c\nd') == '{cluster="a\\"b\\\\c\\nd"} '


def test_a_table_lets_go_of_its_rows_in_parts() -> None:
    table = Table((("a", "gauge"),))
    for number in range(2 * ROWS_LET_GO + 1):
        table.add(str(number), (number,))
    assert [table.let_go() for _ in range(3)] == [True, True, False]
    assert (table.series, table.rows) == ([], [])
