"""The segments of a cursor's holes by themselves: what is known for certain while some of them are on disk only."""

import pytest
from sortedcontainers import SortedDict

from managed_ledger.cursor.pages import HolePages
from managed_ledger.cursor.state import StoredSegment
from wire.position import Position


def stored(*starts: tuple[int, int]) -> HolePages:
    """Pages with a stored segment from each of these places on; none of them is in memory."""
    return HolePages(SortedDict(), [StoredSegment(Position(*start), 7, -1, 10, 2, 40) for start in starts])


@pytest.mark.parametrize("starts", [[(3, 0)], [(3, 0), (4, 0)], [(3, 0), (4, 0), (5, 0)]])
def test_nothing_is_known_from_the_first_segment_on_that_is_not_in_memory(starts: list[tuple[int, int]]) -> None:
    pages = stored(*starts)
    assert pages.is_known(2, 1 << 31)
    assert not pages.is_known(3, 0)
    assert not pages.is_known(9, 0)


def test_without_stored_segments_everything_is_known() -> None:
    assert stored().is_known(1 << 40, 0)


def test_mark_delete_in_a_segment_that_is_not_in_memory_wants_that_segment() -> None:
    pages = stored((3, 0), (4, 0))
    assert pages.removed_through(Position(3, 4)) == 0
    assert list(pages.wanted) == [Position(3, 0)]
    assert pages.removed_through(Position(4, 0)) == 10
    assert list(pages.wanted) == [Position(4, 0)]
