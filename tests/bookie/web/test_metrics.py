"""Metrics of the port and the journal, in the form in which Apache's provider prints them.

The queries are those of the board in Pulsar's repository (docker/grafana/dashboards/bookkeeper.json) and of StreamNative's
(apache-pulsar-grafana-dashboard, dashboards/bookkeeper.json), as far as they are of the port and the journal.
"""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie.server.request_stats import NAMES
from bookie.web.metrics import QUANTILES, metrics_text, summary_text
from ports.metrics.op_stats import (
    BUCKETS,
    RECORDED_MAX,
    WINDOW_SECONDS,
    Latencies,
    OpStats,
    bucket_end_ms,
    bucket_of,
    quantile_ms,
)
from tests.bookie.runs import KEY
from tests.bookie.server.client import EOK, Served, served
from tests.wire.bookie.bookie_samples import add, batch_read, read
from wire.generated import bookie_protocol_pb2 as api

BOARD = [
    "bookie_SERVER_STATUS",
    "bookie_ledger_writable_dirs",
    "bookie_WRITE_BYTES",
    "bookie_READ_BYTES",
    "bookie_journal_JOURNAL_QUEUE_SIZE",
    *(
        f'bookkeeper_server_{name}{{success="true",quantile="{quantile}"}}'
        for name in ("ADD_ENTRY", "ADD_ENTRY_REQUEST", "READ_ENTRY", "READ_ENTRY_REQUEST")
        for quantile in ("0.5", "0.99", "0.999")
    ),
    *(
        f'{name}_count{{success="{success}"}}'
        for name in ("bookkeeper_server_ADD_ENTRY", "bookkeeper_server_READ_ENTRY", "bookie_journal_JOURNAL_SYNC")
        for success in ("true", "false")
    ),
    'bookie_journal_JOURNAL_SYNC{success="true",quantile="0.99"}',
    'bookie_journal_JOURNAL_QUEUE_LATENCY{success="true",quantile="0.99"}',
    'bookie_journal_JOURNAL_ADD_ENTRY{success="true",quantile="0.99"}',
]
"""With a value once something was added and read."""
LINE = re.compile(r'[a-zA-Z_][a-zA-Z0-9_]*(\{success="(true|false)"(,quantile="[0-9.]+")?\})? (NaN|-?[0-9.]+(e[+-]?[0-9]+)?)')


async def scraped(at: Served) -> dict[str, float]:
    listener = at.listener
    lines = metrics_text(at.bookie, await at.bookie.usages(), listener.connection_count, listener.stats).splitlines()
    samples = [line for line in lines if not line.startswith("# ")]
    assert [line for line in samples if not LINE.fullmatch(line)] == []
    names = [line.rpartition(" ")[0] for line in samples]
    assert len(set(names)) == len(names)
    return {name: float(line.rpartition(" ")[2]) for name, line in zip(names, samples, strict=True)}


def test_the_boards_queries_find_what_was_done() -> None:
    async def scenario(at: Served) -> None:
        empty = await scraped(at)
        assert math.isnan(empty['bookkeeper_server_ADD_ENTRY{success="true",quantile="0.5"}'])
        async with at.client() as client:
            client.send(b"".join(add(7, index, b"x" * 1000, key=KEY) for index in range(100)))
            for _ in range(100):
                assert (await client.answer()).code == EOK
            assert (await client.ask(add(7, 100, key=b"other" * 4))).code != EOK
            client.send(b"".join(read(7, index) for index in range(103)))
            for _ in range(103):
                await client.answer()
            await client.ask(read(7, -1, flags=1, key=KEY))
        found = await scraped(at)
        assert [name for name in BOARD if math.isnan(found[name])] == []
        assert found['bookkeeper_server_ADD_ENTRY_count{success="true"}'] == 100
        assert found['bookkeeper_server_ADD_ENTRY_count{success="false"}'] == 1
        assert found['bookkeeper_server_READ_ENTRY_count{success="true"}'] == 100
        assert found['bookkeeper_server_READ_ENTRY_count{success="false"}'] == 3
        assert found['bookkeeper_server_READ_ENTRY_FENCE_count{success="true"}'] == 1
        assert found["bookie_WRITE_BYTES"] == 100 * 1032
        assert found["bookie_READ_BYTES"] == 101 * 1032
        assert found['bookie_journal_JOURNAL_ADD_ENTRY_count{success="true"}'] >= 100
        syncs = found['bookie_journal_JOURNAL_SYNC_count{success="true"}']
        assert 1 <= syncs <= found["bookie_journal_JOURNAL_NUM_FLUSHES"]
        assert found['bookkeeper_server_ADD_ENTRY_sum{success="true"}'] > 0

    served(scenario)


def test_every_operation_of_version_3_is_counted_under_its_name() -> None:
    async def scenario(at: Served) -> None:
        async with at.client() as client:
            body = add(7, 0, key=KEY)[28:]
            ledger = {"ledgerId": 7}
            lac = (7).to_bytes(8) + (0).to_bytes(8)
            for operation, bodies in (
                (api.ADD_ENTRY, {"addRequest": api.AddRequest(ledgerId=7, entryId=0, masterKey=KEY, body=body)}),
                (api.READ_ENTRY, {"readRequest": api.ReadRequest(ledgerId=7, entryId=0)}),
                (api.READ_ENTRY, {"readRequest": api.ReadRequest(ledgerId=7, entryId=-1, previousLAC=-2, timeOut=1)}),
                (
                    api.READ_ENTRY,
                    {"readRequest": api.ReadRequest(ledgerId=7, entryId=0, masterKey=KEY, flag=api.ReadRequest.FENCE_LEDGER)},
                ),
                (api.WRITE_LAC, {"writeLacRequest": api.WriteLacRequest(ledgerId=7, lac=0, masterKey=KEY, body=lac)}),
                (api.READ_LAC, {"readLacRequest": api.ReadLacRequest(**ledger)}),
                (api.FORCE_LEDGER, {"forceLedgerRequest": api.ForceLedgerRequest(**ledger)}),
                (api.GET_BOOKIE_INFO, {"getBookieInfoRequest": api.GetBookieInfoRequest(requested=3)}),
                (
                    api.GET_LIST_OF_ENTRIES_OF_LEDGER,
                    {"getListOfEntriesOfLedgerRequest": api.GetListOfEntriesOfLedgerRequest(**ledger)},
                ),
            ):
                assert (await client.ask3(operation, **bodies)).status == api.EOK, operation
        async with at.client() as client:
            client.send(batch_read(7, 0, 10, 10_000))
            await client.frame()
        found = await scraped(at)
        counted = {name: found[f'bookkeeper_server_{name}_count{{success="true"}}'] for name in NAMES}
        assert counted == {**dict.fromkeys(NAMES, 1), "READ_ENTRY": 2}

    served(scenario)


def test_a_summary_is_printed_as_apaches() -> None:
    stats = OpStats()
    stats.record(0.002, 3)
    lines = summary_text("some_NAME", [stats], 0.0).splitlines()
    assert lines[:2] == ["# TYPE some_NAME summary", 'some_NAME{success="false",quantile="0.5"} NaN']
    assert lines[8:10] == ['some_NAME_count{success="false"} 0', 'some_NAME_sum{success="false"} 0.0']
    assert lines[-3].startswith('some_NAME{success="true",quantile="1.0"} 2.')
    assert lines[-2:] == ['some_NAME_count{success="true"} 3', 'some_NAME_sum{success="true"} 6.0']


@given(st.lists(st.tuples(st.floats(1e-6, 1e4), st.integers(1, 1000)), min_size=1, max_size=50), st.sampled_from(QUANTILES))
def test_a_quantile_is_at_most_a_bucket_above_the_exact_one(runs: list[tuple[float, int]], quantile: float) -> None:
    latencies = Latencies()
    for seconds, count in runs:
        latencies.record(seconds, count)
    each = sorted(seconds for seconds, count in runs for _ in range(count))
    exact = each[max(0, math.ceil(quantile * len(each)) - 1)] * 1000
    assert exact <= quantile_ms([latencies], quantile) * (1 + 1e-9)
    assert quantile_ms([latencies], quantile) <= exact * 1.07


@given(st.floats(0, 1e9))
def test_every_latency_has_a_bucket_that_holds_it(seconds: float) -> None:
    index = bucket_of(seconds)
    assert 0 <= index < BUCKETS
    if 1e-6 <= seconds < 1e4:
        assert seconds * 1000 <= bucket_end_ms(index) * (1 + 1e-9)
        assert index == 0 or bucket_end_ms(index - 1) <= seconds * 1000 * (1 + 1e-9)


@pytest.mark.parametrize(
    ("later", "is_known"), [(1.0, True), (WINDOW_SECONDS, True), (2 * WINDOW_SECONDS, False), (1e6, False)]
)
def test_quantiles_are_of_lately_and_counts_of_all_time(later: float, is_known: bool) -> None:
    stats = OpStats()
    stats.record(0.01, 5)
    stats.look(later)
    assert math.isnan(quantile_ms([stats.succeeded], 0.5)) != is_known
    assert stats.succeeded.count == 5
    stats.record(1.0, 5)
    assert quantile_ms([stats.succeeded], 1.0) >= 1000


def test_recorded_latencies_are_counted_however_often_they_are_read() -> None:
    read_often, read_once = Latencies(), Latencies()
    for number in range(2 * RECORDED_MAX + 3):
        for latencies in (read_often, read_once):
            latencies.record(number / 1000, number % 3)
        assert read_often.count == sum(each % 3 for each in range(number + 1))
    assert (read_once.count, read_once.seconds) == (read_often.count, read_often.seconds)
    assert read_once.recent() == read_often.recent()
    assert sum(read_once.recent()) == read_once.count
    assert len(read_once._recorded) < RECORDED_MAX
