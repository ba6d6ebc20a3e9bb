"""LostBookies: when an absent bookie counts as lost, so that its ledgers are marked. Pure.

One lost bookie may take lostBookieRecoveryDelay to come back (a restart, a new machine); with two or more the auditor does not
wait: another loss may be that of the last copy. As Apache's Auditor. Unlike there, the delay also holds for an auditor that has
just been elected: in a rolling restart it is the auditor's own bookie that is away at that moment.
"""

from collections.abc import Collection
from dataclasses import dataclass, field


@dataclass(slots=True)
class LostBookies:
    """Lost bookies of one auditor. `delay_seconds` 0: no wait. Times in seconds."""

    delay_seconds: float
    due_at: float | None = None
    """Time at which the ledgers of lost bookies are to be marked; None: no bookie is lost."""
    is_wanted: bool = False
    """Ledgers of all lost bookies are to be marked now, because an operator asked for an audit."""
    delayed_count: int = 0
    cancelled_count: int = 0
    _known: set[str] = field(default_factory=set)
    """Bookies that were there since the last audit, or that ledgers name."""

    def is_due(self, now: float) -> bool:
        return self.is_wanted or (self.due_at is not None and self.due_at <= now)

    def on_named(self, bookies: Collection[str]) -> None:
        """Ledgers name these bookies: each that is absent is lost."""
        self._known.update(bookies)

    def on_present(self, present: Collection[str], now: float) -> None:
        """These are there now."""
        lost = self._known.difference(present)
        self._known.update(present)
        if not lost:
            self.cancelled_count += self.due_at is not None
            self.due_at = None
        elif len(lost) > 1 or not self.delay_seconds:
            self.due_at = now if self.due_at is None else min(now, self.due_at)
        elif self.due_at is None:
            self.due_at = now + self.delay_seconds
            self.delayed_count += 1

    def on_delay(self, delay_seconds: float, now: float) -> None:
        """The delay was set. Set to the same value or to 0, it asks for an audit now (that is how tools ask for one)."""
        if delay_seconds in (self.delay_seconds, 0.0):
            self.is_wanted = True
        elif self.due_at is not None and self.due_at > now:
            self.due_at = now + delay_seconds
        self.delay_seconds = delay_seconds

    def on_interval(self) -> None:
        """auditorPeriodicBookieCheckInterval is over. One that is lost keeps its delay."""
        self.is_wanted = self.is_wanted or self.due_at is None

    def on_audited(self, present: Collection[str]) -> None:
        """All ledgers of those that are not there are marked."""
        self._known = set(present)
        self.due_at, self.is_wanted = None, False

    def check_invariants(self) -> None:
        """Check the invariants, for tests and simulations."""
        assert self.due_at is None or self._known, "a bookie that is lost is known"
        assert self.cancelled_count >= 0
        assert self.delayed_count >= 0
