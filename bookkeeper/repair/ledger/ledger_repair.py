"""LedgerRepair: one ledger gets the copies that it lacks. The driver of `plan`: looks, copies, and stores the new bookies.

Every step can be cut off and begun again: copies are made before the metadata names their bookie, and the metadata is changed
by compare-and-set on the very segment that was copied. Two repairs of one ledger at a time do no harm; the locks only save
work.
"""

import asyncio
import logging
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from functools import partial

from bookkeeper.ledger_end.ledger_recovery import recover_ledger
from bookkeeper.ledger_metadata.codec import master_key
from bookkeeper.ledger_metadata.registry import RegisteredLedger
from bookkeeper.ledgers import LedgerError, NoSuchLedger
from bookkeeper.repair.client import RepairClient
from bookkeeper.repair.counters import RepairCounters
from bookkeeper.repair.errors import NotEnoughBookies, RepairError
from bookkeeper.repair.ledger.copier import Copier, TargetFailed
from bookkeeper.repair.ledger.plan import FragmentPlan, Lack, LedgerChanged, LedgerPlan, plan_repair, with_bookies
from bookkeeper.repair.ledger.probe import Probe
from bookkeeper.repair.registered import registered_bookies
from ports.logs import line

ROUNDS_MAX = 5
"""Times that one ledger is looked at in one repair: others may change it meanwhile; then it is left for later."""
TARGETS_MAX = 3
"""Bookies that may fail to take one fragment's copies; then it is left for later."""
RECOVERY_SECONDS_MAX = 600.0

_log = logging.getLogger(__name__)


class State(Enum):
    """State in which a repair left a ledger."""

    WHOLE = "whole"
    GONE = "gone"
    """The ledger was deleted."""
    OPEN = "open"
    """The ledger's writer lacks a bookie and may replace it; nothing else is to be done."""
    LACKING = "lacking"
    """Something could not be done; `reasons` say what."""


@dataclass(frozen=True, slots=True)
class RepairOutcome:
    """Outcome of one repair of one ledger. `is_changed`: some of its copies have moved."""

    state: State
    reasons: tuple[str, ...] = ()
    is_changed: bool = False


class LedgerRepair:
    """Repair for one worker, or one command."""

    def __init__(self, client: RepairClient, counters: RepairCounters) -> None:
        self._client, self._counters = client, counters
        self._copier = Copier(client, counters)
        percentage = client.settings.auditor_ledger_verification_percentage
        self._probe = Probe(client.bookies, percentage, client.rng, client.timeout_seconds)

    async def look(self, ledger: RegisteredLedger, leaving: Collection[str] = ()) -> LedgerPlan:
        """Copies that the ledger lacks; `leaving` are bookies that count as lost. MetadataError."""
        present = (await registered_bookies(self._client.store)).all.difference(leaving)
        findings = await self._probe.findings(ledger, present)
        return plan_repair(ledger.metadata, present, findings)

    async def repair(self, ledger_id: int, leaving: Collection[str] = (), *, closes: bool = False) -> RepairOutcome:
        """`closes`: an open ledger whose last segment names a lost bookie is fenced and closed; its writer is stopped.

        MetadataError; the outcome names failures of bookies.
        """
        reasons: list[str] = []
        is_changed = False
        for _ in range(ROUNDS_MAX):
            try:
                ledger = await self._client.registry.read(ledger_id)
                plan = await self.look(ledger, leaving)
                if plan.open_lost and closes:
                    await self._close(ledger)
                    is_changed = True
                    continue
                if not plan.fragments:
                    return RepairOutcome(State.OPEN if plan.open_lost else State.WHOLE, is_changed=is_changed)
                reasons = await self._repair_fragments(ledger, plan, leaving)
                is_changed = is_changed or len(reasons) < len(plan.fragments)
                if reasons:
                    break
            except NoSuchLedger:
                return RepairOutcome(State.GONE)
            except LedgerChanged as changed:
                reasons = [str(changed)]
            except LedgerError as error:
                return RepairOutcome(State.LACKING, (str(error),), is_changed)
        return RepairOutcome(
            State.LACKING, tuple(reasons) or ("it lacks copies still, as often as they were made",), is_changed
        )

    async def _repair_fragments(self, ledger: RegisteredLedger, plan: LedgerPlan, leaving: Collection[str]) -> list[str]:
        """Why some could not be repaired; one failure does not keep the others from it."""
        reasons = []
        for each in plan.fragments:
            try:
                ledger = await self._repair_fragment(ledger, each, leaving)
            except (NoSuchLedger, LedgerChanged):
                raise
            except LedgerError as error:
                reasons.append(f"from entry {each.fragment.first_entry_id}: {error}")
        return reasons

    async def _repair_fragment(
        self, ledger: RegisteredLedger, plan: FragmentPlan, leaving: Collection[str]
    ) -> RegisteredLedger:
        refused: list[str] = []
        while True:
            targets = await self._targets(ledger, plan, {*leaving, *refused})
            try:
                await self._copier.copy(ledger, plan.fragment, targets)
                break
            except TargetFailed as failure:
                refused.append(failure.bookie)
                if len(refused) >= TARGETS_MAX:
                    raise
                _log.warning(
                    line(
                        "bookie cannot take the copies of a ledger: another one is tried",
                        ledger=ledger.ledger_id,
                        reason=failure,
                    )
                )
        change = partial(with_bookies, fragment=plan.fragment, new=targets)
        ledger = await self._client.registry.update(ledger, change)
        moved = ", ".join(f"{plan.fragment.bookies[index]} to {name}" for index, name in targets.items())
        _log.info(
            line(
                "entries copied to other bookies", ledger=ledger.ledger_id, fromEntry=plan.fragment.first_entry_id, moved=moved
            )
        )
        if len(targets) < len(plan.lacks):
            raise NotEnoughBookies(_too_few(plan, targets))
        return ledger

    async def _targets(self, ledger: RegisteredLedger, plan: FragmentPlan, refused: Collection[str]) -> dict[int, str]:
        """Target bookies by index. NotEnoughBookies when there is no target for any copy.

        A present bookie that only lacks entries is given them itself where no other bookie can take them.
        """
        writable = (await registered_bookies(self._client.store)).writable
        ensemble = list(plan.fragment.bookies)
        targets = {}
        for index, lack in plan.lacks.items():
            old = plan.fragment.bookies[index]
            excluded = {*plan.fragment.bookies, *ensemble, *refused}
            name = self._client.candidates.replacement(ensemble, index, ledger.metadata.write_quorum, excluded)
            if name is None and lack is Lack.LACKING and old in writable and old not in refused:
                name = old
            if name is not None:
                targets[index] = ensemble[index] = name
        if not targets:
            raise NotEnoughBookies(_too_few(plan, targets))
        return targets

    async def _close(self, ledger: RegisteredLedger) -> None:
        client = self._client
        _log.warning(line("an open ledger that lacks a bookie is closed", ledger=ledger.ledger_id))
        key = master_key(ledger.metadata.password)
        try:
            async with asyncio.timeout(RECOVERY_SECONDS_MAX):
                await recover_ledger(ledger, client.registry, client.bookies, client.candidates, key)
        except TimeoutError:
            raise RepairError(f"ledger {ledger.ledger_id}: not recovered in {RECOVERY_SECONDS_MAX:g} s") from None


def _too_few(plan: FragmentPlan, targets: Collection[int]) -> str:
    left = ", ".join(
        f"{plan.fragment.bookies[index]} ({lack.value})" for index, lack in plan.lacks.items() if index not in targets
    )
    return f"no bookie can take the place of {left}: start another one"
