"""Compactions of a topic in stats, internal stats and metrics. Pure.

Names are Apache's (CompactionStats, LedgerInfo, TopicStats.printTopicStats of its prometheus package); all of its metrics here
are gauges, and there only for topics that were compacted since they were loaded. Buckets of latencies are not cumulative.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ...topic.statistics.compaction_stats import CompactedLedgerFacts, CompactionStats
from ..metrics.text import LATENCY_ENDS

COMPACTION = tuple(
    (f"pulsar_compaction_{name}", "gauge")
    for name in (
        "removed_event_count",
        "succeed_count",
        "failed_count",
        "duration_time_in_mills",
        "read_throughput",
        "write_throughput",
        "compacted_entries_count",
        "compacted_entries_size",
        *(f"latency_{end}" for end in (*LATENCY_ENDS, "sum", "count")),
    )
)


def compaction_row(stats: CompactionStats) -> Sequence[float]:
    """Values in the order of COMPACTION."""
    return (
        stats.removed_events,
        stats.succeeded,
        stats.failed,
        stats.duration_ms,
        stats.read_rate.per_second,
        stats.write_rate.per_second,
        stats.compacted_entries,
        stats.compacted_bytes,
        *stats.write_latencies,
        1000 * stats.write_seconds,
        sum(stats.write_latencies),
    )


def compaction_json(stats: CompactionStats) -> dict[str, int]:
    return {
        "lastCompactionRemovedEventCount": stats.last_removed_events,
        "lastCompactionSucceedTimestamp": stats.last_succeeded_ms,
        "lastCompactionFailedTimestamp": stats.last_failed_ms,
        "lastCompactionDurationTimeInMills": stats.last_duration_ms,
    }


def compacted_ledger_json(facts: CompactedLedgerFacts | None) -> Mapping[str, Any]:
    told = (-1, -1, -1) if facts is None else (facts.ledger_id, facts.entries, facts.size_bytes)
    return {**dict(zip(("ledgerId", "entries", "size"), told, strict=True)), "offloaded": False, "underReplicated": False}
