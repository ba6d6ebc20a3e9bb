"""The metrics of a broker as a whole: sums over its topics, managed ledgers and their cache, lookups, connections, the process.

Names are Apache's (BrokerOperabilityMetrics, ManagedLedgerMetrics, ManagedLedgerCacheMetrics and the process collector of its
Prometheus client). Metrics of the JVM are left out.
"""

import os
import resource
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from managed_ledger.meters import LATENCY_BUCKETS_MS, SIZE_BUCKETS
from ports.metrics.metric_help import head

from ...meters import BrokerMeters
from ...service.load.loads import Usage
from .text import Sample, escaped, labels, samples_text, summary_text
from .topics import Totals

LOOKUP_QUANTILES = (0.5, 0.99, 0.999, 1.0)
LOAD_QUANTILES = (0.5, 0.75, 0.95, 0.99, 0.999, 0.9999)
PUBLISH_QUANTILES = (0.0, 0.5, 0.95, 0.99, 0.999, 0.9999, 1.0)

_SUMS = ("subscriptions_count", "producers_count", "consumers_count", "rate_in", "rate_out", "throughput_in", "throughput_out",
         "msg_backlog", "storage_size", "storage_logical_size", "storage_write_rate", "storage_read_rate",
         "storage_read_cache_misses_rate")  # fmt: skip
_RUNNING_SINCE = time.time()


def broker_text(cluster: str, totals: Totals, meters: BrokerMeters, connections: int, now: float) -> Iterator[str]:
    """`now` is of the event loop's clock."""
    plain = labels(cluster=cluster)
    yield samples_text(plain, _sums(totals))
    yield samples_text(labels(cluster=cluster, system_topic="false"), _in_bytes(totals))
    yield samples_text(labels(cluster=cluster, system_subscription="false"), _out_bytes(totals))
    yield samples_text(labels(cluster=cluster, version=meters.version, commit=""), [("pulsar_version_info", "gauge", 1)])
    yield samples_text(plain, [("pulsar_health", "gauge", 1), *_lookups(meters), *_connections(meters, connections)])
    yield summary_text("pulsar_broker_lookup", cluster, meters.lookups, LOOKUP_QUANTILES, now)
    yield summary_text("pulsar_topic_load_times", cluster, meters.topic_loads, LOAD_QUANTILES, now)
    if meters.managed_ledgers is not None:
        yield samples_text(plain, _cache(meters, now))
        appends = meters.managed_ledgers.meters.appends
        for name in ("pulsar_broker_publish_latency", "pulsar_instance_publish_latency"):  # the second of older boards
            yield summary_text(name, cluster, appends, PUBLISH_QUANTILES, now)
    yield samples_text(plain, process_samples())


def _sums(totals: Totals) -> Iterator[Sample]:
    yield "pulsar_broker_topics_count", "gauge", totals.topic_count
    for name in _SUMS:
        yield f"pulsar_broker_{name}", "gauge", totals.topic_value(f"pulsar_{name}")


def _in_bytes(totals: Totals) -> Iterator[Sample]:
    yield "pulsar_broker_in_bytes_total", "counter", totals.topic_value("pulsar_in_bytes_total")


def _out_bytes(totals: Totals) -> Iterator[Sample]:
    yield "pulsar_broker_out_bytes_total", "counter", totals.out_bytes()


def _lookups(meters: BrokerMeters) -> Iterator[Sample]:
    yield "pulsar_broker_lookup_redirects_total", "counter", meters.lookups_redirected
    yield "pulsar_broker_lookup_answers_total", "counter", meters.lookups.succeeded.count - meters.lookups_redirected
    yield "pulsar_broker_lookup_failures_total", "counter", meters.lookups.failed.count
    yield "pulsar_broker_lookup_pending_requests", "gauge", meters.lookups_pending
    yield "pulsar_broker_topic_load_pending_requests", "gauge", meters.topic_loads_pending
    yield "pulsar_topic_load_failed_count", "counter", meters.topic_loads.failed.count


def _connections(meters: BrokerMeters, connections: int) -> Iterator[Sample]:
    yield "pulsar_active_connections", "gauge", connections
    yield "pulsar_connection_created_total_count", "counter", meters.connections_opened
    yield "pulsar_connection_create_success_count", "counter", meters.connections_opened - meters.connections_refused
    yield "pulsar_connection_create_fail_count", "counter", meters.connections_refused
    yield "pulsar_connection_closed_total_count", "counter", meters.connections_closed
    yield "pulsar_broker_throttled_connections", "gauge", meters.connections_throttled
    yield "pulsar_broker_storage_refused", "gauge", int(bool(meters.storage_refusal()))
    yield "pulsar_broker_http_rejected_requests_total", "counter", meters.http_requests_rejected


def _cache(meters: BrokerMeters, now: float) -> Iterator[Sample]:
    ledgers = meters.managed_ledgers
    assert ledgers is not None
    shared = ledgers.meters
    in_flight, available = ledgers.reads_in_flight_bytes()
    shared.sample(now, meters.sample_seconds)
    yield "pulsar_ml_count", "gauge", ledgers.count
    yield "pulsar_ml_cache_used_size", "gauge", ledgers.cached_bytes
    yield "pulsar_ml_cache_evictions", "gauge", ledgers.cache_evictions
    yield "pulsar_ml_cache_hits_rate", "gauge", shared.rates[0]
    yield "pulsar_ml_cache_hits_throughput", "gauge", shared.rates[1]
    yield "pulsar_ml_cache_misses_rate", "gauge", shared.rates[2]
    yield "pulsar_ml_cache_misses_throughput", "gauge", shared.rates[3]
    yield "pulsar_ml_reads_inflight_bytes", "gauge", in_flight
    yield "pulsar_ml_reads_available_inflight_bytes", "gauge", available


def load_text(cluster: str, usage: Usage) -> str:
    """Usage of the machine that was reported last, in percent of its limits."""
    shares = (
        ("cpu", usage.cpu),
        ("memory", usage.memory),
        ("bandwidth_in", usage.bandwidth_in),
        ("bandwidth_out", usage.bandwidth_out),
    )
    samples = [(f"pulsar_lb_{name}_usage", "gauge", 100 * share) for name, share in shares]
    return samples_text(labels(cluster=cluster, metric="loadBalancing"), samples)


def namespaces_text(cluster: str, by_namespace: Mapping[str, Totals], *, with_ledgers: bool) -> Iterator[str]:
    """The number of topics of each namespace, and the work of its managed ledgers."""
    lines = [f'pulsar_topics_count{{cluster="{escaped(cluster)}",namespace="{escaped(name)}"}} {totals.topic_count}\n'
             for name, totals in by_namespace.items()]  # fmt: skip
    yield head("pulsar_topics_count", "gauge") + "".join(lines)
    if with_ledgers:
        told: dict[str, list[str]] = {}
        for name, totals in by_namespace.items():
            label = f'{{cluster="{escaped(cluster)}",namespace="{escaped(name)}/persistent"'
            for metric, text in _ledger_lines(label, totals):
                told.setdefault(metric, []).append(text)
        for metric, texts in told.items():
            yield head(metric, "gauge") + "".join(texts)


def _ledger_lines(label: str, totals: Totals) -> Iterator[tuple[str, str]]:
    """Each with the name of its metric: all lines of one stand together."""
    for name, source in _LEDGER_RATES:
        yield f"pulsar_ml_{name}", f"pulsar_ml_{name}{label}}} {totals.topic_value(source)}\n"
    latencies = len(LATENCY_BUCKETS_MS) + 1
    sizes = totals.written[latencies + 2 :]
    for name, bounds, counts in (
        ("AddEntryLatencyBuckets", LATENCY_BUCKETS_MS, totals.written),
        ("LedgerAddEntryLatencyBuckets", LATENCY_BUCKETS_MS, totals.written),
        ("EntrySizeBuckets", SIZE_BUCKETS, sizes),
    ):
        for start, end, count in zip((0, *bounds), bounds, counts, strict=False):
            yield f"pulsar_ml_{name}", f'pulsar_ml_{name}{label},quantile="{float(start)}_{float(end)}"}} {count}\n'
        yield f"pulsar_ml_{name}_OVERFLOW", f"pulsar_ml_{name}_OVERFLOW{label}}} {counts[len(bounds)]}\n"
    yield "pulsar_ml_AddEntrySucceed", f"pulsar_ml_AddEntrySucceed{label}}} {totals.written[-1]}\n"
    yield "pulsar_ml_AddEntryErrors", f"pulsar_ml_AddEntryErrors{label}}} 0\n"


_LEDGER_RATES = (
    ("AddEntryBytesRate", "pulsar_throughput_in"),
    ("AddEntryMessagesRate", "pulsar_storage_write_rate"),
    ("NumberOfMessagesInBacklog", "pulsar_msg_backlog"),
    ("ReadEntriesBytesRate", "pulsar_throughput_out"),
    ("ReadEntriesRate", "pulsar_storage_read_rate"),
    ("ReadEntriesOpsCacheMissesRate", "pulsar_storage_read_cache_misses_rate"),
    ("StoredMessagesSize", "pulsar_storage_logical_size"),
)


def process_samples() -> Iterator[Sample]:
    """Yields the samples of the process, named as Prometheus' clients name them."""
    times = os.times()
    yield "process_cpu_seconds_total", "counter", times.user + times.system
    yield "process_start_time_seconds", "gauge", _RUNNING_SINCE
    yield "process_max_fds", "gauge", resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    yield from _linux_samples(Path("/proc/self"))


def _linux_samples(process: Path) -> Iterator[Sample]:
    """Nothing on other systems."""
    if not process.is_dir():
        return
    page = resource.getpagesize()
    size, resident = (process / "statm").read_text().split()[:2]
    yield "process_virtual_memory_bytes", "gauge", int(size) * page
    yield "process_resident_memory_bytes", "gauge", int(resident) * page
    yield "process_open_fds", "gauge", len(os.listdir(process / "fd"))
