"""A trial: a new ledger is written, read and deleted again: `simpletest`, `bookiesanity`, and HTTP's sanity."""

import asyncio
from collections.abc import Callable

from bookkeeper.client import BookKeeper
from bookkeeper.settings import BookKeeperSettings
from cli.bookkeeper_cluster.cluster import ClusterFailed
from cli.bookkeeper_cluster.ledger_access import LedgerAccess
from ports.rng import RealRng
from wire.run import batch_of

PAYLOAD = bytes(ord("A") + index % 26 for index in range(100))
APPENDS_AT_ONCE_MAX = 100
ON_ONE_BOOKIE = (1, 1, 1)


async def write_trial(
    access: LedgerAccess,
    count: int,
    quorum: tuple[int, int, int],
    tell: Callable[[str], None],
    only: str | None = None,
) -> int:
    """Count of entries that were written and read; the ledger is deleted in any case.

    `quorum` is ensemble size, write and ack quorum; `only` is the bookie that all of it goes to. LedgerError, and
    ClusterFailed when something else is read than was written.
    """
    client = access.client
    bookies = client.bookies if only is None else {only: access.bookie(only)}
    settings = BookKeeperSettings(*quorum, bookkeeper_client_rackaware_policy_enabled=only is None)
    ledgers = BookKeeper(bookies, client.store, settings, RealRng())
    await ledgers.initialise()
    try:
        writer = await ledgers.create({"Bookie": b"simpletest"})
        try:
            tell(f"Ledger ID: {writer.ledger_id}")
            for first in range(0, count, APPENDS_AT_ONCE_MAX):
                some = min(APPENDS_AT_ONCE_MAX, count - first)
                await asyncio.gather(*(writer.append(batch_of((PAYLOAD,))) for _ in range(some)))
            last = writer.last_add_confirmed
            tell(f"{count} entries written to ledger {writer.ledger_id}. Last entry Id {last}")
            await writer.close()
            return await _check(access, writer.ledger_id, count)
        finally:
            await ledgers.delete(writer.ledger_id)
    finally:
        await ledgers.close()


async def _check(access: LedgerAccess, ledger_id: int, count: int) -> int:
    at = 0
    async for entry in access.read(ledger_id):
        if (entry.entry_id, entry.payload) != (at, PAYLOAD):
            raise ClusterFailed(f"ledger {ledger_id} entry {entry.entry_id}: Read data doesn't match the data written.")
        at += 1
    if at != count:
        raise ClusterFailed(f"Number of entries read ({at}) doesn't match the expected value ({count}).")
    return at
