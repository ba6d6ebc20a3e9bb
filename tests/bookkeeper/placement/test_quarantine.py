"""Quarantine of bookies that fail often."""

from random import Random

from bookkeeper.placement.quarantine import Quarantine, QuarantineRule
from tests.invariants import checked_after_each_step

checked_machines = checked_after_each_step(Quarantine)

RULE = QuarantineRule(errors_max=3, interval_seconds=60.0, quarantine_seconds=100.0)


def test_a_bookie_comes_into_quarantine_at_the_last_error_and_leaves_after_its_time() -> None:
    quarantine = Quarantine(RULE, Random(1))
    assert [quarantine.on_error("a", now) for now in (0.0, 1.0, 2.0)] == [False, False, True]
    assert quarantine.holds("a", 101.9)
    assert not quarantine.holds("b", 2.0)
    assert not quarantine.holds("a", 102.0)


def test_errors_of_an_earlier_interval_do_not_count() -> None:
    quarantine = Quarantine(RULE, Random(1))
    assert not any(quarantine.on_error("a", now) for now in (0.0, 1.0, 60.0, 61.0))
    assert quarantine.on_error("a", 62.0)


def test_errors_in_quarantine_are_not_counted() -> None:
    quarantine = Quarantine(RULE, Random(1))
    for now in (0.0, 1.0, 2.0, 3.0, 4.0, 5.0):
        quarantine.on_error("a", now)
    assert not quarantine.holds("a", 102.0)
    assert not quarantine.on_error("a", 103.0)


def test_without_a_rule_or_with_a_ratio_of_zero_no_bookie_is_held() -> None:
    for rule in (None, QuarantineRule(errors_max=1, ratio=0.0)):
        quarantine = Quarantine(rule, Random(1))
        assert not any(quarantine.on_error("a", float(now)) for now in range(20))
        assert not quarantine.holds("a", 20.0)
