"""What dashboards ask of Prometheus, evaluated by Prometheus's own engine over scraped texts (`promql/main.go`).

The stock dashboards of Pulsar's charts ask for these names by these labels; those of functions, connectors, transactions,
offloading, ZooKeeper and the JVM are other software's. Owns how the program is built and asked.
"""

import json
import os
import re
import subprocess
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.toolchain import BUILD, ROOT, run_tool

PROGRAM = Path(__file__).parent / "promql"
DEPLOY = ROOT / "deploy"
BUILD_SECONDS_MAX = 900
BEGAN_MS, INTERVAL_MS = 1_000_000_000_000, 15_000
"""When scrapes were taken, as far as the engine knows: evenly, however long a busy machine took."""

SUMS = {
    "cluster, namespace, topic": (
        "pulsar_rate_in", "pulsar_rate_out", "pulsar_throughput_in", "pulsar_throughput_out", "pulsar_producers_count",
        "pulsar_consumers_count", "pulsar_subscriptions_count", "pulsar_msg_backlog", "pulsar_storage_size",
        "pulsar_storage_backlog_size", "pulsar_storage_backlog_quota_limit", "pulsar_storage_offloaded_size",
        "pulsar_storage_read_rate", "pulsar_storage_write_rate", "pulsar_storage_write_latency_count",
        *(f"pulsar_storage_write_latency_{end}" for end in (
            "le_0_5", "le_1", "le_5", "le_10", "le_20", "le_50", "le_100", "le_200", "le_1000", "overflow")),
        *(f"pulsar_entry_size_{end}" for end in (
            "le_128", "le_512", "le_1_kb", "le_2_kb", "le_4_kb", "le_16_kb", "le_100_kb", "le_1_mb", "overflow")),
    ),
    "cluster, namespace, topic, subscription": (
        "pulsar_subscription_back_log", "pulsar_subscription_delayed", "pulsar_subscription_msg_rate_out",
        "pulsar_subscription_msg_rate_redeliver", "pulsar_subscription_msg_throughput_out",
        "pulsar_subscription_unacked_messages", "pulsar_out_bytes_total", "pulsar_out_messages_total",
    ),
    "cluster, namespace": ("pulsar_topics_count",),
    "cluster, instance": (
        "pulsar_version_info", "pulsar_ml_cache_evictions", "pulsar_ml_cache_hits_rate", "pulsar_ml_cache_hits_throughput",
        "pulsar_ml_cache_misses_rate", "pulsar_ml_cache_misses_throughput", "pulsar_ml_cache_used_size",
        "pulsar_lb_cpu_usage", "pulsar_lb_memory_usage", "pulsar_lb_bandwidth_in_usage", "pulsar_lb_bandwidth_out_usage",
    ),
    "job, instance": (
        "bookie_SERVER_STATUS", "bookie_ledgers_count", "bookie_entries_count", "bookie_ledger_writable_dirs",
        "bookie_write_cache_size", "bookie_read_cache_size", "bookie_journal_JOURNAL_QUEUE_SIZE",
        "bookie_journal_JOURNAL_CB_QUEUE_SIZE", "bookie_journal_JOURNAL_FORCE_WRITE_QUEUE_SIZE",
        "bookie_ACTIVE_ENTRY_LOG_TOTAL", "bookie_ACTIVE_LEDGER_TOTAL", "bookkeeper_server_ADD_ENTRY_BLOCKED",
        "bookkeeper_server_ADD_ENTRY_IN_PROGRESS", "bookkeeper_server_READ_ENTRY_BLOCKED",
        "bookkeeper_server_READ_ENTRY_IN_PROGRESS", "process_cpu_seconds_total",
    ),
}  # fmt: skip
"""Gauges, by the labels that panels group them by."""
RATES = (
    "pulsar_in_bytes_total", "pulsar_in_messages_total", "pulsar_out_bytes_total", "pulsar_out_messages_total",
    "bookie_WRITE_BYTES", "bookie_READ_BYTES", "bookie_read_cache_hits", "bookie_read_cache_misses",
    "bookie_RECLAIMED_COMPACTION_SPACE_BYTES", "bookie_DELETED_LEDGER_TOTAL", "bookie_DELETED_LEDGER_COUNT",
    "bookie_MAJOR_COMPACTION_TOTAL",
    "bookie_MINOR_COMPACTION_TOTAL", "bookie_MINOR_COMPACTION_COUNT",
    'bookie_journal_JOURNAL_ADD_ENTRY_count{success="true"}', 'bookie_journal_JOURNAL_SYNC_count{success="true"}',
    'bookkeeper_server_ADD_ENTRY_count{success="true"}', "bookkeeper_server_ADD_ENTRY_REQUEST_count",
    'bookkeeper_server_READ_ENTRY_count{success="true"}', "bookkeeper_server_READ_ENTRY_REQUEST_count",
    'auditor_NUM_UNDER_REPLICATED_LEDGERS_count{success="true"}', "replication_worker_NUM_BYTES_READ_count",
    'replication_worker_NUM_BYTES_READ_sum{success="true"}', 'replication_worker_NUM_BYTES_WRITTEN_sum{success="true"}',
    "replication_worker_NUM_ENTRIES_READ", "replication_worker_NUM_ENTRIES_WRITTEN",
)  # fmt: skip
"""Counters, of which panels show the growth."""
AS_THEY_ARE = (
    'pulsar_broker_publish_latency{cluster=~".+", quantile="0.99"}',
    'pulsar_instance_publish_latency{cluster=~".+", quantile="1.0"}',
    'bookie_journal_JOURNAL_ADD_ENTRY{success="true", quantile="0.99"}',
    'bookie_journal_JOURNAL_SYNC{success="true", quantile="0.5"}',
    'bookkeeper_server_ADD_ENTRY{success="true", quantile="0.99"}',
    'bookkeeper_server_ADD_ENTRY_REQUEST{success="true", quantile="0.99"}',
)


@dataclass(frozen=True, slots=True)
class Scrape:
    """What one process told at a time."""

    at_ms: int
    labels: Mapping[str, str]
    text: str


def stock_queries() -> list[str]:
    sums = [f"sum({name}) by ({labels})" for labels, names in SUMS.items() for name in names]
    return [*sums, *(f"sum(rate({name}[5m])) by (job, instance)" for name in RATES), *AS_THEY_ARE]


def board_queries() -> list[str]:
    """Of all panels of the boards in deploy/."""
    boards = [json.loads(path.read_text()) for path in sorted((DEPLOY / "grafana" / "boards").glob("*.json"))]
    return [target["expr"] for board in boards for panel in board["panels"] for target in panel["targets"]]


def scrape(placed: Mapping[str, str], turn: int = 0) -> list[Scrape]:
    """Of everybody whom deploy/prometheus.yml names; `placed`: where each of its targets is. With `up`. `turn`: 0, 1, 2..."""
    found = []
    for job in yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"]:
        for target in (target for where in job["static_configs"] for target in where["targets"]):
            with urllib.request.urlopen(f"http://{placed[target]}/metrics", timeout=60) as answer:
                text = answer.read().decode() + "up 1\n"
            found.append(Scrape(BEGAN_MS + turn * INTERVAL_MS, {"job": job["job_name"], "instance": target}, text))
    return found


def targets() -> list[str]:
    jobs = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"]
    return [target for job in jobs for where in job["static_configs"] for target in where["targets"]]


def built() -> Path:
    """The program; made anew when its source has changed. Go keeps what it has compiled."""
    BUILD.mkdir(exist_ok=True)
    binary = BUILD / "promql"
    run_tool(["go", "build", "-o", str(binary), "."], PROGRAM, BUILD_SECONDS_MAX)
    return binary


def asked(binary: Path, scrapes: Sequence[Scrape], queries: Sequence[str], rules: Sequence[Path] = ()) -> dict[str, Any]:
    """`results`, one for each query, and `rule_errors`."""
    question = {
        "scrapes": [{"at_ms": one.at_ms, "labels": dict(one.labels), "text": one.text} for one in scrapes],
        "queries": list(queries),
        "at_ms": max((one.at_ms for one in scrapes), default=BEGAN_MS) + 1,
        "rules": [str(path) for path in rules],
    }
    done = subprocess.run(
        [str(binary)], input=json.dumps(question), capture_output=True, text=True, timeout=120, env=os.environ, check=False
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def without_data(binary: Path, scrapes: Sequence[Scrape], queries: Sequence[str]) -> list[str]:
    """Queries that give nothing, or cannot be evaluated, with why."""
    results = asked(binary, scrapes, queries)["results"]
    pairs = zip(queries, results, strict=True)
    return [f"{query}: {result['error'] or 'no data'}" for query, result in pairs if result["error"] or not result["series"]]


def metric_names(expression: str) -> set[str]:
    """For rules, whose expressions give nothing while all is well."""
    bare = re.sub(r'\{[^}]*\}|\[[^]]*\]|by \([^)]*\)|"[^"]*"', " ", expression)
    return {word for word in re.findall(r"[A-Za-z_]\w*", bare) if "_" in word or word == "up"}
