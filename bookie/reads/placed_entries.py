"""PlacedEntries: places of a ledger's entries in entry logs, for readers of these files without the bookie."""

from collections.abc import Sequence
from dataclasses import dataclass

from bookie.adds.memtable import Memtable
from bookie.reads.reading import first_newer
from bookie.storage.block_v1 import BlockTable
from bookie.storage.span import Span
from bookie.storage.storage import LedgerStorage

SPANS_AT_ONCE = 1024
"""Spans whose tables are read together: a span of a striped ledger has only a few entries."""


@dataclass(frozen=True, slots=True)
class PlacedEntries:
    """Entries [first_entry_id, end_entry_id) of `table`'s block, which begins at `place` of the file."""

    path: str
    place: int
    table: BlockTable
    first_entry_id: int
    end_entry_id: int


async def placed_entries(
    storage: LedgerStorage, tables: Sequence[Memtable], ledger_id: int, ranges: Sequence[tuple[int, int]]
) -> list[PlacedEntries]:
    """Placed entries of each range [first, end); nothing from the first entry on that a memtable has, which may
    be newer."""
    newer = first_newer(tables, ledger_id, -1)
    wanted = [
        (span, first, min(end, newer))
        for first, end in ranges
        for span in storage.sound_spans(ledger_id, first, min(end, newer))
    ]
    found = []
    for start in range(0, len(wanted), SPANS_AT_ONCE):
        part = wanted[start : start + SPANS_AT_ONCE]
        of_part = await storage.tables(ledger_id, [span for span, _, _ in part])
        for (span, first, end), table in zip(part, of_part, strict=True):
            if table is not None:  # a reader that asks the bookie itself for these gets the error
                found.append(_placed(storage.log_path(span), span, table, first, end))
    return found


def _placed(path: str, span: Span, table: BlockTable, first_entry_id: int, end_entry_id: int) -> PlacedEntries:
    first, end = max(first_entry_id, span.first_entry_id), min(end_entry_id, span.last_entry_id + 1)
    return PlacedEntries(path, span.offset, table, first, end)
