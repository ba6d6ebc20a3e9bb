"""The metrics of transaction coordinators, by number (Apache: TransactionAggregator). Pure.

Counters are there under two names: `_total`, which Apache's code has, and `_count`, which its Grafana boards ask for.
"""

from collections.abc import Iterable, Iterator

from ..transaction.coordinator_driver import Coordinator
from ..transaction.meters import LATENCY_BOUNDS_MS
from .metrics_text import family, labels

_COUNTERS = ("committed", "aborted", "created", "timeout", "append_log")
_LATENCIES = [f"pulsar_txn_execution_latency_le_{bound}" for bound in (*LATENCY_BOUNDS_MS, "overflow")]
_NAMES: tuple[tuple[str, str], ...] = (
    ("pulsar_txn_active_count", "gauge"),
    *((f"pulsar_txn_{name}_{end}", "counter") for name in _COUNTERS for end in ("total", "count")),
    *((name, "gauge") for name in _LATENCIES),
)


def transactions_text(cluster: str, coordinators: Iterable[Coordinator]) -> Iterator[str]:
    """One series for each coordinator that is loaded."""
    loaded = sorted(coordinators, key=lambda each: each.id)
    series = [labels(cluster=cluster, coordinator_id=str(each.id)) for each in loaded]
    rows = [_row(each) for each in loaded]
    for column, (name, kind) in enumerate(_NAMES if loaded else ()):
        yield from family(name, kind, series, rows, column)


def _row(coordinator: Coordinator) -> list[int]:
    meters = coordinator.meters
    counted = (meters.committed, meters.aborted, meters.created, meters.timed_out, meters.appended)
    return [coordinator.machine.active_count, *(count for count in counted for _ in range(2)), *meters.latency]
