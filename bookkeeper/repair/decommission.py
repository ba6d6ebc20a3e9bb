"""Decommission: a bookie that is down, and will not come back, is taken out of every ledger, and then its cookie goes.

The ledgers that name it are marked as those of a lost bookie are, and the cluster's replication workers (ours or Apache's)
copy them; this waits for them. Only when one look at all metadata has found its name nowhere is the cookie deleted: from then
on an empty bookie may come under its name. As BookKeeperAdmin.decommissionBookie, which asks the auditor to do the marking.
"""

import asyncio
from collections.abc import Callable

from bookkeeper.ledger_metadata.registry import RegisteredLedger
from bookkeeper.ledgers import LedgerError, NoSuchLedger
from bookkeeper.repair.all_ledgers import for_each_ledger
from bookkeeper.repair.auditor.election import elected_auditor
from bookkeeper.repair.client import RepairClient
from bookkeeper.repair.errors import RepairError, RepairRefused
from bookkeeper.repair.recover import RepairProgress
from bookkeeper.repair.registered import delete_cookie, registered_bookies

LOOK_SECONDS_MIN = 0.5
LOOK_SECONDS_MAX = 30.0
SECONDS_PER_LEDGER = 0.02
"""Between two looks at the ledgers that are left, for each of them."""
STALLED_SECONDS_MAX = 3600.0
READS_MAX = 64


def _unheard(progress: RepairProgress) -> None:
    """Ignore progress."""


async def decommission(
    client: RepairClient,
    bookie_id: str,
    report: Callable[[RepairProgress], None] = _unheard,
    *,
    stalled_seconds_max: float = STALLED_SECONDS_MAX,
) -> bool:
    """Wait until no ledger names the bookie, then delete its cookie. Whether there was a cookie.

    `report` is told at the start, after each look, and at the end. RepairRefused when the bookie is up, or comes up, or when
    no worker would do the copying (autorecovery is disabled, or runs nowhere); RepairError when ledgers cannot be read, or
    nothing has moved for `stalled_seconds_max`; MetadataError. It may be called again at any time, and goes on.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    left = await _naming(client, bookie_id)
    total, moved = len(left), began
    while True:
        await _check(client, bookie_id, is_copying=bool(left))
        report(RepairProgress(total, len(left), loop.time() - began))
        if not left:
            return await delete_cookie(client.store, bookie_id)
        await _mark(client, bookie_id, left)
        await asyncio.sleep(min(max(LOOK_SECONDS_MIN, SECONDS_PER_LEDGER * len(left)), LOOK_SECONDS_MAX))
        before, left = left, await _still_naming(client, bookie_id, left)
        if not left:
            left = await _naming(client, bookie_id)
        if len(left) < len(before):
            moved = loop.time()
        elif loop.time() - moved > stalled_seconds_max:
            raise RepairError(
                f"{bookie_id}: {len(left)} ledgers still name it (such as {left[0]}), and none was repaired for "
                f"{stalled_seconds_max:g} s: see the log of the replication workers"
            )


async def _check(client: RepairClient, bookie_id: str, *, is_copying: bool) -> None:
    """RepairRefused as long as it must not go on."""
    if bookie_id in (await registered_bookies(client.store)).all:
        raise RepairRefused(f"{bookie_id} is up: stop it, and do not start it again")
    if not is_copying:
        return
    if not await client.marks.is_enabled():
        raise RepairRefused("autorecovery is disabled, so no worker would copy the ledgers: enable it (autorecovery -enable)")
    if await elected_auditor(client.store) is None:
        raise RepairRefused(
            "autorecovery runs nowhere, so no worker would copy the ledgers: start it (interpulse autorecovery)"
        )


async def _naming(client: RepairClient, bookie_id: str) -> list[int]:
    """All ledgers that name the bookie, ascending. RepairError when the metadata of one cannot be read."""
    found: list[int] = []
    unreadable: dict[int, LedgerError] = {}

    async def look(ledger: RegisteredLedger) -> None:
        if _names(ledger, bookie_id):
            found.append(ledger.ledger_id)

    await for_each_ledger(client.store, client.registry, look, unreadable.__setitem__, READS_MAX)
    if unreadable:
        ledger_id, error = min(unreadable.items(), key=lambda item: item[0])
        raise RepairError(
            f"the metadata of {len(unreadable)} ledgers cannot be read, and may name {bookie_id}; ledger {ledger_id}: {error}"
        )
    return sorted(found)


async def _still_naming(client: RepairClient, bookie_id: str, ledger_ids: list[int]) -> list[int]:
    left = []
    for ledger_id in ledger_ids:
        try:
            if _names(await client.registry.read(ledger_id), bookie_id):
                left.append(ledger_id)
        except NoSuchLedger:
            continue
    return left


def _names(ledger: RegisteredLedger, bookie_id: str) -> bool:
    return any(bookie_id in segment.bookies for segment in ledger.metadata.segments)


async def _mark(client: RepairClient, bookie_id: str, ledger_ids: list[int]) -> None:
    """Again, where a mark has gone and the name has not: a worker that knew of nothing to do has deleted it."""
    for ledger_id in ledger_ids:
        marked = await client.marks.marked(ledger_id)
        if marked is None or bookie_id not in marked.missing_replicas:
            await client.marks.mark_missing(ledger_id, (bookie_id,))
