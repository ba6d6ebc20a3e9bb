"""OpStats: counts and latencies of operations."""

import math

from hypothesis import given
from hypothesis import strategies as st

from ports.metrics.op_stats import BUCKETS, RECORDED_MAX, WINDOW_SECONDS, OpStats, bucket_end_ms, bucket_of, quantile_ms


@given(st.floats(2e-6, 3600.0))
def test_a_bucket_ends_at_most_a_sixteenth_above_the_latency(seconds: float) -> None:
    end = bucket_end_ms(bucket_of(seconds)) / 1000
    assert seconds <= end * (1 + 1e-12)
    assert end <= seconds * (1 + 1 / 16) * (1 + 1e-12)


def test_latencies_outside_the_octaves_are_in_the_first_and_the_last_bucket() -> None:
    assert bucket_of(0.0) == 0
    assert bucket_of(1e9) == BUCKETS - 1


def test_counts_and_sums_include_records_that_are_not_in_a_bucket_yet() -> None:
    stats = OpStats()
    for _ in range(RECORDED_MAX + 1):
        stats.record(0.5, 2)
    stats.record(0.25, has_failed=True)
    assert (stats.succeeded.count, stats.succeeded.seconds) == (2 * RECORDED_MAX + 2, RECORDED_MAX + 1.0)
    assert (stats.failed.count, stats.failed.seconds) == (1, 0.25)


def test_quantiles_are_over_the_operations_of_all_parts() -> None:
    stats = OpStats()
    stats.record(0.001, 99)
    stats.record(1.0, 1, has_failed=True)
    parts = (stats.succeeded, stats.failed)
    assert quantile_ms(parts, 0.99) == bucket_end_ms(bucket_of(0.001))
    assert quantile_ms(parts, 0.999) == bucket_end_ms(bucket_of(1.0))


def test_quantiles_forget_operations_that_are_older_than_two_windows_and_counts_do_not() -> None:
    stats = OpStats()
    stats.record(0.001)
    stats.look(WINDOW_SECONDS)
    assert not math.isnan(quantile_ms([stats.succeeded], 0.5))
    stats.look(2 * WINDOW_SECONDS)
    assert math.isnan(quantile_ms([stats.succeeded], 0.5))
    assert stats.succeeded.count == 1


def test_a_look_after_a_long_silence_forgets_everything_at_once() -> None:
    stats = OpStats()
    stats.record(0.001)
    stats.look(2 * WINDOW_SECONDS)
    assert math.isnan(quantile_ms([stats.succeeded], 0.5))
