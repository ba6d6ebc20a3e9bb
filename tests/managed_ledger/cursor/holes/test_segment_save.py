"""The marker of a save names the entries that the save wrote, and keeps the rows of segments that it did not write."""

from managed_ledger.cursor.holes.segment_format_v1 import EntryKind
from managed_ledger.cursor.holes.segment_rows import ROW, MarkerRows
from managed_ledger.cursor.holes.segment_save import NO_ENTRY, SavePlan, Segment, Write
from managed_ledger.cursor.state import CursorState, StoredSegment
from wire.position import Position

START = Position(1, 0)


def saved(segment: Segment, *writes: Write, entry_ids: list[int]) -> list[tuple[int, int]]:
    """Entry of each segment and of its addition, as the marker of this save has them."""
    kept = MarkerRows()
    kept.put(segment.row())
    rows = SavePlan(CursorState(START), writes, kept).rows(entry_ids)
    return [(row[2], row[3]) for row in ROW.iter_unpack(rows.packed)]


def test_a_new_segment_is_stored_nowhere_and_has_nothing() -> None:
    assert Segment(START).row() == StoredSegment(START, NO_ENTRY, NO_ENTRY, 0, 0, 0)
    assert Segment(START).is_resident


def stored_at(entry_id: int, addition_id: int = NO_ENTRY) -> Segment:
    segment = Segment(START)
    segment.entry_id, segment.addition_id = entry_id, addition_id
    return segment


def test_a_segment_that_is_written_anew_has_no_addition_any_more() -> None:
    segment = stored_at(3, addition_id=4)
    assert saved(segment, Write(segment, EntryKind.SEGMENT, b"all"), entry_ids=[9]) == [(9, NO_ENTRY)]


def test_an_addition_leaves_the_segment_where_it_is() -> None:
    segment = stored_at(3)
    assert saved(segment, Write(segment, EntryKind.ADDITION, b"more"), entry_ids=[9]) == [(3, 9)]


def test_an_addition_that_is_copied_belongs_to_the_segment_that_was_copied_before_it() -> None:
    """Both move to a new cursor ledger, where the entry of the old ledger means nothing."""
    segment = stored_at(3, addition_id=4)
    copies = (Write(segment, EntryKind.SEGMENT, None, copy_of=3), Write(segment, EntryKind.ADDITION, None, copy_of=4))
    assert saved(segment, *copies, entry_ids=[0, 1]) == [(0, 1)]


def test_segments_that_the_save_does_not_write_keep_their_rows() -> None:
    other = Segment(Position(2, 0))
    assert saved(stored_at(3, addition_id=4), Write(other, EntryKind.SEGMENT, b""), entry_ids=[9]) == [(3, 4), (9, NO_ENTRY)]


def test_the_plan_leaves_the_rows_before_the_save_as_they_are() -> None:
    """A save that fails is planned again from them."""
    segment, kept = stored_at(3), MarkerRows()
    kept.put(segment.row())
    before = bytes(kept.packed)
    SavePlan(CursorState(START), [Write(segment, EntryKind.SEGMENT, b"")], kept).rows([9])
    assert bytes(kept.packed) == before
