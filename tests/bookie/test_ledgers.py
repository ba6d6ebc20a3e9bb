"""Ledgers as a bookie knows them: keys, fences, tombstones, and which of these are stored."""

from bookie.ledgers import TOMBSTONE_MS, Ledgers, LedgerState
from tests.invariants import checked_after_each_step
from wire.bookie.codes import BookieCode

checked_machines = checked_after_each_step(Ledgers)

A, B = b"a", b"b"


def test_the_first_key_counts_and_an_empty_one_is_replaced() -> None:
    ledgers = Ledgers()
    assert ledgers.refusal(1, A, recovery=False) is None
    assert ledgers.ensure(1, b"")
    assert ledgers.refusal(1, A, recovery=False) is None
    assert ledgers.ensure(1, A)
    assert not ledgers.ensure(1, A)
    assert ledgers.refusal(1, B, recovery=False) is BookieCode.EUA
    assert ledgers.refusal(1, A, recovery=True) is None


def test_a_fence_lets_only_recovery_add() -> None:
    ledgers = Ledgers()
    ledgers.fence(1)
    assert ledgers.refusal(1, A, recovery=False) is BookieCode.EFENCED
    assert ledgers.refusal(1, A, recovery=True) is None


def test_only_changes_since_the_last_time_are_stored() -> None:
    ledgers = Ledgers()
    ledgers.load([LedgerState(9, A)])
    assert not ledgers.has_changes()
    ledgers.ensure(1, A)
    ledgers.ensure(2, A)
    ledgers.delete(2, 5)
    changed, gone = ledgers.take_changes()
    assert ([state.ledger_id for state in changed], gone) == ([1], [2])
    assert ledgers.take_changes() == ([], [])
    ledgers.fence(1)
    ledgers.delete(9, 5)
    changed, gone = ledgers.take_changes()
    assert ([state.ledger_id for state in changed], gone) == ([1], [9])
    assert ledgers.live_ids() == [1]


def test_a_ledger_that_comes_back_after_it_was_deleted_is_stored_and_not_struck_out() -> None:
    ledgers = Ledgers()
    ledgers.ensure(1, A)
    ledgers.delete(1, 5)
    ledgers.ensure(1, A)
    changed, gone = ledgers.take_changes()
    assert ([state.ledger_id for state in changed], gone) == ([1], [])


def test_a_tombstone_lasts_a_week() -> None:
    ledgers = Ledgers()
    ledgers.fence(1)
    ledgers.delete(1, 1000)
    assert ledgers.get(1) is None
    assert ledgers.was_deleted(1)
    assert ledgers.refusal(1, A, recovery=True) is BookieCode.EFENCED
    ledgers.expire_tombstones(1000 + TOMBSTONE_MS)
    assert ledgers.was_deleted(1)
    ledgers.expire_tombstones(1001 + TOMBSTONE_MS)
    assert not ledgers.was_deleted(1)
    assert ledgers.take_changes() == ([], [1])
