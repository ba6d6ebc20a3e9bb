"""PersistentTopicInternalStats: the ledgers of a log and the places of its cursors, as Apache's JSON.

Differences from Apache's: `entriesAddedCounter` counts the entries that are there, not those added since the topic was loaded,
and `messagesConsumedCounter` goes with it; `numberOfEntriesSinceFirstNotAckedMessage` is the backlog without acknowledged
entries; `cursorLedgerLastEntry` is -1 until this process has written to the cursor's ledger; reads under way are left out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from managed_ledger.contract import HoleStats, LedgerFacts, ManagedCursor, ManagedLedger, Skipped, ranges
from metadata.paths import decode_name
from ports.loop.slices import in_slices
from ports.loop.taking_apart import items_taken_apart

from ...topic.statistics.compaction_stats import CompactedLedgerFacts
from ...topic.statistics.topic_stats import SubscriptionStats
from ..rest.json_texts import ENCODER, LARGE, Written
from .compactions import compacted_ledger_json

_RANGES_SHOWN_MAX = 10_000
"""Ranges, and partly acknowledged batches, shown of one cursor: as many as Apache ever keeps. Text of millions of ranges would
stop the process for seconds."""

_UNSTORED_CURSOR = {
    "waitingReadOp": False,
    "pendingReadOps": 0,
    "messagesConsumedCounter": 0,
    "cursorLedger": 0,
    "cursorLedgerLastEntry": 0,
    "active": False,
    "numberOfEntriesSinceFirstNotAckedMessage": 0,
    "totalNonContiguousDeletedMessagesRange": 0,
    "subscriptionHavePendingRead": False,
    "subscriptionHavePendingReplayRead": False,
}


async def internal_stats_json(
    log: ManagedLedger,
    compacted: CompactedLedgerFacts | None = None,
    subscriptions: Mapping[str, SubscriptionStats] | None = None,
    schema_ledgers: Sequence[tuple[int, int, int]] = (),
) -> dict[str, Any]:
    """`subscriptions` say where dispatchers are, of which the log knows nothing, and leave memory one by one if the caller has
    none of them; `schema_ledgers`: id, entries and bytes of those in which the topic's schemas are."""
    ledgers = log.ledgers()
    current = ledgers[-1] if ledgers and ledgers[-1].is_open else None
    told, waiting, is_written = dict(subscriptions or {}), 0, len(log.cursors) > LARGE
    cursors: dict[str, Any] = Written() if is_written else {}
    del subscriptions
    async for name, cursor in in_slices(items_taken_apart(log.cursors)):
        one = _cursor(cursor, ledgers, log, told.pop(decode_name(name), None))
        waiting += one["waitingReadOp"]
        cursors[name] = ENCODER.encode(one) if is_written else one
    return {
        "entriesAddedCounter": log.entry_count,
        "numberOfEntries": log.entry_count,
        "totalSize": log.size_bytes,
        "currentLedgerEntries": 0 if current is None else current.entries,
        "currentLedgerSize": 0 if current is None else current.size_bytes,
        "lastLedgerCreatedTimestamp": _iso(log.last_ledger_created_ms),
        "waitingCursorsCount": waiting,
        "pendingAddEntriesCount": 0,
        "lastConfirmedEntry": str(log.last_confirmed),
        "state": "Terminated" if log.is_terminated else "LedgerOpened" if current else "ClosedLedger",
        "ledgers": [_ledger(ledger) for ledger in ledgers],
        "cursors": cursors,
        "properties": dict(log.properties),
        "compactedLedger": compacted_ledger_json(compacted),
        "schemaLedgers": [_schema_ledger(*each) for each in schema_ledgers],
        **_skipped(log.skipped),
    }


def unstored_stats_json(subscriptions: Iterable[str]) -> dict[str, Any]:
    """Internal stats of a non-persistent topic, as Apache's: its subscriptions, and no stored data."""
    counts = ("entriesAddedCounter", "numberOfEntries", "totalSize", "currentLedgerEntries", "currentLedgerSize")
    waiting = ("waitingCursorsCount", "pendingAddEntriesCount")
    return {**dict.fromkeys((*counts, *waiting), 0), "cursors": {name: dict(_UNSTORED_CURSOR) for name in subscriptions}}


def _iso(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _skipped(skipped: Skipped) -> dict[str, Any]:
    """Entries skipped as unreadable, shown only if there are any. Not Apache's; its clients ignore the member."""
    if skipped == Skipped():
        return {}
    counts = {
        "entries": skipped.entries,
        "ledgers": skipped.ledgers,
        "cursorEntries": skipped.cursor_entries,
        "cursorLedgers": skipped.cursor_ledgers,
        "cursors": skipped.cursor_nodes,
    }
    return {"skippedNonRecoverable": counts}


def _ledger(ledger: LedgerFacts) -> dict[str, Any]:
    """Ledger of the list; entries of the current one are shown as currentLedgerEntries only, as in Apache."""
    return {
        "ledgerId": ledger.ledger_id,
        "entries": 0 if ledger.is_open else ledger.entries,
        "size": 0 if ledger.is_open else ledger.size_bytes,
        "timestamp": ledger.closed_at_ms,
        "offloaded": False,
        "underReplicated": False,
    }


def _schema_ledger(ledger_id: int, entries: int, size_bytes: int) -> dict[str, Any]:
    return {"ledgerId": ledger_id, "entries": entries, "size": size_bytes, "offloaded": False, "underReplicated": False}


def _cursor(
    cursor: ManagedCursor, ledgers: Sequence[LedgerFacts], log: ManagedLedger, told: SubscriptionStats | None
) -> dict[str, Any]:
    stats, first, backlog = cursor.hole_stats(), cursor.first_unacknowledged(), cursor.backlog_entries()
    is_waiting = told is not None and told.is_waiting
    holes = (text for ledger in ledgers for text in _ranges(cursor, ledger.ledger_id))
    return {
        "markDeletePosition": str(cursor.mark_delete),
        **({"persistentMarkDeletePosition": str(cursor.persistent_mark_delete)} if cursor.durable else {}),
        "readPosition": (told.read_position if told is not None else "") or str(first),
        "waitingReadOp": is_waiting,
        "pendingReadOps": 0,
        "messagesConsumedCounter": max(0, log.entry_count - backlog),
        "cursorLedger": stats.ledger_id,
        "cursorLedgerLastEntry": stats.ledger_last_entry_id,
        "lastLedgerSwitchTimestamp": _iso(stats.ledger_switched_ms),
        "individuallyDeletedMessages": "[" + ",".join(islice(holes, _RANGES_SHOWN_MAX)) + "]",
        "totalNonContiguousDeletedMessagesRange": stats.ranges,
        "numberOfEntriesSinceFirstNotAckedMessage": backlog,
        "subscriptionHavePendingRead": is_waiting,
        "subscriptionHavePendingReplayRead": False,
        "state": "NoLedger" if cursor.durable and stats.ledger_id < 0 else "Open",
        "active": first >= log.active_from(),
        "properties": dict(cursor.properties),
        "cursorProperties": dict(cursor.cursor_properties),
        **_segments(stats),
        **_parts(cursor),
    }


def _parts(cursor: ManagedCursor) -> dict[str, Any]:
    """Batches acknowledged in part, shown only if there are any: their ack sets, words of 64 bits in which 1 is a message that
    is left, and their number if not all are shown. Not Apache's."""
    if not cursor.has_batch_indexes():
        return {}
    found = islice(cursor.partly_acknowledged(), _RANGES_SHOWN_MAX)
    shown = {str(position): list(words) for position, words in found}
    return {"partlyAcknowledged": {"batches": cursor.partly_acknowledged_count(), "left": shown}}


def _segments(stats: HoleStats) -> dict[str, Any]:
    """Segments of a cursor, told only when its holes are, or were, too many for Apache's format (docs/cursor-segments.md)."""
    if not (stats.is_segmented or stats.switches or stats.returns):
        return {}
    counts = {
        "inUse": stats.is_segmented,
        "acknowledgedEntries": stats.acknowledged_entries,
        "segments": stats.segments,
        "residentSegments": stats.resident_segments,
        "switches": stats.switches,
        "returns": stats.returns,
        "loads": stats.loads,
        "saves": stats.saves,
        "lastSaveEntries": stats.saved_entries,
        "lastSaveBytes": stats.saved_bytes,
    }
    return {"holeSegments": counts}


def _ranges(cursor: ManagedCursor, ledger_id: int) -> Iterator[str]:
    """Each as Apache writes a range of positions: open at its start, closed at its end."""
    entry_ids = cursor.acknowledged_in(ledger_id)
    for first, last in ranges(entry_ids) if entry_ids else ():
        yield f"({ledger_id}:{first - 1}..{ledger_id}:{last}]"
