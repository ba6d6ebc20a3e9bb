"""Token buckets: the mean is the rate, whatever is taken and when; checked against a count of everything that happened."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.topic.limits.token_buckets import RateLimiter, TokenBucket


def test_a_bucket_begins_full_and_holds_no_more() -> None:
    bucket = TokenBucket(10, 1.0, now=0.0)
    assert (bucket.available(0.0), bucket.available(100.0)) == (10, 10)
    bucket.take(4, 100.0)
    assert bucket.available(100.0) == 6


def test_tokens_taken_beyond_the_limit_are_paid_back_with_time() -> None:
    bucket = TokenBucket(10, 2.0, now=0.0)
    bucket.take(30, 0.0)
    assert bucket.available(0.0) == -20
    assert bucket.wait_seconds(0.0) == pytest.approx(21 / 5)
    assert bucket.wait_seconds(4.1) > 0
    assert bucket.wait_seconds(4.2000001) == 0


def test_whichever_of_the_two_has_run_out_is_waited_for() -> None:
    limiter = RateLimiter(100, 1000, 1.0, now=0.0)
    limiter.take(10, 3000, 0.0)
    assert limiter.wait_seconds(0.0) == pytest.approx(2.001)
    limiter.take(500, 0, 0.0)
    assert limiter.wait_seconds(0.0) == pytest.approx(4.11)
    assert RateLimiter(0, -1, 1.0, now=0.0).wait_seconds(0.0) == 0


@given(st.integers(1, 500), st.floats(0.5, 10), st.lists(st.tuples(st.floats(0, 3), st.integers(0, 400)), max_size=60))
def test_a_taker_that_waits_exceeds_the_rate_by_at_most_a_period_and_one_run(
    rate: int, seconds: float, steps: list[tuple[float, int]]
) -> None:
    bucket, now, taken, largest = TokenBucket(rate, seconds, now=0.0), 0.0, 0, 0
    for pause, size in steps:
        now += pause + bucket.wait_seconds(now + pause)
        bucket.take(size, now)
        taken, largest = taken + size, max(largest, size)
        assert taken <= rate + now * rate / seconds + largest + 1e-6
        assert bucket.available(now) >= -largest - 1e-6
