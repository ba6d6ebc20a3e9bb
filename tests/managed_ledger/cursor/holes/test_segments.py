"""The segments of a cursor's holes by themselves: what is known for certain while some of them are on disk only."""

from random import Random
from typing import Any

import pytest
from pyroaring import BitMap
from sortedcontainers import SortedDict

from managed_ledger.cursor.acknowledgements import Acknowledgements
from managed_ledger.cursor.holes.segment_cache import HoleCache
from managed_ledger.cursor.holes.segment_format_v1 import EntryKind, Span, encode_segment
from managed_ledger.cursor.holes.segment_rows import MarkerRows
from managed_ledger.cursor.holes.segment_save import Write
from managed_ledger.cursor.holes.segment_spans import FIRST, containers
from managed_ledger.cursor.holes.segments import HolePages
from managed_ledger.cursor.recovery import CursorRecovery, NothingFound, ReadBack
from managed_ledger.cursor.state import CursorState, StoredSegment
from managed_ledger.ledgers.sequence import LedgerSequence
from tests.invariants import checked_after_each_step
from wire.position import Position

checked_machines = checked_after_each_step(HoleCache, HolePages, MarkerRows)


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


def test_the_last_place_before_a_segment_that_is_not_in_memory_is_known() -> None:
    pages = stored((3, 10))
    assert pages.is_known(3, 9)
    assert not pages.is_known(3, 10)


def test_a_segment_at_which_mark_delete_stops_is_wanted_when_it_is_not_in_memory() -> None:
    pages = stored((3, 10))
    pages.want_at(3, 9)
    assert not pages.wanted
    pages.want_at(3, 10)
    assert list(pages.wanted) == [Position(3, 10)]


def test_a_mark_delete_that_runs_up_to_a_segment_on_disk_asks_for_it() -> None:
    ledgers = LedgerSequence()
    ledgers.add_closed(1, 100, 100, 1)
    cursor = Acknowledgements(ledgers, Position(1, -1))
    cursor.restore({}, (), [StoredSegment(Position(1, 5), 7, -1, 10, 2, 40)])
    cursor.acknowledge_entries(1, BitMap(range(5)))
    assert cursor.mark_delete == Position(1, 4)
    assert cursor.holes.pages is not None
    assert list(cursor.holes.pages.wanted) == [Position(1, 5)]


def test_a_loaded_segment_that_is_not_used_is_evictable_before_any_save() -> None:
    pages = stored((3, 0))
    pages.loaded(Position(3, 0), {3: BitMap([1, 2])}, {}, is_whole=True)
    assert pages.absent == 0
    assert pages.evict(Position(3, 0))
    assert pages.absent == 1


def test_ranges_are_counted_once_each_while_there_is_one_segment() -> None:
    pages = HolePages(SortedDict({3: BitMap([1, 3, 5])}))
    assert pages.ranges_at_least() == 3
    assert pages.may_fit(3)
    assert not pages.may_fit(2)


def test_ranges_on_disk_that_may_touch_those_before_them_may_fit() -> None:
    """Two stored ranges, of which the first may go on from the segment before: there may be one."""
    assert stored((3, 0)).may_fit(1)
    assert not stored((3, 0)).may_fit(0)


def saved(pages: HolePages, entry_id: int) -> list[Write]:
    plan = pages.plan(CursorState(Position(1, -1)), whole=False)
    pages.stored(plan, range(entry_id, entry_id + len(plan.writes)))
    return list(plan.writes)


def grown(pages: HolePages, known: Any, fresh: BitMap) -> None:
    known.setdefault(3, BitMap()).update(fresh)
    pages.acknowledged(3, fresh)


def test_an_addition_holds_what_was_acknowledged_since_the_segment_was_written() -> None:
    known: Any = SortedDict()
    pages = HolePages(known)
    grown(pages, known, BitMap(range(0, 4000, 2)))
    assert [write.kind for write in saved(pages, 0)] == [EntryKind.SEGMENT]
    grown(pages, known, BitMap([5001]))
    assert [write.kind for write in saved(pages, 1)] == [EntryKind.ADDITION]
    found = pages.segment(FIRST)
    assert found is not None
    assert found.added == {3: BitMap([5001])}


def test_a_segment_that_grew_by_more_than_a_small_part_is_written_whole() -> None:
    known: Any = SortedDict()
    pages = HolePages(known)
    grown(pages, known, BitMap(range(0, 400, 2)))
    saved(pages, 0)
    grown(pages, known, BitMap(range(401, 801, 2)))
    assert [write.kind for write in saved(pages, 1)] == [EntryKind.SEGMENT]


def test_a_cursor_that_is_no_more_gives_its_room_in_the_cache_back() -> None:
    cache, kept, gone = HoleCache(1000), stored((3, 0)), stored((3, 0))
    cache.used(kept, Position(3, 0), 10)
    cache.used(gone, Position(3, 0), 30)
    cache.forget(gone)
    assert (len(cache), cache.size_bytes) == (1, 10)


def test_a_mark_delete_in_a_segment_that_is_in_memory_wants_nothing() -> None:
    pages = stored((3, 0), (4, 0))
    pages.loaded(Position(3, 0), {3: BitMap([1, 2])}, {}, is_whole=True)
    pages.wanted.clear()
    assert pages.removed_through(Position(3, 0)) == 0
    assert not pages.wanted
    before = stored((3, 0), (3, 10))
    assert before.removed_through(Position(3, 9)) == 10
    assert not before.wanted, "it stands before the segment, and may never come to it"


def test_one_save_rewrites_segments_within_its_room_and_the_others_get_additions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Much has changed in each of them, but not so much that an addition would be larger."""
    monkeypatch.setattr("managed_ledger.cursor.holes.segments.REWRITE_BYTES", 10_000)
    known: Any = SortedDict()
    pages, chance = HolePages(known), Random(1)

    def acknowledge(count: int, entry_id: int) -> list[EntryKind]:
        for ledger_id in range(3, 9):
            fresh = BitMap(chance.sample(range(60_000), count))
            known.setdefault(ledger_id, BitMap()).update(fresh)
            pages.acknowledged(ledger_id, fresh)
        return [write.kind for write in saved(pages, entry_id)]

    assert acknowledge(15_000, 0) == [EntryKind.SEGMENT] * 6
    assert acknowledge(3500, 100) == [EntryKind.SEGMENT] + [EntryKind.ADDITION] * 5


def test_the_first_number_of_all_is_in_the_first_container() -> None:
    assert [first for first, _ in containers(BitMap([0]))] == [0]
    assert [first for first, _ in containers(BitMap([0, 1 << 17]))] == [0, 1 << 17]


def test_a_cursors_ledger_without_entries_or_without_a_marker_says_nothing() -> None:
    assert CursorRecovery("c", -1).begin() == NothingFound()
    reading = CursorRecovery("c", 0)
    assert reading.begin() == ReadBack(0, 0)
    segment = encode_segment(EntryKind.SEGMENT, Span(FIRST, Position(9, 0)), {3: BitMap([1])})
    assert reading.entries_read(0, [bytes(segment)]) == NothingFound()
