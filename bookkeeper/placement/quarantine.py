"""Quarantine: bookies that failed often of late are not chosen for new entries for a while. Pure.

As BookKeeper's health check (BookieWatcherImpl.quarantineBookie), counted as errors come rather than by a timer. Bounds: a
few numbers for each bookie that failed within the last interval or is quarantined.
"""

from dataclasses import dataclass

from ports.rng import Rng


@dataclass(frozen=True, slots=True)
class QuarantineRule:
    """Number of errors within an interval that put a bookie in quarantine, and the likelihood. Seconds."""

    errors_max: int = 5
    interval_seconds: float = 60.0
    quarantine_seconds: float = 1800.0
    ratio: float = 1.0


class Quarantine:
    """Quarantine of one client. `now` in seconds, never going back. Without a rule it is always empty."""

    def __init__(self, rule: QuarantineRule | None, rng: Rng) -> None:
        self._rule, self._rng = rule, rng
        self._errors: dict[str, tuple[float, int]] = {}
        """Since when, and how many."""
        self._until: dict[str, float] = {}

    def on_error(self, bookie: str, now: float) -> bool:
        """An add or read failed there; whether it has come into quarantine by that."""
        rule = self._rule
        if rule is None or self.holds(bookie, now):
            return False
        since, count = self._errors.get(bookie, (now, 0))
        if now - since >= rule.interval_seconds:
            since, count = now, 0
        self._errors[bookie] = since, count + 1
        if count + 1 < rule.errors_max:
            return False
        del self._errors[bookie]
        if self._rng.random() >= rule.ratio:
            return False
        self._until[bookie] = now + rule.quarantine_seconds
        return True

    def holds(self, bookie: str, now: float) -> bool:
        until = self._until.get(bookie)
        if until is not None and now >= until:
            del self._until[bookie]
            return False
        return until is not None

    def check_invariants(self) -> None:
        """Check the invariants, for tests and simulations."""
        assert not self._errors.keys() & self._until.keys(), "errors of a bookie in quarantine are not counted"
        assert self._rule is not None or not (self._errors or self._until)
        assert all(self._rule is not None and 0 < count < self._rule.errors_max for _, count in self._errors.values())
