"""PlacedEntries: where in entry logs entries of a ledger are, for who reads these files without the bookie."""

from collections.abc import Sequence
from dataclasses import dataclass

from bookie.memtable import Memtable
from bookie.reading import first_newer
from bookie.storage.block_v1 import BlockTable, DamagedBlock
from bookie.storage.span import Span
from bookie.storage.storage import LedgerStorage


@dataclass(frozen=True, slots=True)
class PlacedEntries:
    """Of `table`'s block, which begins at `place` of the file, those from `first_entry_id` to before `end_entry_id`."""

    path: str
    place: int
    table: BlockTable
    first_entry_id: int
    end_entry_id: int


async def placed_entries(
    storage: LedgerStorage, tables: Sequence[Memtable], ledger_id: int, first_entry_id: int, end_entry_id: int
) -> list[PlacedEntries]:
    """Of [first, end) those that can be read there; nothing from the first entry on that a memtable has, which may be newer."""
    end = min(end_entry_id, first_newer(tables, ledger_id, -1))
    found = []
    for span in storage.sound_spans(ledger_id, first_entry_id, end):
        try:
            table = await storage.table(ledger_id, span)
        except (OSError, DamagedBlock):
            continue  # whoever asks the bookie itself for these is told what is wrong
        found.append(_placed(storage.log_path(span), span, table, first_entry_id, end))
    return found


def _placed(path: str, span: Span, table: BlockTable, first_entry_id: int, end_entry_id: int) -> PlacedEntries:
    first, end = max(first_entry_id, span.first_entry_id), min(end_entry_id, span.last_entry_id + 1)
    return PlacedEntries(path, span.offset, table, first, end)
