"""Metrics of a bookie in Prometheus' text format. Names are Apache's where it has the same figure.

Everything here is read from what the bookie keeps anyway: nothing is counted on the way of an add for it.
"""

from collections.abc import Iterable, Iterator

from bookie.bookie import Bookie
from bookie.storage.compaction_plan import LogUse
from bookie.striped_bookie import AnyBookie
from ports.disk import DiskUsage

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Sample = tuple[str, str, float]
"""Name, kind (gauge or counter), value."""


def metrics_text(bookie: AnyBookie, usage: DiskUsage, connections: int) -> str:
    samples = [
        ("bookie_SERVER_STATUS", "gauge", 0 if bookie.read_only_reason else 1),
        ("bookie_ledger_writable_dirs", "gauge", sum(not stripe.read_only_reason for stripe in bookie.stripes)),
        ("bookie_ledger_dirs_total_bytes", "gauge", usage.total_bytes),
        ("bookie_ledger_dirs_free_bytes", "gauge", usage.free_bytes),
        ("bookkeeper_server_ACTIVE_CONNECTIONS", "gauge", connections),
        *_sum(_samples(stripe) for stripe in bookie.stripes),
    ]
    return "".join(f"# TYPE {name} {kind}\n{name} {value:g}\n" for name, kind, value in samples)


def _samples(stripe: Bookie) -> Iterator[Sample]:
    sizes = stripe.sizes()
    yield "bookie_ledgers_count", "gauge", sizes.ledgers
    yield "bookie_write_cache_size", "gauge", sizes.memtable_bytes
    yield "bookie_journal_JOURNAL_WRITE_BYTES", "counter", sizes.journal_bytes
    yield "bookie_journal_JOURNAL_NUM_FLUSHES", "counter", sizes.journal_frames
    yield from _log_samples(sizes.logs)
    counts, scrub = stripe.compactor.counts, stripe.scrub.counts
    yield "bookie_gc_COMPACTION_COUNT", "counter", counts.runs
    yield "bookie_gc_COMPACTION_FAILURES", "counter", counts.failures
    yield "bookie_gc_COMPACTED_ENTRY_LOG_COUNT", "counter", counts.logs_compacted
    yield "bookie_gc_COMPACTION_COPIED_BYTES", "counter", counts.bytes_copied
    yield "bookie_scrubber_RUNS", "counter", scrub.rounds
    yield "bookie_scrubber_DAMAGED_BLOCKS", "counter", scrub.blocks_damaged
    yield "bookie_scrubber_REPAIRED_ENTRIES", "counter", scrub.entries_repaired


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
