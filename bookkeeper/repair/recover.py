"""Recover: copies what is on given bookies to others, here and now, as `bookkeeper shell recover` does.

For an operator: it needs no auditor and no marks, and takes no locks. What replication workers do to the same ledgers at the
same time is no harm: whoever is second finds the metadata changed, and looks again.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from bookkeeper.repair.client import RepairClient
from bookkeeper.repair.errors import RepairError
from bookkeeper.repair.progress import RepairProgress


@dataclass(frozen=True, slots=True)
class Recovered:
    """What was done; with `dry_run` what would have been."""

    repaired: tuple[int, ...]
    """Ledgers that named one of the bookies and do not any more."""
    open_left: tuple[int, ...]
    """Open ones that were left alone because that was asked for."""
    failed: Mapping[int, str]
    """Ledgers that still name one of the bookies, and why."""


def _unheard(progress: RepairProgress) -> None:
    """Nobody wants to know."""


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
    as RepairError, unless `skips_unrecoverable_ledgers`: then it is told in `failed`. NoSuchLedger for a `ledger_id` that is
    not there; MetadataError. It may be called again at any time.
    """
    raise RepairError("recover is not there yet")
