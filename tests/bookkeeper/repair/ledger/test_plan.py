"""The plan of one ledger's repair."""

from dataclasses import replace

import pytest

from bookkeeper.ledger_metadata.codec import LedgerMetadata, Segment
from bookkeeper.repair.ledger.fragments import (
    Fragment,
    copy_runs,
    fragments_of,
)
from bookkeeper.repair.ledger.plan import FragmentPlan, Lack, LedgerChanged, LedgerPlan, asked_copies, plan_repair, with_bookies
from bookkeeper.write.quorum_tracker import Quorum
from tests.bookkeeper.repair.one_ledger import CLOSED, OPEN, A, B, C, D


def test_incident_3239_an_empty_ledger_is_freed_of_a_lost_bookie_too() -> None:
    empty = LedgerMetadata(2, 2, 2, (Segment(0, (A, B)),)).closed(-1, 0)
    plan = plan_repair(empty, {B}, {})
    assert plan.fragments == (FragmentPlan(Fragment(0, -1, (A, B)), {0: Lack.LOST}),)
    assert list(copy_runs(Quorum(2, 2, 2), plan.fragments[0].fragment, [0], 10)) == []
    freed = with_bookies(empty, plan.fragments[0].fragment, {0: C})
    assert freed is not None
    assert freed.segments == (Segment(0, (C, B)),)


def test_lost_and_silent_copies_are_to_be_repaired_and_an_open_segment_is_only_reported() -> None:
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
