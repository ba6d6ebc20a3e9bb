"""Histogram: how many measured values are up to each bound, as Prometheus' histograms; and their sum. Pure."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate


class Histogram:
    """`bounds` ascend; values above the last bound are in one more bucket."""

    __slots__ = ("_counts", "bounds", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.total = 0.0
        self._counts = [0] * (len(bounds) + 1)

    def record(self, value: float, count: int = 1) -> None:
        self._counts[bisect_left(self.bounds, value)] += count
        self.total += value * count

    @property
    def count(self) -> int:
        return sum(self._counts)

    def cumulative(self) -> list[int]:
        """Up to each bound, and all of them."""
        return list(accumulate(self._counts))
