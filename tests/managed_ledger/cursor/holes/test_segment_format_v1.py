"""Segments of holes against a naive set of acknowledged messages, with restart at any point; and bugs that this has to find."""

import os
from typing import Any

import pytest
from pyroaring import BitMap
from sortedcontainers import SortedDict

from managed_ledger.cursor.acknowledgements import Acknowledgements
from managed_ledger.cursor.holes import segment_spans as spans
from managed_ledger.cursor.holes import segments as pages
from managed_ledger.cursor.holes.segment_save import Segment
from managed_ledger.cursor.holes.segments import HolePages
from managed_ledger.cursor.state import CursorState
from managed_ledger.ledgers.sequence import LedgerSequence
from wire.position import Position

from .segment_model import Model, tiny

SCHEDULES = int(os.environ.get("INTERPULSE_SCHEDULES", "400"))
"""All of them: INTERPULSE_SCHEDULES=50000 bin/test tests/managed_ledger/cursor/holes/test_segment_format_v1.py."""
STEPS = 25


def play(seed: int) -> None:
    with tiny():
        Model(seed).play(STEPS)


def test_a_cursor_with_segments_is_a_set_of_acknowledged_messages_restarted_at_any_point() -> None:
    for seed in range(SCHEDULES):
        try:
            play(seed)
        except BaseException as error:
            error.add_note(f"schedule {seed}")
            raise


def test_evicting_a_segment_from_before_a_reset_keeps_later_acknowledgements() -> None:
    """Schedule 1992: the cache let go of a segment from before the reset, and with it of acknowledgements from after it."""
    with tiny():
        cursor = Model(0).cursor
        cursor.reset(Position(2, -1))
        former = cursor.holes.begin_pages()
        cursor.acknowledge_entries(3, BitMap([0]))
        plan = former.plan(CursorState(cursor.mark_delete), whole=True)
        former.stored(plan, range(len(plan.writes)))
        cursor.reset(Position(2, -1))
        cursor.acknowledge_entries(3, BitMap([0]))
        assert former.evict(plan.writes[0].segment.start)
        assert cursor.is_acknowledged(Position(3, 0))
        cursor.check_invariants()


def visits_of_a_save(containers: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, dict[str, int]]:
    """Visits of a save of one more acknowledgement, with so many containers full of holes: segments, calls for single ones."""
    ledgers = LedgerSequence()
    ledgers.add_closed(1, 4 * containers, 4 * containers, 1)
    cursor = Acknowledgements(ledgers, Position(1, -1))
    cursor.acknowledge_entries(1, BitMap(range(1, 4 * containers, 2)))
    found = cursor.holes.begin_pages()
    save(found, cursor)
    cursor.acknowledge_entries(1, BitMap([4 * containers - 4]))
    calls = {"row": 0, "parts": 0, "span": 0}

    def counted(name: str, real: Any) -> Any:
        def call(*arguments: Any) -> Any:
            calls[name] += 1
            return real(*arguments)

        return call

    with monkeypatch.context() as patched:
        patched.setattr(Segment, "row", counted("row", Segment.row))
        patched.setattr(pages, "parts", counted("parts", spans.parts))
        patched.setattr(HolePages, "span", counted("span", HolePages.span))
        assert not found.may_fit(3)
        save(found, cursor)
    return len(found), calls


def save(found: HolePages, cursor: Acknowledgements) -> None:
    plan = found.plan(CursorState(cursor.mark_delete), whole=False)
    entry_ids = range(len(plan.writes))
    plan.rows(entry_ids)
    found.stored(plan, entry_ids)


def test_the_cost_of_a_save_depends_on_the_changes_not_on_the_number_of_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    with tiny():
        few, visits = visits_of_a_save(20, monkeypatch)
        many, visits_of_many = visits_of_a_save(200, monkeypatch)
    assert many > 9 * few > 50
    assert visits_of_many == visits
    assert max(visits.values()) < 12


def play_many() -> None:
    for seed in range(2000):
        play(seed)


def finds() -> None:
    with pytest.raises((AssertionError, KeyError)):
        play_many()


def test_a_lost_dirty_flag_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = HolePages.acknowledged

    def forgetful(self: HolePages, ledger_id: int, entry_ids: BitMap) -> None:
        if entry_ids.min() % 7:  # once in a while nobody notes that the segment changed
            real(self, ledger_id, entry_ids)

    monkeypatch.setattr(HolePages, "acknowledged", forgetful)
    finds()


def test_acknowledgements_of_a_failed_save_that_are_forgotten_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(self: HolePages, plan: object) -> None:
        self._in_flight, self.is_held = SortedDict(), False

    monkeypatch.setattr(HolePages, "failed", forgetful)
    finds()
