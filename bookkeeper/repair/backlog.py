"""Backlog: marked ledgers that a replication worker holds, and the next action for each. Pure; the time is an argument.

A ledger that could not be repaired keeps its lock for a while, so that no worker tries in vain: at first for
lockReleaseOfFailedLedgerGracePeriod / 32, twice as long each time, and at last for the whole of it. One whose writer lacks a
bookie keeps it for openLedgerRereplicationGracePeriod, in which the writer may replace the bookie, and is closed then. As
Apache's ReplicationWorker. Bound: HELD_MAX locks; a worker that holds as many takes no other ledger until one is due: without
a lock nothing would keep it from the next try.
"""

from dataclasses import dataclass
from enum import Enum

from bookkeeper.repair.underreplication.tree import HeldLedger

HELD_MAX = 1000
FAILURES_REMEMBERED_MAX = 10_000
DOUBLINGS_MAX = 5


class Action(Enum):
    """Next action for a ledger that is held."""

    RELEASE = "release"
    CLOSE = "close"


@dataclass(frozen=True, slots=True)
class Due:
    """Action due from `at` on (seconds)."""

    held: HeldLedger
    action: Action
    at: float


class Backlog:
    """Backlog of one worker."""

    def __init__(self, failed_seconds_max: float, open_seconds: float) -> None:
        self._failed_seconds_max, self._open_seconds = failed_seconds_max, open_seconds
        self._held: dict[int, Due] = {}
        self._failures: dict[int, int] = {}
        """Successive failures of each ledger whose last repair failed; the oldest are forgotten at the bound."""

    def __contains__(self, ledger_id: int) -> bool:
        return ledger_id in self._held

    @property
    def held(self) -> list[HeldLedger]:
        return [due.held for due in self._held.values()]

    @property
    def is_full(self) -> bool:
        """Whether no other ledger can be held."""
        return len(self._held) >= HELD_MAX

    def on_repaired(self, ledger_id: int) -> None:
        self._failures.pop(ledger_id, None)

    def on_failed(self, held: HeldLedger, now: float) -> bool:
        """Whether it is held from now on; if not, it is to be released."""
        failures = self._failures.pop(held.ledger_id, 0)
        self._failures[held.ledger_id] = failures + 1
        while len(self._failures) > FAILURES_REMEMBERED_MAX:
            del self._failures[next(iter(self._failures))]
        seconds = self._failed_seconds_max / (1 << max(0, DOUBLINGS_MAX - failures))
        return self._hold(Due(held, Action.RELEASE, now + seconds))

    def on_open(self, held: HeldLedger, now: float) -> bool:
        """Whether it is held from now on; if not, it is to be released."""
        return self._hold(Due(held, Action.CLOSE, now + self._open_seconds))

    def _hold(self, due: Due) -> bool:
        if self.is_full:
            return False
        self._held[due.held.ledger_id] = due
        return True

    def take_due(self, now: float) -> Due | None:
        """One whose time has come; it is held no more."""
        due = min(self._held.values(), key=lambda due: due.at, default=None)
        if due is None or due.at > now:
            return None
        return self._held.pop(due.held.ledger_id)

    def next_at(self) -> float | None:
        """Time at which the next ledger is due."""
        return min((due.at for due in self._held.values()), default=None)

    def check_invariants(self) -> None:
        """Check the invariants, for tests and simulations."""
        assert len(self._held) <= HELD_MAX
        assert all(due.held.ledger_id == ledger_id for ledger_id, due in self._held.items())
        assert len(self._failures) <= FAILURES_REMEMBERED_MAX
        assert all(count > 0 for count in self._failures.values())

    def on_session_lost(self) -> None:
        """The locks went with the session: other workers may have them now."""
        self._held.clear()
