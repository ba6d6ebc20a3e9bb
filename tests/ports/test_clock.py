"""The wall clock in milliseconds since the epoch."""

import time

from ports.clock import RealClock


def test_the_clock_of_the_machine_counts_milliseconds_since_the_epoch() -> None:
    before = time.time()
    found = RealClock().now_ms()
    assert int(before * 1000) <= found <= int(time.time() * 1000) + 1
