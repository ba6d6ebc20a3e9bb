"""A segment as the cursor has it, and a save of the changes: the entries to append, then the marker. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyroaring import BitMap

from wire.position import Position

from ..state import CursorState, StoredSegment
from .segment_format_v1 import EntryKind
from .segment_rows import MarkerRows

NO_ENTRY = -1


class Segment:
    """One span of positions. `count`, `ranges` and `weight` are as of the last save; `added`: what its addition has."""

    __slots__ = ("added", "addition_id", "count", "entry_id", "is_resident", "ranges", "start", "weight")

    def __init__(self, start: Position) -> None:
        self.start = start
        self.entry_id = NO_ENTRY
        self.addition_id = NO_ENTRY
        self.added: dict[int, BitMap] = {}
        self.count = 0
        self.ranges = 0
        self.weight = 0
        self.is_resident = True

    def row(self) -> StoredSegment:
        return StoredSegment(self.start, self.entry_id, self.addition_id, self.count, self.ranges, self.weight)


@dataclass(frozen=True, slots=True)
class Write:
    """An entry to append; `payload` None: as it is in the entry `copy_of` of the old ledger."""

    segment: Segment
    kind: EntryKind
    payload: bytes | None
    copy_of: int = NO_ENTRY


@dataclass(frozen=True, slots=True)
class SavePlan:
    """A save: `writes` in order, then the marker. `kept`: the rows before it; those of `writes` change."""

    state: CursorState
    writes: Sequence[Write]
    kept: MarkerRows

    def rows(self, entry_ids: Sequence[int]) -> MarkerRows:
        """Rows of the marker, once the writes have their entry ids."""
        rows = self.kept.copy()
        base = NO_ENTRY
        for write, entry_id in zip(self.writes, entry_ids, strict=True):
            each = write.segment
            if write.kind is EntryKind.SEGMENT:
                base, addition_id = entry_id, NO_ENTRY
            else:
                base, addition_id = base if write.payload is None else each.entry_id, entry_id
            rows.put(StoredSegment(each.start, base, addition_id, each.count, each.ranges, each.weight))
        return rows
