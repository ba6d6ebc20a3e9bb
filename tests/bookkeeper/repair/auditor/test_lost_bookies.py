"""The delay after which an absent bookie counts as lost."""

from bookkeeper.repair.auditor.lost_bookies import LostBookies
from tests.invariants import checked_after_each_step

checked_machines = checked_after_each_step(LostBookies)


A, B, C, D = "a:1", "b:1", "c:1", "d:1"


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
