"""Fragments of a ledger: their entries on each bookie, the runs to copy, and the spread of copies."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.ledger_metadata.codec import LedgerMetadata, LedgerState, Segment
from bookkeeper.repair.ledger.fragments import (
    Fragment,
    batches,
    copy_runs,
    could_spread_more,
    fragments_of,
    has_entry,
    open_ensemble,
    probed_entries,
    stored_ends,
)
from bookkeeper.write.quorum_tracker import Quorum
from tests.bookkeeper.repair.one_ledger import CLOSED, OPEN, A, B, C, D


@st.composite
def copies(draw: st.DrawFn) -> tuple[Quorum, Fragment, list[int]]:
    size = draw(st.integers(1, 6))
    quorum = Quorum(size, draw(st.integers(1, size)), 1)
    first = draw(st.integers(0, 20))
    fragment = Fragment(first, first - 1 + draw(st.integers(0, 30)), tuple(f"b{index}" for index in range(size)))
    return quorum, fragment, draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=size, unique=True))


@given(copies(), st.integers(1, 7))
def test_the_runs_to_copy_are_the_entries_that_the_write_sets_name_each_once(
    world: tuple[Quorum, Fragment, list[int]], count_max: int
) -> None:
    quorum, fragment, indexes = world
    wanted = {
        (entry_id, index)
        for entry_id in range(fragment.first_entry_id, fragment.last_entry_id + 1)
        for index in quorum.write_set(entry_id)
        if index in indexes
    }
    runs = list(copy_runs(quorum, fragment, indexes, count_max))
    found = [
        (entry_id, index)
        for run in runs
        for entry_id in range(run.first_entry_id, run.first_entry_id + run.count)
        for index in run.indexes
    ]
    assert len(found) == len(set(found))
    assert set(found) == wanted
    assert [run.first_entry_id for run in runs] == sorted(run.first_entry_id for run in runs)
    assert all(1 <= run.count <= count_max for run in runs)
    together = list(batches(iter(runs), count_max))
    assert [run for batch in together for run in batch] == runs
    assert all(sum(run.count for run in batch) <= count_max for batch in together)


@given(copies(), st.integers(0, 100))
def test_entries_probed_at_a_bookie_are_its_own_with_the_first_and_the_last_among_them(
    world: tuple[Quorum, Fragment, list[int]], percentage: int
) -> None:
    quorum, fragment, _ = world
    for index in range(quorum.ensemble_size):
        held = [
            entry_id
            for entry_id in range(fragment.first_entry_id, fragment.last_entry_id + 1)
            if index in quorum.write_set(entry_id)
        ]
        assert [entry_id for entry_id in held if not has_entry(quorum, entry_id, index)] == []
        probed = probed_entries(quorum, fragment, index, percentage, Random(1).random)
        assert stored_ends(quorum, fragment, index) == ((held[0], held[-1]) if held else None)
        assert set(probed) <= set(held)
        assert probed == sorted(set(probed))
        assert probed[:1] == held[:1]
        assert probed[-1:] == held[-1:]
        if percentage == 100:
            assert probed == held


@pytest.mark.parametrize(("between", "count"), [(99, 9), (100, 10)])
def test_one_entry_of_each_equal_part_is_probed(between: int, count: int) -> None:
    """Ten percent; the last one of each part, by this chance."""
    fragment = Fragment(7, 8 + between, ("a:1",))
    probed = probed_entries(Quorum(1, 1, 1), fragment, 0, 10, lambda: 0.999)
    ends = [7 + between * part // count for part in range(1, count + 1)]
    assert probed == [7, *ends, 8 + between]


def test_a_run_to_copy_of_a_striped_fragment_is_no_longer_than_asked_wherever_it_begins() -> None:
    fragment = Fragment(6, 17, ("a:1", "b:1", "c:1"))
    runs = list(copy_runs(Quorum(3, 2, 2), fragment, [0], 1))
    assert [(run.first_entry_id, run.count) for run in runs] == [(at, 1) for at in (6, 8, 9, 11, 12, 14, 15, 17)]


def test_a_fragment_is_a_segment_whose_end_is_known() -> None:
    assert fragments_of(OPEN) == [Fragment(0, 9, (A, B, C))]
    assert open_ensemble(OPEN) == (A, B, D)
    assert fragments_of(CLOSED) == [Fragment(0, 9, (A, B, C)), Fragment(10, 19, (A, B, D))]
    assert open_ensemble(CLOSED) == ()
    assert fragments_of(OPEN.closed(9, 500))[1] == Fragment(10, 9, (A, B, D)), "nothing came after the change"
    assert fragments_of(replace(OPEN, state=LedgerState.IN_RECOVERY)) == fragments_of(OPEN)


def test_copies_in_one_rack_are_told_where_there_are_more_racks() -> None:
    racks = {A: "/1", B: "/1", C: "/2", D: "/2"}
    assert could_spread_more(CLOSED, racks.__getitem__, 2)
    spread = LedgerMetadata(2, 2, 2, (Segment(0, (A, C)),))
    assert not could_spread_more(spread, racks.__getitem__, 2)
    assert not could_spread_more(CLOSED, racks.__getitem__, 1)
