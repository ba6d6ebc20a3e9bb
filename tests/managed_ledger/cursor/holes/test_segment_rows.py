"""The packed rows of a marker are those of a sorted list of segments, whatever was put, replaced and taken out before."""

from hypothesis import given
from hypothesis import strategies as st

from managed_ledger.cursor.holes.segment_rows import ROW, MarkerRows
from managed_ledger.cursor.state import StoredSegment
from tests.invariants import checked_after_each_step
from wire.position import Position

checked_machines = checked_after_each_step(MarkerRows)

STARTS = st.builds(Position, st.integers(0, 2), st.integers(-1, 3))
CHANGES = st.lists(st.tuples(STARTS, st.integers(0, 99) | st.none()))


def segment(start: Position, entry_id: int) -> StoredSegment:
    return StoredSegment(start, entry_id, -1, 5, 2, 1000)


def unpacked(rows: MarkerRows) -> list[StoredSegment]:
    found = list(ROW.iter_unpack(rows.packed))
    return [StoredSegment(Position(ledger_id, first), *rest) for ledger_id, first, *rest in found]


@given(CHANGES)
def test_rows_are_those_of_a_sorted_list_after_any_changes(changes: list[tuple[Position, int | None]]) -> None:
    rows, naive = MarkerRows(), dict[Position, StoredSegment]()
    for start, entry_id in changes:
        if entry_id is None:
            rows.discard(start)
            naive.pop(start, None)
        else:
            naive[start] = segment(start, entry_id)
            rows.put(naive[start])
        assert len(rows) == len(naive)
    assert unpacked(rows) == [naive[start] for start in sorted(naive)]


def test_a_copy_stays_as_it_is_when_the_rows_change() -> None:
    rows = MarkerRows()
    rows.put(segment(Position(1, 0), 7))
    copy = rows.copy()
    rows.put(segment(Position(1, 0), 8))
    rows.put(segment(Position(2, 0), 9))
    assert unpacked(copy) == [segment(Position(1, 0), 7)]


def test_the_largest_numbers_of_a_segment_fit_a_row() -> None:
    rows, most = MarkerRows(), (1 << 63) - 1
    largest = StoredSegment(Position(most, most), most, most, (1 << 64) - 1, (1 << 32) - 1, (1 << 32) - 1)
    rows.put(largest)
    assert unpacked(rows) == [largest]
