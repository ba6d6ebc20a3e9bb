"""OpStats: how often something was done, how it ended and how long it took, as BookKeeper's OpStatsLogger. Pure.

Latencies go into buckets that grow by a sixteenth of a power of two: 6 % wide, BUCKETS of them, whatever comes. One call
records as many operations as share a latency, which is one statement for each run of entries. Quantiles are of the last
WINDOW_SECONDS to twice as much; counts and sums are of all time. Records are put into their buckets when statistics are read,
or RECORDED_MAX at a time: work of a server between two waits runs with cold caches, at three times the price.
"""

from array import array
from collections.abc import Iterable
from itertools import accumulate
from math import frexp

STEPS = 16
"""Buckets for each doubling."""
OCTAVES = 34
"""Octaves from a microsecond to four hours; longer times are in the last."""
BUCKETS = STEPS * OCTAVES
WINDOW_SECONDS = 60.0
"""Apache's prometheusStatsLatencyRolloverSeconds."""
MICROSECONDS = 1e6
RECORDED_MAX = 64
_TWICE_STEPS = 2 * STEPS


def bucket_of(seconds: float) -> int:
    mantissa, exponent = frexp(seconds * MICROSECONDS)
    index = exponent * STEPS + int(mantissa * _TWICE_STEPS) - _TWICE_STEPS  # the mantissa is from a half to one
    if index < 0:
        return 0
    return index if index < BUCKETS else BUCKETS - 1


def bucket_end_ms(index: int) -> float:
    """Upper bound of the bucket's latencies, in milliseconds."""
    octave, step = divmod(index, STEPS)
    return float(2**octave) * (1 + (step + 1) / STEPS) / 1000


class Latencies:
    """Latencies of operations that ended alike."""

    def __init__(self) -> None:
        self._count = 0
        self._seconds = 0.0
        self._now = array("Q", bytes(8 * BUCKETS))
        self._before = array("Q", bytes(8 * BUCKETS))
        self._recorded: list[tuple[float, int]] = []
        """Records that are not counted yet."""

    @property
    def count(self) -> int:
        self._count_recorded()
        return self._count

    @property
    def seconds(self) -> float:
        """The sum."""
        self._count_recorded()
        return self._seconds

    def record(self, seconds: float, count: int) -> None:
        recorded = self._recorded
        recorded.append((seconds, count))
        if len(recorded) >= RECORDED_MAX:
            self._count_recorded()

    def _count_recorded(self) -> None:
        recorded, self._recorded = self._recorded, []
        for seconds, count in recorded:
            self._count += count
            self._seconds += seconds * count
            self._now[bucket_of(seconds)] += count

    def turn(self) -> None:
        """A window is over."""
        self._count_recorded()
        self._now, self._before = array("Q", bytes(8 * BUCKETS)), self._now

    def recent(self) -> list[int]:
        """Recent counts by bucket."""
        self._count_recorded()
        return [now + before for now, before in zip(self._now, self._before, strict=True)]


class OpStats:
    """Statistics of one operation. `now` is of the event loop's clock."""

    def __init__(self, now: float = 0.0) -> None:
        self.succeeded, self.failed = Latencies(), Latencies()
        self._turned_at = now

    def record(self, seconds: float, count: int = 1, *, has_failed: bool = False) -> None:
        """`count` operations took so long."""
        (self.failed if has_failed else self.succeeded).record(seconds, count)

    def look(self, now: float) -> None:
        """Before it is read: what is older than two windows is forgotten."""
        windows = (now - self._turned_at) // WINDOW_SECONDS
        if windows >= 1:
            self._turned_at += windows * WINDOW_SECONDS
            for latencies in (self.succeeded, self.failed):
                for _ in range(2 if windows >= 2 else 1):
                    latencies.turn()


def quantile_ms(parts: Iterable[Latencies], quantile: float) -> float:
    """Over all parts, to a bucket's end; not a number when nothing was recorded lately."""
    totals = [sum(counts) for counts in zip(*(part.recent() for part in parts), strict=True)]
    counts = list(accumulate(totals))
    if not counts or not counts[-1]:
        return float("nan")
    wanted = quantile * counts[-1]
    return bucket_end_ms(next(index for index, count in enumerate(counts) if count and count >= wanted))
