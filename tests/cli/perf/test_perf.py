"""pulsar-perf: its latencies, its report, its options."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.perf.__main__ import main
from cli.perf.latencies import PERCENTILES, Latencies
from cli.perf.progress import Progress


@given(st.lists(st.floats(0.001, 100_000), min_size=1, max_size=200))
def test_percentiles_are_those_of_the_sorted_samples_within_two_percent(samples: list[float]) -> None:
    latencies = Latencies()
    for sample in samples:
        latencies.add(sample)
    ordered = sorted(samples)
    for percent in PERCENTILES:
        exact = ordered[max(0, -int(-len(ordered) * percent // 100) - 1)]
        assert exact * 0.98 - 0.001 <= latencies.percentile(percent) <= exact * 1.02 + 0.002
    assert latencies.percentile(50) <= latencies.percentile(99) <= latencies.max_ms == max(samples)


def test_nothing_has_no_latency() -> None:
    assert Latencies().summary()["max"] == 0.0


def test_the_report_is_lines_or_json() -> None:
    lines: list[str] = []
    for as_json in (False, True):
        progress = Progress("produced", lines.append, as_json)
        progress.add(10, 1000, 5.0)
        progress.finish()
    assert lines[0].startswith("Aggregated throughput stats --- 10 records produced")
    assert lines[1].startswith("Aggregated latency stats --- Latency: mean: 5.000 ms - med: ")
    assert json.loads(lines[-1])["messages"] == 10


def test_wrong_usage_and_a_broker_that_is_not_there_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["produce", "t", "--encryption-key-name", "k"]) == 1
    assert "--encryption-key-name" in capsys.readouterr().err
    assert main(["produce", "t", "-u", "pulsar://127.0.0.1:1"]) == 1
    assert "pulsar://127.0.0.1:1" in capsys.readouterr().err


def test_messages_of_the_warm_up_count_only_where_there_are_no_others() -> None:
    for later, expected in ((True, 5.0), (False, 90.0)):
        lines: list[str] = []
        progress = Progress("produced", lines.append, True)
        progress.add(10, 1000, 90.0, is_warm=False)
        if later:
            progress.add(10, 1000, 5.0)
        progress.finish()
        assert json.loads(lines[-1])["latencyMs"]["max"] == expected
