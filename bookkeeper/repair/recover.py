"""Recover: copies what is on given bookies to others, here and now, as `bookkeeper shell recover` does.

For an operator: it needs no auditor and no marks. A ledger's lock is taken where it can be had, so that no bookie collects
what is being copied to it because the metadata does not name it yet (BookKeeper issue 4668); where a replication worker has it,
it is repaired all the same: the second of the two finds the metadata changed, and looks again.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from bookkeeper.ledger_metadata.codec import LedgerState
from bookkeeper.ledger_metadata.registry import RegisteredLedger
from bookkeeper.ledgers import LedgerError, NoSuchLedger
from bookkeeper.repair.all_ledgers import for_each_ledger
from bookkeeper.repair.client import RepairClient
from bookkeeper.repair.counters import RepairCounters
from bookkeeper.repair.errors import RepairError
from bookkeeper.repair.ledger.ledger_repair import LedgerRepair

READS_MAX = 64


@dataclass(frozen=True, slots=True)
class RepairProgress:
    """Progress of a repair that began with `ledgers_total`. Seconds."""

    ledgers_total: int
    ledgers_left: int
    elapsed_seconds: float

    @property
    def ledgers_done(self) -> int:
        return self.ledgers_total - self.ledgers_left

    @property
    def eta_seconds(self) -> float | None:
        """Remaining time at the pace so far; None while nothing is done yet."""
        if not self.ledgers_left:
            return 0.0
        return self.elapsed_seconds * self.ledgers_left / self.ledgers_done if self.ledgers_done > 0 else None


@dataclass(frozen=True, slots=True)
class Recovered:
    """Result of a recover; with `dry_run` the result that it would have."""

    repaired: tuple[int, ...]
    """Ledgers that named one of the bookies and do not any more."""
    open_left: tuple[int, ...]
    """Open ones that were left alone because that was asked for."""
    failed: Mapping[int, str]
    """Ledgers that still name one of the bookies, and why."""


def _unheard(progress: RepairProgress) -> None:
    """Ignore progress."""


async def recover(
    client: RepairClient,
    bookie_ids: Collection[str],
    *,
    ledger_id: int | None = None,
    dry_run: bool = False,
    skips_open_ledgers: bool = False,
    skips_unrecoverable_ledgers: bool = False,
    report: Callable[[RepairProgress], None] = _unheard,
) -> Recovered:
    """Take these bookies, up or down, out of all ledgers, or of the one with `ledger_id`.

    Open ledgers are fenced and closed first, unless `skips_open_ledgers`. The first ledger that cannot be repaired is raised
    as RepairError, unless `skips_unrecoverable_ledgers`: then it is in `failed`. NoSuchLedger for a `ledger_id` that is
    not there; MetadataError. It may be called again at any time.
    """
    repair = LedgerRepair(client, RepairCounters())
    failed: dict[int, str] = {}
    ids = [ledger_id] if ledger_id is not None else await _naming(client, bookie_ids, failed)
    if failed and not skips_unrecoverable_ledgers:
        raise _failure(*next(iter(failed.items())))
    repaired, open_left = list[int](), list[int]()
    began = asyncio.get_running_loop().time()
    for at, each in enumerate(ids):
        report(RepairProgress(len(ids), len(ids) - at, asyncio.get_running_loop().time() - began))
        try:
            ledger = await client.registry.read(each)
        except NoSuchLedger:
            if ledger_id is not None:
                raise
            continue
        if not _names(ledger, bookie_ids):
            continue
        if skips_open_ledgers and ledger.metadata.state != LedgerState.CLOSED:
            open_left.append(each)
            continue
        reason = "" if dry_run else await _why_not(client, repair, each, bookie_ids)
        if not reason:
            repaired.append(each)
        elif skips_unrecoverable_ledgers:
            failed[each] = reason
        else:
            raise _failure(each, reason)
    report(RepairProgress(len(ids), 0, asyncio.get_running_loop().time() - began))
    return Recovered(tuple(repaired), tuple(open_left), failed)


async def _naming(client: RepairClient, bookie_ids: Collection[str], unreadable: dict[int, str]) -> list[int]:
    """Ledgers that name one of the bookies, ascending."""
    found: list[int] = []

    async def look(ledger: RegisteredLedger) -> None:
        if _names(ledger, bookie_ids):
            found.append(ledger.ledger_id)

    def on_unreadable(each: int, error: LedgerError) -> None:
        unreadable[each] = str(error)

    await for_each_ledger(client.store, client.registry, look, on_unreadable, READS_MAX)
    return sorted(found)


async def _why_not(client: RepairClient, repair: LedgerRepair, ledger_id: int, bookie_ids: Collection[str]) -> str:
    """Nothing when no segment names one of the bookies any more: what else the ledger lacks is not asked here."""
    is_locked = await client.marks.lock(ledger_id)
    try:
        outcome = await repair.repair(ledger_id, bookie_ids, closes=True)
    finally:
        if is_locked:
            await client.marks.release(ledger_id)
    try:
        is_free = not _names(await client.registry.read(ledger_id), bookie_ids)
    except NoSuchLedger:
        is_free = True
    return "" if is_free else "; ".join(outcome.reasons) or outcome.state.value


def _failure(ledger_id: int, reason: str) -> RepairError:
    return RepairError(f"ledger {ledger_id} could not be repaired: {reason}")


def _names(ledger: RegisteredLedger, bookie_ids: Collection[str]) -> bool:
    return any(bookie in bookie_ids for segment in ledger.metadata.segments for bookie in segment.bookies)
