"""Every ledger is looked at once, so many at a time as the caller says; the first failure ends the rest."""

import asyncio

import pytest

from bookkeeper.ledger_metadata.codec import LedgerMetadata, Segment
from bookkeeper.ledger_metadata.registry import LedgerRegistry, RegisteredLedger
from bookkeeper.ledgers import LedgerError
from bookkeeper.repair.all_ledgers import all_ledger_ids, for_each_ledger
from metadata.memory import MemoryStore
from metadata.store import StoreClosed
from simulation.world.rng import stream
from tests.bookkeeper.fake_bookies import FixedClock
from tests.simulation.worlds import World, run

METADATA = LedgerMetadata(1, 1, 1, (Segment(0, ("a:1",)),))


class Site:
    """A store with ledgers, and notes of those that were looked at."""

    def __init__(self) -> None:
        self.store = MemoryStore(FixedClock())
        self.registry = LedgerRegistry(self.store, stream(1, "ledgers"))
        self.looked: list[int] = []
        self.unreadable: list[int] = []
        self.under_way = self.most = 0
        self.fails_at = -1

    async def made(self, count: int) -> "Site":
        await self.registry.initialise()
        for _ in range(count):
            await self.registry.create(METADATA)
        return self

    async def look(self, ledger: RegisteredLedger) -> None:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(1)
        self.under_way -= 1
        if ledger.ledger_id == self.fails_at:
            raise LedgerError("no copy can be read")
        self.looked.append(ledger.ledger_id)

    async def run(self, side_by_side_max: int = 2) -> None:
        await for_each_ledger(
            self.store, self.registry, self.look, lambda ledger_id, error: self.unreadable.append(ledger_id), side_by_side_max
        )

    async def ids(self) -> list[int]:
        return [each async for each in all_ledger_ids(self.store, self.registry)]


def test_each_ledger_is_looked_at_once_and_so_many_at_a_time() -> None:
    async def scenario(world: World) -> None:
        site = await Site().made(7)
        await site.run(side_by_side_max=3)
        assert sorted(site.looked) == sorted(await site.ids())
        assert (len(site.looked), site.most) == (7, 3)

    run(scenario)


def test_other_nodes_of_bookkeepers_tree_are_no_ledgers() -> None:
    async def scenario(world: World) -> None:
        site = await Site().made(2)
        for path in ("/ledgers/cookies/a:1", "/ledgers/underreplication/ledgers/00/0000/L0005", "/ledgers/00/strange"):
            await site.store.put(path, b"")
        assert len(await site.ids()) == 2

    run(scenario)


def test_metadata_without_sense_are_told_and_do_not_keep_others_from_their_turn() -> None:
    async def scenario(world: World) -> None:
        site = await Site().made(3)
        broken = (await site.ids())[1]
        await site.store.put(site.registry.path(broken), b"nonsense")
        await site.run()
        assert (site.unreadable, len(site.looked)) == ([broken], 2)

    run(scenario)


def test_a_ledger_that_is_deleted_meanwhile_is_passed_over() -> None:
    async def scenario(world: World) -> None:
        site = await Site().made(3)
        looking = asyncio.ensure_future(site.run(side_by_side_max=1))
        await asyncio.sleep(0.5)
        last = (await site.ids())[-1]
        await site.store.delete(site.registry.path(last))
        await looking
        assert (len(site.looked), site.unreadable) == (2, [])

    run(scenario)


def test_the_first_failure_ends_the_rest_and_nothing_is_left_running() -> None:
    async def scenario(world: World) -> None:
        site = await Site().made(6)
        site.fails_at = (await site.ids())[0]
        with pytest.raises(LedgerError, match="no copy can be read"):
            await site.run(side_by_side_max=2)
        looked = list(site.looked)
        await asyncio.sleep(10)
        assert site.looked == looked
        assert len(looked) < 3

    run(scenario)


def test_a_list_that_cannot_be_whole_is_an_error() -> None:
    async def scenario(world: World) -> None:
        site = await Site().made(1)
        await site.store.close()
        with pytest.raises(StoreClosed):
            await site.run()

    run(scenario)
