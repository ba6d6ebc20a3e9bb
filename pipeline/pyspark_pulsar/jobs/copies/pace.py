"""Due times of copies: as long after each other as the messages were, divided by a speed. Knows no topic.

One pace is shared by all that copy at the same time: the first message of any of them starts its clock.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy

from ...decode.octets import Places
from ...errors import WrongOption

_MS = 1000.0
_TOGETHER_MS = 20
"""Messages that are due within that go together: a flush for each costs more than it tells."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Monotonic seconds, and a wait that ends early (True) when the job is to end."""

    now: Callable[[], float]
    wait: Callable[[float], bool]


class Stopped(Exception):
    """The job ends while a message is waited for."""


class Pace:
    """`speed` 1 is the original one, 2 twice as fast, 0 as fast as it goes."""

    def __init__(self, speed: float, clock: Clock) -> None:
        if not 0 <= speed < float("inf"):
            raise WrongOption(f"--speed {speed}: expected 0, or how many times as fast as it was")
        self._speed, self._clock = speed, clock
        self._lock = threading.Lock()
        self._begun: tuple[float, int] | None = None

    @property
    def is_free(self) -> bool:
        return not self._speed

    def due(self, publish_ms: Places) -> int:
        """Number of messages that may go now, the first ones; waits until at least one may. Stopped."""
        if self.is_free:
            return len(publish_ms)
        started, first_ms = self._start(int(publish_ms[0]))
        at_ms = numpy.maximum.accumulate(publish_ms - first_ms) / self._speed
        while True:
            elapsed_ms = (self._clock.now() - started) * _MS
            count = int(numpy.searchsorted(at_ms, elapsed_ms + _TOGETHER_MS, "right"))
            if count:
                return count
            if self._clock.wait((float(at_ms[0]) - elapsed_ms) / _MS):
                raise Stopped

    def _start(self, publish_ms: int) -> tuple[float, int]:
        with self._lock:
            if self._begun is None:
                self._begun = (self._clock.now(), publish_ms)
            return self._begun


def publish_ms(batch: Any) -> Places:
    """The column publish_time, in milliseconds."""
    found: Places = numpy.asarray(batch.column("publish_time").cast("int64")) // 1000
    return found
