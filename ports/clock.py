"""Clock: the wall clock, in milliseconds since the epoch. For timers and time-outs use the event loop's time."""

import time
from typing import Protocol


class Clock(Protocol):
    """The wall clock."""

    def now_ms(self) -> int: ...


class RealClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000
