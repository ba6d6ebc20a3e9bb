"""Backlog of a replication worker: retries, grace and locks."""

from bookkeeper.repair.backlog import HELD_MAX, Action, Backlog
from bookkeeper.repair.underreplication.tree import HeldLedger
from tests.invariants import checked_after_each_step

checked_machines = checked_after_each_step(Backlog)


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


def test_a_bounded_number_of_locks_is_held_and_none_after_the_session() -> None:
    backlog = Backlog(320.0, 30.0)
    kept = [backlog.on_failed(HeldLedger(number, (), 0), 0.0) for number in range(HELD_MAX + 2)]
    assert kept == [True] * HELD_MAX + [False, False]
    backlog.on_session_lost()
    assert backlog.held == []
