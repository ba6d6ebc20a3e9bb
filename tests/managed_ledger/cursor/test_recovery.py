"""The newest entry of a cursor ledger that is a state counts; segments after it are passed over, read back in growing steps."""

import pytest

from managed_ledger.cursor.holes.segment_format_v1 import EntryKind, Span, encode_marker, encode_segment
from managed_ledger.cursor.holes.segment_rows import MarkerRows
from managed_ledger.cursor.recovery import CursorRecovery, Found, NothingFound, ReadBack, Recovered
from managed_ledger.cursor.state import CursorState, encode_position
from managed_ledger.errors import BrokenMetadata
from wire.position import Position

SPAN = Span(Position(1, 0), Position(2, 0))
SEGMENT = encode_segment(EntryKind.SEGMENT, SPAN, {})
ADDITION = encode_segment(EntryKind.ADDITION, SPAN, {})


def position(entry_id: int) -> bytes:
    return encode_position(CursorState(Position(1, entry_id)), as_long_array=True)[0]


def marker(entry_id: int) -> bytes:
    return encode_marker("c", CursorState(Position(1, entry_id)), MarkerRows())


def recovered(entries: list[bytes]) -> tuple[Found, list[int]]:
    """The end of a recovery over a ledger of these entries, and how many entries each step read."""
    machine, steps = CursorRecovery("c", len(entries) - 1), list[int]()
    found = machine.begin()
    while isinstance(found, ReadBack):
        steps.append(found.last - found.first + 1)
        found = machine.entries_read(found.first, entries[found.first : found.last + 1])
    return found, steps


def test_a_ledger_without_entries_has_nothing() -> None:
    assert recovered([]) == (NothingFound(), [])


@pytest.mark.parametrize("state", [position(5), marker(5)], ids=["as Apache writes it", "a marker"])
def test_a_state_at_the_end_counts_after_one_read(state: bytes) -> None:
    found, steps = recovered([position(4), state])
    assert isinstance(found, Recovered)
    assert (found.state.mark_delete, found.passed, steps) == (Position(1, 5), 0, [1])


def test_segments_of_a_save_that_was_cut_short_are_passed_over() -> None:
    found, _ = recovered([marker(3), position(4), SEGMENT, ADDITION, SEGMENT])
    assert isinstance(found, Recovered)
    assert (found.state.mark_delete, found.passed) == (Position(1, 4), 3)


def test_a_ledger_of_segments_alone_has_no_state() -> None:
    assert recovered([SEGMENT] * 12)[0] == NothingFound()


def test_steps_back_grow_eightfold_up_to_1024_entries_and_read_each_entry_once() -> None:
    found, steps = recovered([position(9), *[SEGMENT] * 3000])
    assert steps == [1, 8, 64, 512, 1024, 1024, 3001 - 2633]
    assert isinstance(found, Recovered)
    assert found.passed == 3000


def test_an_entry_that_is_no_state_is_an_error_that_names_the_cursor() -> None:
    with pytest.raises(BrokenMetadata, match=r"^c: "):
        recovered([position(1), b"\xff\xff\xff"])
