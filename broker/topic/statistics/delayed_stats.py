"""Buckets of delayed messages of a subscription and counts of operations on them, for stats and metrics. Pure.

Kinds of operations and bounds of latencies are Apache's (BucketDelayedMessageIndexStats). Counts are of the time since the
topic was loaded; those of latencies are not cumulative over their bounds.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

CREATE, LOAD, DELETE, MERGE = "create", "load", "delete", "merge"
BOUNDS_MS = (50, 100, 500, 1000, 5000, 30_000, 60_000)
"""Inclusive bounds; longer times are in one more, the overflow."""


@dataclass(slots=True)
class OperationCounts:
    """Counts of one kind of operation. Begun ones that neither succeeded nor failed are under way, or were given up."""

    begun: int = 0
    succeeded: int = 0
    failed: int = 0
    latencies: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_MS) + 1))
    sum_ms: float = 0.0

    def ended(self, seconds: float, *, is_good: bool) -> None:
        if not is_good:
            self.failed += 1
            return
        milliseconds = 1000 * seconds
        self.succeeded += 1
        self.latencies[bisect_left(BOUNDS_MS, milliseconds)] += 1
        self.sum_ms += milliseconds


@dataclass(frozen=True, slots=True)
class IndexStats:
    """`loaded`: messages that wait, all of them in memory; `size_bytes`: of the buckets' ledgers."""

    buckets: int
    loaded: int
    size_bytes: int
    operations: Mapping[str, OperationCounts]
    """Counts that go on counting; only operations that there were."""


@dataclass(frozen=True, slots=True)
class IndexMetric:
    """One number; `labels` are names and values in turn."""

    name: str
    value: float
    labels: Sequence[str] = ()

    @property
    def key(self) -> str:
        """Unique: as Apache's stats name it."""
        return self.name + "_".join(self.labels)


def index_metrics(stats: IndexStats) -> list[IndexMetric]:
    """Under Apache's names, which of latencies have no series where nothing was counted."""
    name = "pulsar_delayed_message_index"
    found = [
        IndexMetric(f"{name}_bucket_total", stats.buckets),
        IndexMetric(f"{name}_loaded", stats.loaded),
        IndexMetric(f"{name}_bucket_snapshot_size_bytes", stats.size_bytes),
    ]
    for kind, counts in stats.operations.items():
        for state, count in (("all", counts.begun), ("succeed", counts.succeeded), ("failed", counts.failed)):
            if count:
                found.append(IndexMetric(f"{name}_bucket_op_count", count, ("state", state, "type", kind)))
        latency = f"{name}_bucket_op_latency_ms"
        for bound, count in zip((*BOUNDS_MS, "overflow"), counts.latencies, strict=True):
            if count:
                found.append(IndexMetric(latency, count, ("type", kind, "quantile", str(bound))))
        if counts.succeeded:
            found.append(IndexMetric(f"{latency}_count", counts.succeeded, ("type", kind)))
            found.append(IndexMetric(f"{latency}_sum", counts.sum_ms, ("type", kind)))
    return found


def summed(parts: Iterable[Sequence[IndexMetric]]) -> list[IndexMetric]:
    """Sum over several subscriptions or topics."""
    found: dict[str, IndexMetric] = {}
    for part in parts:
        for each in part:
            known = found.get(each.key)
            found[each.key] = each if known is None else IndexMetric(each.name, known.value + each.value, each.labels)
    return list(found.values())
