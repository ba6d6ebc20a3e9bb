"""Every ledger of the cluster, one after the other or many side by side. Bound: so many at a time as the caller says.

A ledger that is deleted meanwhile is passed over, one that is made meanwhile may be.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable

from bookkeeper.ledger_metadata.paths import ROOT
from bookkeeper.ledger_metadata.registry import LedgerRegistry, RegisteredLedger
from bookkeeper.ledgers import LedgerError, NoSuchLedger
from metadata.store import MetadataError, MetadataStore

_LEVEL = re.compile(r"\d+")


async def all_ledger_ids(store: MetadataStore, registry: LedgerRegistry) -> AsyncIterator[int]:
    """MetadataError: the list would not be whole. Held in memory: the names of one node's children at each level."""
    waiting = [ROOT]
    while waiting:
        path = waiting.pop()
        deeper = []
        for name in await store.children(path):
            ledger_id = registry.layout.id_at(f"{path}/{name}".removeprefix(f"{ROOT}/"))
            if ledger_id is not None:
                yield ledger_id
            elif _LEVEL.fullmatch(name):
                deeper.append(f"{path}/{name}")
        waiting += reversed(deeper)


async def for_each_ledger(
    store: MetadataStore,
    registry: LedgerRegistry,
    work: Callable[[RegisteredLedger], Awaitable[None]],
    on_unreadable: Callable[[int, LedgerError], None],
    side_by_side_max: int,
) -> None:
    """Do `work` for each ledger that is there. `on_unreadable` gets each whose metadata makes no sense.

    MetadataError, LedgerError when the metadata cannot be read, or whatever `work` raises: the first failure ends it.
    """

    async def one(ledger_id: int) -> None:
        try:
            ledger = await registry.read(ledger_id)
        except NoSuchLedger:
            return
        except LedgerError as error:
            if isinstance(error.__cause__, MetadataError):
                raise
            on_unreadable(ledger_id, error)
            return
        await work(ledger)

    await _side_by_side(all_ledger_ids(store, registry), one, side_by_side_max)


async def _side_by_side(ids: AsyncIterator[int], work: Callable[[int], Awaitable[None]], at_once_max: int) -> None:
    """`work` for each id, so many at once. The first failure ends the rest and is raised; nothing is left running."""
    turns = asyncio.Semaphore(at_once_max)

    async def one(each: int) -> None:
        try:
            await work(each)
        finally:
            turns.release()

    try:
        async with asyncio.TaskGroup() as group:
            async for each in ids:
                await turns.acquire()
                group.create_task(one(each))
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures
