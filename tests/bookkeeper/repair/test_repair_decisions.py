"""Decisions of repair: which entries a bookie should have, what a ledger lacks, when a bookie is lost, who waits."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.ledger_metadata.codec import LedgerMetadata, LedgerState, Segment
from bookkeeper.repair.auditor.election import winning_vote
from bookkeeper.repair.auditor.lost_bookies import LostBookies
from bookkeeper.repair.backlog import HELD_MAX, Action, Backlog
from bookkeeper.repair.copier import ByteRate
from bookkeeper.repair.fragments import (
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
from bookkeeper.repair.plan import FragmentPlan, Lack, LedgerChanged, LedgerPlan, asked_copies, plan_repair, with_bookies
from bookkeeper.repair.underreplication.tree import HeldLedger
from bookkeeper.write.quorum_tracker import Quorum
from tests.invariants import checked_after_each_step

checked_machines = checked_after_each_step(LostBookies, Backlog)

A, B, C, D = "a:1", "b:1", "c:1", "d:1"
OPEN = LedgerMetadata(3, 2, 2, (Segment(0, (A, B, C)), Segment(10, (A, B, D))))
CLOSED = OPEN.closed(19, 1000)


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
def test_what_is_read_at_a_bookie_are_entries_that_it_should_have_the_first_and_the_last_among_them(
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
def test_of_each_of_so_many_equal_parts_one_entry_is_read(between: int, count: int) -> None:
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


def test_incident_3239_an_empty_ledger_is_freed_of_a_lost_bookie_too() -> None:
    empty = LedgerMetadata(2, 2, 2, (Segment(0, (A, B)),)).closed(-1, 0)
    plan = plan_repair(empty, {B}, {})
    assert plan.fragments == (FragmentPlan(Fragment(0, -1, (A, B)), {0: Lack.LOST}),)
    assert list(copy_runs(Quorum(2, 2, 2), plan.fragments[0].fragment, [0], 10)) == []
    freed = with_bookies(empty, plan.fragments[0].fragment, {0: C})
    assert freed is not None
    assert freed.segments == (Segment(0, (C, B)),)


def test_what_is_lost_silent_or_lacking_is_to_be_repaired_and_an_open_segment_is_only_told() -> None:
    plan = plan_repair(OPEN, {A, B, D}, {(0, 1): Lack.SILENT})
    assert plan == LedgerPlan((FragmentPlan(Fragment(0, 9, (A, B, C)), {1: Lack.SILENT, 2: Lack.LOST}),), ())
    assert plan.failed_replicas == (B,), "C is not there: whether it is lost is not said here"
    assert asked_copies(OPEN, {A, B, D}) == [(Fragment(0, 9, (A, B, C)), 0), (Fragment(0, 9, (A, B, C)), 1)]
    plan = plan_repair(OPEN, {A, B, C}, {})
    assert plan == LedgerPlan((), (D,))
    assert not plan.is_whole
    assert plan_repair(CLOSED, {A, B, C, D}, {}).is_whole


def test_metadata_is_changed_only_where_it_is_still_what_was_copied() -> None:
    first, last = fragments_of(CLOSED)
    changed = with_bookies(CLOSED, first, {2: D})
    assert changed == replace(CLOSED, segments=(Segment(0, (A, B, D)), Segment(10, (A, B, D))))
    assert with_bookies(changed, first, {2: D}) is None, "the answer to the write was lost"
    for metadata, fragment, new in (
        (changed, first, {2: "e:1"}),  # somebody else was faster
        (replace(CLOSED, segments=CLOSED.segments[:1]), last, {2: C}),  # the segment is gone
        (CLOSED, first, {2: B}),  # it would have two copies
        (OPEN, last, {2: C}),  # it is not the end that was copied up to
        (CLOSED.closed(25, 1), last, {2: C}),
    ):
        assert metadata is not None
        with pytest.raises(LedgerChanged):
            with_bookies(metadata, fragment, new)


def test_copies_in_one_rack_are_told_where_there_are_more_racks() -> None:
    racks = {A: "/1", B: "/1", C: "/2", D: "/2"}
    assert could_spread_more(CLOSED, racks.__getitem__, 2)
    spread = LedgerMetadata(2, 2, 2, (Segment(0, (A, C)),))
    assert not could_spread_more(spread, racks.__getitem__, 2)
    assert not could_spread_more(CLOSED, racks.__getitem__, 1)


# Lost bookies


def test_a_lost_bookie_is_told_at_once_without_a_delay_and_after_it_with_one() -> None:
    lost = LostBookies(0.0)
    lost.on_present({A, B}, 0.0)
    assert not lost.is_due(1.0)
    lost.on_present({A}, 1.0)
    assert lost.is_due(1.0)
    lost.on_audited({A})
    assert not lost.is_due(2.0)
    lost = LostBookies(30.0)
    lost.on_present({A, B}, 0.0)
    lost.on_present({A}, 1.0)
    lost.on_present({A}, 20.0)
    assert not lost.is_due(30.9)
    assert lost.is_due(31.0)


def test_a_bookie_that_comes_back_in_time_was_not_lost_and_a_second_one_is_not_waited_for() -> None:
    lost = LostBookies(30.0)
    lost.on_present({A, B, C}, 0.0)
    lost.on_present({A, B}, 1.0)
    lost.on_present({A, B, C}, 20.0)
    assert lost.due_at is None
    assert (lost.delayed_count, lost.cancelled_count) == (1, 1)
    lost.on_present({A, B}, 40.0)
    lost.on_present({A}, 41.0)
    assert lost.is_due(41.0)


def test_an_auditor_that_was_just_elected_waits_for_the_bookie_that_restarts() -> None:
    lost = LostBookies(30.0)
    lost.on_named({A, B, C})
    lost.on_present({A, B}, 5.0)
    assert not lost.is_due(5.0)
    assert lost.due_at == 35.0


def test_setting_the_delay_again_asks_for_an_audit_and_another_delay_moves_it() -> None:
    lost = LostBookies(30.0)
    lost.on_present({A, B}, 0.0)
    lost.on_delay(30.0, 1.0)
    assert lost.is_due(1.0)
    lost.on_audited({A, B})
    lost.on_present({A}, 2.0)
    lost.on_delay(100.0, 3.0)
    assert lost.due_at == 103.0
    assert not lost.is_due(3.0)
    lost.on_interval()
    assert not lost.is_due(3.0), "the one that is lost keeps its delay"
    lost.on_delay(0.0, 4.0)
    assert lost.is_due(4.0)


# Election, backlog, rate


def test_the_lowest_number_is_the_auditor_whatever_the_order_of_the_names() -> None:
    assert winning_vote(["V_0000000010", "V_0000000009", "V_0000000011"]) == "V_0000000009"
    assert winning_vote(["V_10000000000", "V_9999999999"]) == "V_9999999999"
    assert winning_vote(["nonsense"]) is None


def test_a_ledger_that_fails_again_and_again_is_held_longer_each_time_up_to_a_bound() -> None:
    backlog = Backlog(320.0, 30.0)
    held, waits = HeldLedger(7, (), 0), []
    for _ in range(8):
        assert backlog.on_failed(held, 0.0)
        waits.append(backlog.next_at())
        assert backlog.take_due(waits[-1] or 0.0) is not None
    assert waits == [10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 320.0, 320.0]
    backlog.on_repaired(7)
    backlog.on_failed(held, 0.0)
    assert backlog.next_at() == 10.0


def test_an_open_ledger_is_closed_after_its_grace_and_what_is_due_first_comes_first() -> None:
    backlog = Backlog(320.0, 30.0)
    backlog.on_open(HeldLedger(1, (), 0), 0.0)
    backlog.on_failed(HeldLedger(2, (), 0), 0.0)
    assert backlog.take_due(9.0) is None
    due = [backlog.take_due(30.0), backlog.take_due(30.0), backlog.take_due(30.0)]
    assert [None if each is None else (each.held.ledger_id, each.action) for each in due] == [
        (2, Action.RELEASE),
        (1, Action.CLOSE),
        None,
    ]


def test_so_many_locks_are_held_and_none_after_the_session() -> None:
    backlog = Backlog(320.0, 30.0)
    kept = [backlog.on_failed(HeldLedger(number, (), 0), 0.0) for number in range(HELD_MAX + 2)]
    assert kept == [True] * HELD_MAX + [False, False]
    backlog.on_session_lost()
    assert backlog.held == []


def test_bytes_are_paid_for_by_waiting_and_idle_time_is_not_saved_up() -> None:
    rate = ByteRate(1000)
    assert rate.wait_after(500, 0.0) == 0.5
    assert rate.wait_after(500, 0.5) == 0.5
    assert rate.wait_after(1000, 100.0) == 1.0
    assert ByteRate(-1).wait_after(1 << 30, 0.0) == 0.0
