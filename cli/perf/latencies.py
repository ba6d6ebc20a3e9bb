"""Latencies by count: percentiles without keeping every sample. Pure; bounded by the number of buckets."""

from collections.abc import Mapping

PERCENTILES = (50.0, 95.0, 99.0, 99.9, 99.99, 99.999)
STEPS_PER_DOUBLING = 64


class Latencies:
    """Milliseconds in buckets that are about 1 % wide."""

    def __init__(self) -> None:
        self.count = 0
        self.max_ms = 0.0
        self._sum_ms = 0.0
        self._buckets: dict[int, int] = {}

    def add(self, milliseconds: float, times: int = 1) -> None:
        self.count += times
        self._sum_ms += milliseconds * times
        self.max_ms = max(self.max_ms, milliseconds)
        bucket = _bucket(milliseconds)
        self._buckets[bucket] = self._buckets.get(bucket, 0) + times

    def percentile(self, percent: float) -> float:
        """Percentile in milliseconds, 0 without samples."""
        wanted, seen = self.count * percent / 100, 0
        for bucket in sorted(self._buckets):
            seen += self._buckets[bucket]
            if seen >= wanted:
                return min(_upper(bucket), self.max_ms)
        return self.max_ms

    def summary(self) -> Mapping[str, float]:
        mean = self._sum_ms / self.count if self.count else 0.0
        found = {"mean": mean, **{name(percent): self.percentile(percent) for percent in PERCENTILES}, "max": self.max_ms}
        return {key: round(value, 3) for key, value in found.items()}

    def line(self) -> str:
        """A line as Apache's tool prints it: mean, median, percentiles, maximum."""
        found = self.summary()
        middle = " - ".join(f"{name(percent)}: {found[name(percent)]:.3f}" for percent in PERCENTILES)
        return f"Latency: mean: {found['mean']:.3f} ms - {middle} - Max: {found['max']:.3f}"


def name(percent: float) -> str:
    return "med" if percent == 50 else f"{percent:g}pct"


def _bucket(milliseconds: float) -> int:
    """Bucket of a latency: powers of two, each in equal steps, from a microsecond on."""
    microseconds = max(1, int(milliseconds * 1000))
    power = microseconds.bit_length() - 1
    return power * STEPS_PER_DOUBLING + ((microseconds - (1 << power)) * STEPS_PER_DOUBLING >> power)


def _upper(bucket: int) -> float:
    power, step = divmod(bucket, STEPS_PER_DOUBLING)
    return (1 << power) * (1 + (step + 1) / STEPS_PER_DOUBLING) / 1000
