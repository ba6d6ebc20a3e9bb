"""The metrics of a broker's work beside its topics: metadata, schemas, authentication, quotas, load. Pure.

Names, labels and buckets are Apache's (MetadataStoreStats, SchemaRegistryStats, AuthenticationMetrics and its token variant;
UnloadCounter, SplitCounter and BrokerLoadData of its load manager). Counters of load balancing are there under two names:
`_total` and, of its older load manager, `_count`. Schema operations have no quantiles.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean, pstdev

from metadata.metered_store import MetadataMeters
from ports.metrics.histogram import Histogram
from ports.metrics.metric_help import head

from ...schema.meters import KINDS, NamespaceCounts, SchemaMeters
from ...security.authentication.authentication import AuthenticationMeters
from ...service.load.bundle_splits import BundleSplits
from ...service.load.leader import Moves
from ...service.load.loads import Usage
from .text import Sample, histogram_lines, labels, samples_text
from .topics import QUOTAS

_METADATA = "metadata-store"
PROVIDERS = {
    "token": "AuthenticationProviderToken",
    "basic": "AuthenticationProviderBasic",
    "tls": "AuthenticationProviderTls",
}


def metadata_text(cluster: str, meters: MetadataMeters) -> str:
    name = "pulsar_metadata_store_ops_latency_ms"
    lines = [head(name, "histogram")]
    for (kind, status), histogram in meters.latencies.items():
        lines += histogram_lines(name, {"cluster": cluster, "name": _METADATA, "type": kind, "status": status}, histogram)
    sample: Sample = ("pulsar_metadata_store_put_bytes_total", "counter", meters.put_bytes)
    return "".join(lines) + samples_text(labels(cluster=cluster, name=_METADATA), [sample])


def schemas_text(cluster: str, meters: SchemaMeters) -> str:
    """A series for each namespace; nothing before there is one."""
    counted = {labels(cluster=cluster, namespace=name): counts for name, counts in sorted(meters.by_namespace.items())}
    return "".join(_schema_lines(counted)) if counted else ""


def _schema_lines(counted: Mapping[str, NamespaceCounts]) -> Iterator[str]:
    for kind in KINDS:
        name = f"pulsar_schema_{kind}_ops_latency"
        yield head(name, "summary")
        for label, counts in counted.items():
            yield f"{name}_count{label}{counts.operations[kind].count}\n"
            yield f"{name}_sum{label}{1000 * counts.operations[kind].seconds}\n"
        failed = {label: counts.operations[kind].failed for label, counts in counted.items()}
        yield _counter(f"pulsar_schema_{kind}_ops_failed_total", failed)
    yield _counter("pulsar_schema_compatible_total", {label: each.compatible for label, each in counted.items()})
    yield _counter("pulsar_schema_incompatible_total", {label: each.incompatible for label, each in counted.items()})


def authentication_text(cluster: str, meters: AuthenticationMeters) -> str:
    def method_labels(method: str) -> dict[str, str]:
        return {"cluster": cluster, "provider_name": PROVIDERS.get(method, method), "auth_method": method}

    succeeded = {labels(**method_labels(method)): count for method, count in sorted(meters.succeeded.items())}
    failed = {
        labels(**method_labels(method), reason=reason): count for (method, reason), count in sorted(meters.failed.items())
    }
    name, plain = "pulsar_expiring_token_minutes", {"cluster": cluster}
    return "".join(
        (
            _counter("pulsar_authentication_success_total", succeeded),
            _counter("pulsar_authentication_failures_total", failed),
            samples_text(labels(**plain), [("pulsar_expired_token_total", "counter", meters.expired_tokens)]),
            head(name, "histogram"),
            *histogram_lines(name, plain, meters.expiring_minutes),
        )
    )


def quotas_text(cluster: str, seconds: Histogram, evictions: Sequence[int]) -> str:
    """Durations of backlog quota checks, and numbers of evictions, in the order of QUOTAS."""
    name = "pulsar_storage_backlog_quota_check_duration_seconds"
    by_quota = {labels(cluster=cluster, quota_type=quota): count for quota, count in zip(QUOTAS, evictions, strict=True)}
    lines = [head(name, "histogram"), *histogram_lines(name, {"cluster": cluster}, seconds)]
    return "".join(lines) + _family("pulsar_broker_storage_backlog_quota_exceeded_evictions_total", "gauge", by_quota)


def splits_text(cluster: str, splits: BundleSplits) -> str:
    """Splits of bundles, by the broker that made them."""
    return _balancing(cluster, "bundlesSplit", "bundles_split", splits.done, splits.failed)


def moves_text(cluster: str, moves: Moves, usages: Sequence[float]) -> str:
    """Moves of bundles, by the broker that is or was the leader, and its knowledge of the usage of all brokers."""
    plain = labels(cluster=cluster, metric="bundleUnloading")
    bundles: Iterable[Sample] = [(f"pulsar_lb_unload_bundle_{end}", "counter", moves.bundles) for end in ("total", "count")]
    told = _balancing(cluster, "bundleUnloading", "unload_broker", moves.brokers, moves.failed) + samples_text(plain, bundles)
    if usages:
        name = "pulsar_lb_resource_usage_stats"
        told += head(name, "gauge")
        for stat, value in (("avg", fmean(usages)), ("std", pstdev(usages))):
            told += f"{name}{labels(cluster=cluster, metric='bundleUnloading', feature='max_ema', stat=stat)}{value}\n"
    return told


def usage_text(cluster: str, usage: Usage) -> str:
    """Usage of the machine that was reported last, as shares of its limits."""
    name = "pulsar_lb_resource_usage"
    shares = {
        "cpu": usage.cpu,
        "memory": usage.memory,
        "bandwidth_in": usage.bandwidth_in,
        "bandwidth_out": usage.bandwidth_out,
        "max": usage.greatest,
    }
    lines = [
        f"{name}{labels(cluster=cluster, metric='loadBalancing', feature=what)}{share}\n" for what, share in shares.items()
    ]
    return head(name, "gauge") + "".join(lines)


def _balancing(cluster: str, metric: str, what: str, done: int, failed: int) -> str:
    plain = labels(cluster=cluster, metric=metric)
    text = samples_text(plain, [(f"pulsar_lb_{what}_{end}", "counter", done) for end in ("total", "count")])
    results = {"Success": done, "Failure": failed}
    broken_down = {labels(cluster=cluster, metric=metric, result=result): count for result, count in results.items()}
    return text + _counter(f"pulsar_lb_{what}_breakdown_total", broken_down)


def _counter(name: str, values: Mapping[str, int]) -> str:
    return _family(name, "counter", values)


def _family(name: str, kind: str, values: Mapping[str, int]) -> str:
    return head(name, kind) + "".join(f"{name}{label}{value}\n" for label, value in values.items())
