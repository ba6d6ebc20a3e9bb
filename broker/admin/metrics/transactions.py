"""The metrics of transactions: of coordinators, of their requests, of topics and of acknowledgements in them. Pure.

Names and labels are Apache's (TransactionAggregator, TransactionBufferClientStatsImpl, TopicStats of its prometheus package,
PendingAckHandleStatsImpl), and so are the units: latencies of coordinators' requests are nanoseconds, of commits on
subscriptions microseconds; they have sums and counts, and no quantiles. Counters of coordinators have two names:
`_total`, which Apache's code has, and `_count`, which its Grafana boards ask for. Topics and subscriptions have series from
their first transaction on.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import add

from ports.metrics.metric_help import head
from wire.transactions import TxnAction

from ...service.topic_name import TopicName
from ...topic.statistics.topic_stats import TopicStats
from ...topic.statistics.transaction_facts import PendingAckCounts
from ...transaction.coordinator_driver import Coordinator
from ...transaction.meters import LATENCY_BOUNDS_MS, EndingCounts, EndingMeters
from .text import family, labels

_COUNTERS = ("committed", "aborted", "created", "timeout", "append_log")
_LATENCIES = [f"pulsar_txn_execution_latency_le_{bound}" for bound in (*LATENCY_BOUNDS_MS, "overflow")]
_NAMES: tuple[tuple[str, str], ...] = (
    ("pulsar_txn_active_count", "gauge"),
    *((f"pulsar_txn_{name}_{end}", "counter") for name in _COUNTERS for end in ("total", "count")),
    *((name, "gauge") for name in _LATENCIES),
)
_ASKED = "pulsar_txn_tb_client"
_ACTIONS = {TxnAction.COMMIT: "commit", TxnAction.ABORT: "abort"}
BUFFER = (
    ("pulsar_txn_tb_active_total", "gauge"),
    ("pulsar_txn_tb_aborted_total", "counter"),
    ("pulsar_txn_tb_committed_total", "counter"),
)
ACKNOWLEDGED = (("pulsar_txn_tp_committed_count_total", "counter"), ("pulsar_txn_tp_aborted_count_total", "counter"))
"""A series for each of STATUSES."""
STATUSES = ("succeed", "failed")
COMMIT_LATENCY = (("pulsar_txn_tp_commit_latency_count", "counter"), ("pulsar_txn_tp_commit_latency_sum", "counter"))


def buffer_row(stats: TopicStats) -> Sequence[float]:
    """Values in the order of BUFFER."""
    return (stats.ongoing_txn_count, stats.aborted_txn_count, stats.committed_txn_count)


def acknowledged_rows(counts: PendingAckCounts) -> Sequence[Sequence[float]]:
    """Rows in the order of STATUSES, each in that of ACKNOWLEDGED."""
    return ((counts.committed, counts.aborted), (counts.commits_failed, counts.aborts_failed))


def commit_latency_row(counts: PendingAckCounts) -> Sequence[float]:
    """Values in the order of COMMIT_LATENCY."""
    return (counts.committed, 1_000_000 * counts.commit_seconds)


def asked_text(cluster: str, meters: EndingMeters, *, with_topics: bool) -> Iterator[str]:
    """Requests of this broker's coordinators: a series for each topic, or for each namespace."""
    name = f"{_ASKED}_pending_requests"
    yield head(name, "gauge") + f"{name}{labels(cluster=cluster)}{meters.pending}\n"
    if meters.contradicted:
        name = f"{_ASKED}_contradicted_total"
        yield head(name, "counter") + f"{name}{labels(cluster=cluster)}{meters.contradicted}\n"
    rows = _asked_rows(cluster, meters, with_topics)
    names = [
        (f"{_ASKED}_{word}_{what}", "counter")
        for word in _ACTIONS.values()
        for what in ("failed_total", "latency_count", "latency_sum")
    ]
    for column, (each, kind) in enumerate(names if rows else ()):
        yield from family(each, kind, list(rows), list(rows.values()), column)


def _asked_rows(cluster: str, meters: EndingMeters, with_topics: bool) -> Mapping[str, Sequence[float]]:
    rows: dict[str, Sequence[float]] = {}
    for topic, by_action in meters.by_topic.items():
        namespace = str(TopicName.parse(topic).namespace)
        more = {"topic": topic} if with_topics else {}
        label = labels(cluster=cluster, namespace=namespace, **more)
        row = [value for action in _ACTIONS for value in _asked_row(by_action[action])]
        rows[label] = list(map(add, rows[label], row)) if label in rows else row
    return rows


def _asked_row(counts: EndingCounts) -> Sequence[float]:
    return (counts.failed, counts.done, 1_000_000_000 * counts.seconds)


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
