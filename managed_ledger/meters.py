"""Meters of managed ledgers, for /metrics: one call for each run, none for an entry. Pure: time is an argument.

Owns the bounds of the buckets (Apache: ENTRY_LATENCY_BUCKETS_USEC and ENTRY_SIZE_BUCKETS_BYTES of ManagedLedgerMBeanImpl).
Entries of a run count with the run's mean size.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from ports.metrics.op_stats import OpStats
from wire.kernels.rows import MetersRow

LATENCY_BUCKETS_MS = (0.5, 1, 5, 10, 20, 50, 100, 200, 1000)
SIZE_BUCKETS = (128, 512, 1024, 2048, 4096, 16_384, 102_400, 1 << 20)
"""Bytes. Values beyond the last bound of either are in one more bucket, the overflow."""
_LATENCY_BOUNDS, _SIZE_BOUNDS = array("d", LATENCY_BUCKETS_MS), array("d", SIZE_BUCKETS)
_NO_LATENCIES = array("Q", bytes(8 * (len(LATENCY_BUCKETS_MS) + 1)))
_NO_SIZES = array("Q", bytes(8 * (len(SIZE_BUCKETS) + 1)))


@dataclass(slots=True)
class SharedMeters:
    """Meters of all managed ledgers of a process. Cache hits and misses are entries."""

    appends: OpStats = field(default_factory=OpStats)
    hits: int = 0
    hit_bytes: int = 0
    misses: int = 0
    missed_bytes: int = 0
    rates: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)
    """Per second: hits, their bytes, misses, their bytes."""
    _last: tuple[int, ...] = (0, 0, 0, 0)
    _sampled_at: float = 0.0

    def sample(self, now: float, seconds_min: float) -> None:
        """Take the rates of the time since they were last taken, if that is long enough."""
        seconds = now - self._sampled_at
        if seconds >= seconds_min:
            totals = (self.hits, self.hit_bytes, self.misses, self.missed_bytes)
            self.rates = tuple((total - last) / seconds for total, last in zip(totals, self._last, strict=True))
            self._last, self._sampled_at = totals, now


class LedgerMeters(MetersRow):
    """Meters of one managed ledger since its opening. `entries` and `payload_bytes` were stored, `read_entries` read."""

    __slots__ = (
        "_last",
        "_sampled_at",
        "_shared",
        "missed_entries",
        "missed_rate",
        "read_bytes",
        "read_entries",
        "read_rate",
        "write_rate",
    )

    def __init__(self, shared: SharedMeters, now: float) -> None:
        self.append_latencies, self.entry_sizes = _NO_LATENCIES, _NO_SIZES
        self.append_seconds = 0.0
        self.entries = self.payload_bytes = self.read_entries = self.read_bytes = self.missed_entries = 0
        self.write_rate = self.read_rate = self.missed_rate = 0.0
        self._shared = shared
        self._appends, self._latency_bounds, self._size_bounds = shared.appends.succeeded, _LATENCY_BOUNDS, _SIZE_BOUNDS
        self._sampled_at = now
        self._last = (0, 0, 0)

    def stored(self, seconds: float, entries: int, payload_bytes: int) -> None:
        """A run was appended, and is confirmed so much later."""
        if not self.entries:  # most topics of a large broker are idle: they share the empty buckets
            self.append_latencies, self.entry_sizes = _NO_LATENCIES[:], _NO_SIZES[:]
        self.entries += entries
        self.payload_bytes += payload_bytes
        self.append_seconds += seconds * entries
        self.append_latencies[bisect_left(LATENCY_BUCKETS_MS, seconds * 1000)] += entries
        self.entry_sizes[bisect_left(SIZE_BUCKETS, payload_bytes / entries)] += entries
        self._shared.appends.record(seconds, entries)

    def hit(self, entries: int, size_bytes: int) -> None:
        """A run came from the cache."""
        self.read_entries += entries
        self.read_bytes += size_bytes
        self._shared.hits += entries
        self._shared.hit_bytes += size_bytes

    def missed(self, entries: int, size_bytes: int) -> None:
        """A run came from a ledger."""
        self.read_entries += entries
        self.read_bytes += size_bytes
        self.missed_entries += entries
        self._shared.misses += entries
        self._shared.missed_bytes += size_bytes

    def sample(self, now: float, seconds_min: float) -> None:
        """Take the rates per second of the time since they were last taken, if that is long enough."""
        seconds = now - self._sampled_at
        if seconds >= seconds_min:
            totals = (self.entries, self.read_entries, self.missed_entries)
            self.write_rate, self.read_rate, self.missed_rate = (
                (total - last) / seconds for total, last in zip(totals, self._last, strict=True)
            )
            self._last, self._sampled_at = totals, now


@dataclass(slots=True)
class Writes:
    """Numbers of writes that succeeded and that failed."""

    succeeded: int = 0
    failed: int = 0

    @contextmanager
    def one(self) -> Iterator[None]:
        """Failed is what raises, whatever."""
        has_failed = True
        try:
            yield
            has_failed = False
        finally:
            self.failed += has_failed
            self.succeeded += not has_failed


@dataclass(slots=True)
class CursorMeters:
    """Meters of one durable cursor since its opening: saves to its cursor ledger, their payload, and saves to its node (Apache:
    ManagedCursorMXBean)."""

    ledger: Writes = field(default_factory=Writes)
    node: Writes = field(default_factory=Writes)
    ledger_bytes: int = 0


class CursorFacts(NamedTuple):
    """`ranges` of acknowledged entries beyond mark-delete."""

    meters: CursorMeters
    ranges: int
