"""State of repair that the shell and a bookie's HTTP show and change: ledgers that lack copies, audits, the auditor's checks.

Nodes and values are Apache's; all but the checks' are `bookkeeper.repair`'s. Repairs nothing.
"""

import sys
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

from bookkeeper.repair.auditor.election import elected_auditor
from bookkeeper.repair.recover import RepairProgress
from bookkeeper.repair.underreplication.store import UnderreplicationStore
from bookkeeper.repair.underreplication.tree import LOST_BOOKIE_RECOVERY_DELAY, UNDERREPLICATION, UnderreplicatedLedger
from cli.bookkeeper_cluster.cluster import ClusterFailed, NotThere
from metadata.store import MetadataStore
from ports.clock import RealClock

CHECKS = {
    "calc": ("CheckAllLedgersCTime", "checkallledgersctime", "checkAllLedgersCTime"),
    "ppc": ("PlacementPolicyCheckCTime", "placementpolicycheckctime", "placementPolicyCheckCTime"),
    "rc": ("ReplicasCheckCTime", "replicascheckctime", "replicasCheckCTime"),
}
"""The auditor's checks: what Apache calls the time of the last run, its node, and the field in it (text form)."""


@dataclass(frozen=True, slots=True)
class Lacking:
    """A ledger that lacks copies, and the worker that repairs it; None: no worker yet."""

    ledger_id: int
    what: UnderreplicatedLedger
    worker: str | None


def marks_in(store: MetadataStore) -> UnderreplicationStore:
    """Marks of ledgers that lack copies, for a reader that takes no locks."""
    return UnderreplicationStore(store, RealClock(), "bookkeeper shell")


async def lacking(store: MetadataStore, missing: str = "", excluding: str = "") -> AsyncGenerator[Lacking, None]:
    """Ledgers, ascending, that lack copies on `missing` and none on `excluding`; an empty name excludes none. MetadataError."""
    marks = marks_in(store)
    async for ledger_id in marks.ledger_ids():
        what = await marks.marked(ledger_id)
        if what is None:
            continue
        replicas = what.missing_replicas
        if (not missing or missing in replicas) and (not excluding or excluding not in replicas):
            yield Lacking(ledger_id, what, await marks.lock_owner(ledger_id))


async def recovery_delay_seconds(store: MetadataStore) -> int:
    """NotThere until an auditor or an operator has set it; MetadataError, RepairError."""
    seconds = await marks_in(store).lost_bookie_recovery_delay()
    if seconds is None:
        raise NotThere(f"{LOST_BOOKIE_RECOVERY_DELAY} is not there: no auditor has run yet, and no operator has set it")
    return seconds


async def trigger_audit(store: MetadataStore) -> None:
    """Writes the delay again as it is, which the auditor watches (BookKeeperAdmin.triggerAudit). ClusterFailed."""
    marks = marks_in(store)
    if not await marks.is_enabled():
        raise ClusterFailed("Autorecovery is disabled. So giving up! `autorecovery -enable` turns it on")
    if await elected_auditor(store) is None:
        raise ClusterFailed(
            "No auditor elected, though Autorecovery is enabled. So giving up. `interpulse autorecovery` runs one"
        )
    await marks.set_lost_bookie_recovery_delay(await recovery_delay_seconds(store))


async def reset_check(store: MetadataStore, check: str, at_ms: int) -> None:
    """Makes the auditor believe that `check` (of CHECKS) ran last at that time. MetadataError."""
    _, name, field = CHECKS[check]
    await store.put(f"{UNDERREPLICATION}/{name}", f"{field}: {at_ms}\n".encode())


def progress_line(say: Callable[[str], None]) -> Callable[[RepairProgress], None]:
    """A report that says the progress of a repair whenever the count of ledgers left has changed."""
    last_left = sys.maxsize

    def report(progress: RepairProgress) -> None:
        nonlocal last_left
        if progress.ledgers_left == last_left or not progress.ledgers_total:
            return
        last_left = progress.ledgers_left
        say(
            f"Count of Ledgers which need to be rereplicated: {progress.ledgers_left} of {progress.ledgers_total}, "
            f"{progress.elapsed_seconds:.0f} s so far, {eta_text(progress.eta_seconds)}"
        )

    return report


def eta_text(seconds: float | None) -> str:
    if seconds is None:
        return "the rest: not known yet"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"the rest: about {hours}:{minutes:02}:{rest:02}"
