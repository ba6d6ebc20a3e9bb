"""Planted bugs of auto-recovery that show where bookies have no room: a repair believed, given up, or tried without a pause."""

from typing import Any

from bookkeeper.repair.backlog import Backlog
from bookkeeper.repair.ledger.copier import Copier, TargetFailed
from bookkeeper.repair.ledger.ledger_repair import LedgerRepair, RepairOutcome, State

FOR_EVER_SECONDS = 1e9


def _refusal_unheard(add: Any) -> Any:
    async def broken(self: Copier, run: Any, key: bytes, name: str) -> None:
        try:
            await add(self, run, key, name)
        except TargetFailed:
            return

    return broken


def _done_in_vain(repair: Any) -> Any:
    async def broken(self: LedgerRepair, ledger_id: int, *rest: Any, **words: Any) -> RepairOutcome:
        outcome: RepairOutcome = await repair(self, ledger_id, *rest, **words)
        return RepairOutcome(State.WHOLE) if outcome.state is State.LACKING else outcome

    return broken


def _no_pause(on_failed: Any) -> Any:
    def broken(self: Backlog, held: Any, now: float) -> bool:
        self._failed_seconds_max, longest = 0.0, self._failed_seconds_max
        try:
            return bool(on_failed(self, held, now))
        finally:
            self._failed_seconds_max = longest

    return broken


def _given_up(on_failed: Any) -> Any:
    def broken(self: Backlog, held: Any, now: float) -> bool:
        return bool(on_failed(self, held, now + FOR_EVER_SECONDS))

    return broken


FULL_REPAIR_PLANTS = {
    "refusal-unheard": (
        "a bookie that did not take its copies is named for them", Copier, "_add", _refusal_unheard,
    ),
    "done-in-vain": (
        "the mark of a ledger that could not be repaired is deleted", LedgerRepair, "repair", _done_in_vain,
    ),
    "no-pause": (
        "a ledger that could not be repaired is tried again at once", Backlog, "on_failed", _no_pause,
    ),
    "given-up": (
        "a ledger that could not be repaired is never tried again", Backlog, "on_failed", _given_up,
    ),
}  # fmt: skip
