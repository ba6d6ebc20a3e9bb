"""Rollover of the open ledger."""

from managed_ledger.append.rollover import RolloverLimits, rollover_limits
from managed_ledger.settings import ManagedLedgerSettings

LIMITS = RolloverLimits(entries_max=100, size_bytes_max=1000, age_s_min=600.0, age_s_max=3600.0)


def test_entries_or_bytes_fill_a_ledger_once_it_is_old_enough() -> None:
    assert LIMITS.is_full(100, 1, 600.0)
    assert LIMITS.is_full(1, 1000, 600.0)
    assert not LIMITS.is_full(99, 999, 3599.0)
    assert not LIMITS.is_full(1000, 10_000, 599.9)


def test_age_alone_fills_a_ledger_unless_there_is_no_bound() -> None:
    assert LIMITS.is_full(1, 1, 3600.0)
    unbounded = RolloverLimits(100, 1000, 600.0, None)
    assert not unbounded.is_full(1, 1, 1e9)


def test_settings_are_minutes_and_megabytes_and_zero_is_no_bound() -> None:
    limits = rollover_limits(
        ManagedLedgerSettings(
            managed_ledger_max_entries_per_ledger=7,
            managed_ledger_max_size_per_ledger_mbytes=2,
            managed_ledger_min_ledger_rollover_time_minutes=3,
            managed_ledger_max_ledger_rollover_time_minutes=4,
            managed_ledger_inactive_ledger_rollover_time_seconds=0,
        )
    )
    assert limits == RolloverLimits(7, 2 * 1024 * 1024, 180.0, 240.0, None)
