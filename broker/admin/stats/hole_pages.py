"""All holes of one cursor, a page at a time, for callers that need them exactly: internal stats show only some of very many.

Not Apache's. A page has the acknowledgements from a position on, those before mark-delete included, at the moment when the page
is made; it names its end. Holes that are on disk only are loaded for it. Owns nothing, changes nothing.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from pyroaring import BitMap

from managed_ledger.contract import LedgerFacts, ManagedCursor, ranges
from wire.position import Position

RANGES_MAX = 10_000
"""Ranges, or batches in part, after which a page ends; a page has at most twice as many."""
_WINDOW_ENTRIES = 10_000


async def hole_page(cursor: ManagedCursor, ledgers: Sequence[LedgerFacts], start: Position) -> dict[str, Any]:
    """`next`: where the next page begins, "" where this one is the last. ManagedLedgerError: holes that cannot be read."""
    found: list[str] = []
    parts: dict[str, list[int]] = {}
    following = ""
    for ledger_id, first, last in _windows(ledgers, start):
        if len(found) >= RANGES_MAX or len(parts) >= RANGES_MAX:
            following = f"{ledger_id}:{first}"
            break
        await cursor.load_acknowledged(ledger_id, first, last)
        found += (
            f"({ledger_id}:{begin - 1}..{ledger_id}:{end}]" for begin, end in _acknowledged(cursor, ledger_id, first, last)
        )
        batches = cursor.partly_acknowledged(Position(ledger_id, first), Position(ledger_id, last))
        parts |= {str(position): list(words) for position, words in batches}
    return {"individuallyDeletedMessages": f"[{','.join(found)}]", "partlyAcknowledged": parts, "next": following}


def _windows(ledgers: Sequence[LedgerFacts], start: Position) -> Iterator[tuple[int, int, int]]:
    """Ledger, first and last entry of each."""
    for ledger in ledgers:
        if ledger.ledger_id < start.ledger_id:
            continue
        begin = max(0, start.entry_id) if ledger.ledger_id == start.ledger_id else 0
        for first in range(begin, ledger.entries, _WINDOW_ENTRIES):
            yield ledger.ledger_id, first, min(first + _WINDOW_ENTRIES, ledger.entries) - 1


def _acknowledged(cursor: ManagedCursor, ledger_id: int, first: int, last: int) -> Iterator[tuple[int, int]]:
    window = BitMap(range(first, last + 1))
    mark = cursor.mark_delete
    done = cursor.acknowledged_in(ledger_id) & window
    if mark >= Position(ledger_id, first):
        done |= window if mark.ledger_id > ledger_id else window & BitMap(range(first, mark.entry_id + 1))
    return ranges(done)
