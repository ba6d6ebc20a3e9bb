"""Rollover: whether the open ledger is full and the next one begins (Apache: ManagedLedgerImpl.currentLedgerIsFull). Pure."""

from dataclasses import dataclass

from managed_ledger.settings import MEGABYTE, ManagedLedgerSettings


@dataclass(frozen=True, slots=True)
class RolloverLimits:
    """Entries or size make a ledger full, but not before `age_s_min`; its age alone does at `age_s_max` (None: never). One to
    which nothing was added for `idle_s_max`, and twice that at most, is closed (None: never)."""

    entries_max: int
    size_bytes_max: int
    age_s_min: float
    age_s_max: float | None
    idle_s_max: float | None = None

    def is_full(self, entries: int, size_bytes: int, age_s: float) -> bool:
        """Whether a ledger with entries is full; one without never is."""
        if self.age_s_max is not None and age_s >= self.age_s_max:
            return True
        return (entries >= self.entries_max or size_bytes >= self.size_bytes_max) and age_s >= self.age_s_min


def rollover_limits(settings: ManagedLedgerSettings) -> RolloverLimits:
    maximum = settings.managed_ledger_max_ledger_rollover_time_minutes
    idle = settings.managed_ledger_inactive_ledger_rollover_time_seconds
    return RolloverLimits(
        settings.managed_ledger_max_entries_per_ledger,
        settings.managed_ledger_max_size_per_ledger_mbytes * MEGABYTE,
        settings.managed_ledger_min_ledger_rollover_time_minutes * 60.0,
        maximum * 60.0 if maximum > 0 else None,
        float(idle) if idle > 0 else None,
    )
