"""Metrics of a bookie in Prometheus' text format, as BookKeeper's provider prints it. Names are Apache's where it has one.

Nothing here costs an add more than a statement for each run: the rest is read from what the bookie keeps anyway.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from bookie.bookie import Bookie
from bookie.server.request_stats import RequestStats
from bookie.sizes import Sizes
from bookie.storage.read_ahead import ReadAhead
from bookie.striped_bookie import AnyBookie
from bookie.upkeep.compaction_plan import LogUse
from ports.disk.disk_usage import DiskUsage
from ports.metrics.metric_help import head
from ports.metrics.op_stats import OpStats, quantile_ms

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
QUANTILES = (0.5, 0.75, 0.95, 0.99, 0.999, 0.9999, 1.0)
Sample = tuple[str, str, float]
"""Name, kind (gauge or counter), value."""


def metrics_text(
    bookie: AnyBookie, usages: Mapping[str, DiskUsage], connections: int, requests: RequestStats | None = None
) -> str:
    """`usages`: of the disks with the entry logs, by directory. `requests`: to the bookie's port; None where it has none."""
    requests = requests or RequestStats()
    samples = [
        ("bookie_SERVER_STATUS", "gauge", 0 if bookie.read_only_reason else 1),
        ("bookie_ledger_writable_dirs", "gauge", sum(not stripe.read_only_reason for stripe in bookie.stripes)),
        ("bookie_ledger_num_dirs", "gauge", len(bookie.stripes)),
        ("bookie_ledger_dirs_total_bytes", "gauge", sum(usage.total_bytes for usage in usages.values())),
        ("bookie_ledger_dirs_free_bytes", "gauge", sum(usage.free_bytes for usage in usages.values())),
        *((f"bookie_ledger_dir_{_in_name(path)}_usage", "gauge", 100 * _used(usage)) for path, usage in usages.items()),
        ("bookie_JOURNAL_DIRS", "gauge", len(bookie.stripes)),
        ("bookie_WRITE_BYTES", "counter", requests.written_bytes),
        ("bookie_READ_BYTES", "counter", requests.read_bytes),
        ("bookie_local_read_entries", "counter", requests.local_entries),
        ("bookkeeper_server_ACTIVE_CONNECTIONS", "gauge", connections),
        *_sum(_samples(stripe) for stripe in bookie.stripes),
    ]
    lines = [head(name, kind) + f"{name} {value:.17g}\n" for name, kind, value in samples]
    return "".join([*lines, *_summaries(bookie, requests)])


def _in_name(path: str) -> str:
    """LedgerDirsMonitor's, and what else Prometheus does not take in a name."""
    return re.sub(r"[^a-zA-Z0-9_]", "_", path)


def _used(usage: DiskUsage) -> float:
    return 1 - usage.free_bytes / max(1, usage.total_bytes)


def counters_text(counters: Mapping[str, int]) -> str:
    """Each by its name; those that Apache's auto-recovery keeps as a summary also as its sum and count."""
    text = "".join(head(name, "counter") + f"{name} {value}\n" for name, value in counters.items())
    return text + "".join(
        head(f"{name}_{end}", "counter") + f'{name}_{end}{{success="true"}} {counters[counted]}\n'
        for name, counts in _SUMMARIES.items()
        if name in counters
        for end, counted in (("sum", name), ("count", counts))
    )


_SUMMARIES = {
    "auditor_NUM_UNDER_REPLICATED_LEDGERS": "auditor_NUM_UNDER_REPLICATED_LEDGERS",
    "replication_worker_NUM_BYTES_READ": "replication_worker_NUM_ENTRIES_READ",
    "replication_worker_NUM_BYTES_WRITTEN": "replication_worker_NUM_ENTRIES_WRITTEN",
}
"""Name, and the counter that says how often something was added to it."""


def _summaries(bookie: AnyBookie, requests: RequestStats) -> Iterator[str]:
    now = requests.now()
    for operation, stats in requests.operations.items():
        for name in (operation, f"{operation}_REQUEST"):  # of the bookie's work and of the whole request: one here
            yield summary_text(f"bookkeeper_server_{name}", [stats], now)
    yield summary_text("bookie_add_entry", [requests.adds], now)  # of DbLedgerStorage, in Apache's
    yield summary_text("bookie_read_entry", [requests.reads], now)
    journals = [stripe.journal.stats for stripe in bookie.stripes]
    yield summary_text("bookie_journal_JOURNAL_ADD_ENTRY", [journal.added for journal in journals], now)
    yield summary_text("bookie_journal_JOURNAL_QUEUE_LATENCY", [journal.queued for journal in journals], now)
    yield summary_text("bookie_journal_JOURNAL_SYNC", [journal.synced for journal in journals], now)


def summary_text(name: str, parts: list[OpStats], now: float) -> str:
    """One summary over all parts, in milliseconds (PrometheusTextFormat.writeOpStat)."""
    lines = [head(name, "summary").rstrip("\n")]
    for part in parts:
        part.look(now)
    for success, latencies in (("false", [part.failed for part in parts]), ("true", [part.succeeded for part in parts])):
        label = f'success="{success}"'
        for quantile in QUANTILES:
            value = quantile_ms(latencies, quantile)
            lines.append(f'{name}{{{label},quantile="{quantile}"}} {"NaN" if value != value else repr(value)}')
        lines.append(f"{name}_count{{{label}}} {sum(part.count for part in latencies)}")
        lines.append(f"{name}_sum{{{label}}} {1000 * sum(part.seconds for part in latencies)}")
    return "\n".join(lines) + "\n"


def _samples(stripe: Bookie) -> Iterator[Sample]:
    sizes = stripe.sizes()
    yield "bookie_ledgers_count", "gauge", sizes.ledgers
    yield "bookie_entries_count", "gauge", sizes.entries
    yield "bookkeeper_server_ADD_ENTRY_IN_PROGRESS", "gauge", stripe.journal.queue_size
    yield "bookkeeper_server_ADD_ENTRY_BLOCKED", "gauge", sizes.adds_waiting
    yield "bookkeeper_server_READ_ENTRY_IN_PROGRESS", "gauge", sizes.reads_under_way
    yield "bookkeeper_server_READ_ENTRY_BLOCKED", "gauge", sizes.reads_waiting
    yield "bookie_journal_JOURNAL_FORCE_WRITE_QUEUE_SIZE", "gauge", 0  # one write and its fsync at a time: none waits for
    yield "bookie_journal_JOURNAL_CB_QUEUE_SIZE", "gauge", 0  # another, and who is answered is answered at once
    yield from _cache_samples(stripe.read_cache())
    yield from _collection_samples(stripe, sizes)
    yield "bookie_write_cache_size", "gauge", sizes.memtable_bytes
    yield "bookie_journal_JOURNAL_WRITE_BYTES", "counter", sizes.journal_bytes
    yield "bookie_journal_JOURNAL_NUM_FLUSHES", "counter", sizes.journal_frames
    yield "bookie_journal_JOURNAL_QUEUE_SIZE", "gauge", stripe.journal.queue_size
    yield from _log_samples(sizes.logs)
    counts, scrub = stripe.compactor.counts, stripe.scrub.counts
    yield "bookie_gc_COMPACTION_COUNT", "counter", counts.runs
    yield "bookie_gc_COMPACTION_FAILURES", "counter", counts.failures
    yield "bookie_gc_COMPACTED_ENTRY_LOG_COUNT", "counter", counts.logs_compacted
    yield "bookie_gc_COMPACTION_COPIED_BYTES", "counter", counts.bytes_copied
    yield "bookie_scrubber_RUNS", "counter", scrub.rounds
    yield "bookie_scrubber_DAMAGED_BLOCKS", "counter", scrub.blocks_damaged
    yield "bookie_scrubber_REPAIRED_ENTRIES", "counter", scrub.entries_repaired


def _cache_samples(cache: ReadAhead) -> Iterator[Sample]:
    yield "bookie_read_cache_size", "gauge", cache.size_bytes
    yield "bookie_read_cache_count", "gauge", cache.count
    yield "bookie_read_cache_hits", "counter", cache.hits
    yield "bookie_read_cache_misses", "counter", cache.misses
    yield "bookie_readahead_batch_count_count", "counter", cache.batches
    yield "bookie_readahead_batch_count_sum", "counter", cache.entries_ahead


def _collection_samples(stripe: Bookie, sizes: Sizes) -> Iterator[Sample]:
    """Under both names that Apache's bookies have had for each."""
    status = stripe.compactor.status()
    for name, kind, value in (
        ("ACTIVE_ENTRY_LOG", "gauge", len(sizes.logs)),
        ("ACTIVE_LEDGER", "gauge", sizes.ledgers),
        ("DELETED_LEDGER", "counter", stripe.deleted_ledgers),
        ("MAJOR_COMPACTION", "counter", status["majorCompactionCounter"]),
        ("MINOR_COMPACTION", "counter", status["minorCompactionCounter"]),
    ):
        assert isinstance(value, int)
        yield f"bookie_{name}_TOTAL", kind, value
        yield f"bookie_{name}_COUNT", kind, value
    yield "bookie_RECLAIMED_COMPACTION_SPACE_BYTES", "counter", stripe.compactor.counts.bytes_reclaimed
    yield "bookie_RECLAIMED_DELETION_SPACE_BYTES", "counter", stripe.compactor.counts.bytes_of_dead_logs
    yield "bookie_ACTIVE_ENTRY_LOG_SPACE_BYTES", "gauge", sum(use.log_bytes for use in sizes.logs)


def _log_samples(logs: Iterable[LogUse]) -> Iterator[Sample]:
    uses = list(logs)
    yield "bookie_gc_ACTIVE_ENTRY_LOG_COUNT", "gauge", len(uses)
    yield "bookie_gc_ACTIVE_ENTRY_LOG_SPACE_BYTES", "gauge", sum(use.log_bytes for use in uses)
    yield "bookie_gc_LIVE_ENTRY_LOG_SPACE_BYTES", "gauge", sum(use.live_bytes for use in uses)


def _sum(stripes: Iterable[Iterator[Sample]]) -> list[Sample]:
    """One sample for each name."""
    totals: dict[tuple[str, str], float] = {}
    for samples in stripes:
        for name, kind, value in samples:
            totals[name, kind] = totals.get((name, kind), 0) + value
    return [(name, kind, value) for (name, kind), value in totals.items()]
