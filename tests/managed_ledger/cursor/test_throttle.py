"""Throttle of a cursor's saves."""

from managed_ledger.cursor.throttle import MarkRate, MarkThrottle


def test_the_first_change_is_written_at_once_and_the_next_when_the_rate_allows() -> None:
    throttle = MarkThrottle(MarkRate(2.0), 60.0)
    assert throttle.changed(1, 10.0) == 10.0
    throttle.write_started(10.0)
    assert throttle.changed(2, 10.1) is None, "a write is under way"
    throttle.write_ended(1)
    assert throttle.is_stored(1)
    assert throttle.changed(2, 10.2) == 10.5


def test_a_change_waits_no_longer_than_the_flush_interval() -> None:
    throttle = MarkThrottle(MarkRate(0.001), 60.0)
    throttle.write_started(0.0)
    throttle.write_ended(1)
    assert throttle.changed(2, 5.0) == 65.0


def test_a_failed_write_stores_nothing_and_a_stored_version_needs_no_write() -> None:
    rate = MarkRate(1.0)
    throttle = MarkThrottle(rate, 60.0)
    throttle.write_started(0.0)
    throttle.write_ended(None)
    assert not throttle.is_stored(1)
    assert throttle.changed(0, 5.0) is None
    rate.limit(0)
    throttle.write_started(5.0)
    throttle.write_ended(1)
    assert throttle.changed(2, 5.0) == 5.0, "without a limit"
