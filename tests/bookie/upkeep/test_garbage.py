"""Ledgers whose metadata is gone lose their bytes, after two rounds and no sooner."""

import asyncio

import pytest

from bookie.upkeep.garbage import GarbageCollector
from metadata.memory import MemoryStore
from metadata.store import MetadataError
from tests.bookie.machines import SMALL, Machine, SimClock, on_machine
from tests.bookie.runs import KEY, sealed
from wire.bookie.codes import BookieCode, BookieError


def node(ledger_id: int) -> str:
    return f"/ledgers/{ledger_id // 10:04d}/L{ledger_id % 10:04d}"


class FaultyStore(MemoryStore):
    """Lists nothing below some paths, or fails."""

    hidden: tuple[str, ...] = ()
    failing = False

    async def children(self, path: str) -> list[str]:
        if self.failing:
            raise MetadataError("connection loss")
        return [] if path in self.hidden else await super().children(path)


class World:
    """A bookie with ledgers 1 to 4 in logs of their own, all of them in the metadata."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.store = FaultyStore(SimClock(machine.loop))

    async def start(self) -> None:
        bookie = await self.machine.start()
        for ledger_id in range(1, 5):
            await self.store.put(node(ledger_id), b"")
            for entry_id in range(12):
                await bookie.add(sealed(ledger_id, entry_id, 1, 50_000), KEY)
            await bookie.flush()
        self.collector = GarbageCollector(bookie, self.store, node, "/ledgers", SMALL.gc_wait_time / 1000)

    def logs(self) -> int:
        return len([path for path in self.machine.disk.paths() if path.endswith(".log")])


def test_a_ledger_goes_after_two_rounds_without_its_node_and_its_log_with_it() -> None:
    async def scenario(machine: Machine) -> None:
        world = World(machine)
        await world.start()
        logs = world.logs()
        assert await world.collector.run_round() == []
        await world.store.delete(node(2))
        assert await world.collector.run_round() == []
        assert machine.bookie.ledger_ids() == [1, 2, 3, 4]
        assert await world.collector.run_round() == [2]
        assert machine.bookie.ledger_ids() == [1, 3, 4]
        assert world.logs() < logs
        for power_cut in (True, True):
            machine.crash(power_cut=power_cut)
            bookie = await machine.start()
            assert bookie.ledger_ids() == [1, 3, 4]
            for ledger_id in (1, 3, 4):
                for entry_id in range(12):
                    assert (await bookie.read(ledger_id, entry_id, 1, 1)).count == 1
            with pytest.raises(BookieError) as caught:
                await bookie.read(2, 0, 1, 1)
            assert caught.value.code is BookieCode.ENOLEDGER

    on_machine(scenario)


def test_a_ledger_that_comes_back_between_the_rounds_stays() -> None:
    async def scenario(machine: Machine) -> None:
        world = World(machine)
        await world.start()
        await world.store.delete(node(2))
        await world.collector.run_round()
        await world.store.put(node(2), b"")
        await world.collector.run_round()
        await world.store.delete(node(2))
        assert await world.collector.run_round() == []
        assert machine.bookie.ledger_ids() == [1, 2, 3, 4]

    on_machine(scenario)


def test_a_partial_or_empty_listing_deletes_nothing() -> None:
    async def scenario(machine: Machine) -> None:
        world = World(machine)
        await world.start()
        for hidden in (("/ledgers/0000",), ("/ledgers",), ("/ledgers", "/ledgers/0000")):
            world.store.hidden = hidden
            for _ in range(4):
                assert await world.collector.run_round() == []
        for ledger_id in range(1, 5):
            await world.store.delete(node(ledger_id))
        world.store.hidden = ("/ledgers",)
        for _ in range(4):
            assert await world.collector.run_round() == []
        assert machine.bookie.ledger_ids() == [1, 2, 3, 4]

    on_machine(scenario)


def test_a_failed_round_proves_nothing() -> None:
    async def scenario(machine: Machine) -> None:
        world = World(machine)
        await world.start()
        await world.store.delete(node(2))
        await world.collector.run_round()
        world.store.failing = True
        assert await world.collector.run_round() == []
        world.store.failing = False
        assert await world.collector.run_round() == []
        assert await world.collector.run_round() == [2]

    on_machine(scenario)


def test_a_ledger_fenced_and_deleted_takes_no_adds_for_a_week() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        await bookie.add(sealed(1, 0), KEY)
        await bookie.fence(1, KEY)
        await bookie.delete([1])
        for _ in range(2):
            for recovery in (False, True):
                with pytest.raises(BookieError) as caught:
                    await bookie.add(sealed(1, 1), KEY, recovery=recovery)
                assert caught.value.code is BookieCode.EFENCED
            with pytest.raises(BookieError) as caught:
                await bookie.read(1, 0, 1, 1)
            assert caught.value.code is BookieCode.ENOLEDGER
            machine.crash(power_cut=True)
            bookie = await machine.start()

    on_machine(scenario)


def test_an_entry_journalled_late_does_not_bring_a_deleted_ledger_back() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        await bookie.add(sealed(1, 0), KEY)
        await bookie.fence(1, KEY)
        late = bookie.add(sealed(1, 1), KEY, recovery=True)
        await bookie.delete([1])
        await late
        machine.crash(power_cut=True)
        bookie = await machine.start()
        assert bookie.ledger_ids() == []
        with pytest.raises(BookieError) as caught:
            await bookie.add(sealed(1, 2), KEY)
        assert caught.value.code is BookieCode.EFENCED

    on_machine(scenario)


@pytest.mark.parametrize("turns", range(0, 60, 3))
def test_a_ledger_deleted_during_a_flush_does_not_come_back(turns: int) -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        for ledger_id in (1, 2):
            for entry_id in range(5):
                await bookie.add(sealed(ledger_id, entry_id, 1, 50_000), KEY)
        flush = machine.loop.create_task(bookie.flush())
        await asyncio.sleep(turns * 0.0002)
        await bookie.delete([1])
        await flush
        assert bookie._storage.index.last_entry_id(1) == -1
        assert (await bookie.read(2, 4, 1, 1)).count == 1

    on_machine(scenario)


def test_memtable_entries_of_a_deleted_ledger_are_not_flushed() -> None:
    async def scenario(machine: Machine) -> None:
        bookie = await machine.start()
        await bookie.add(sealed(1, 0), KEY)
        await bookie.add(sealed(2, 0), KEY)
        await bookie.delete([1])
        assert bookie.ledger_ids() == [2]
        assert [path for path in machine.disk.paths() if path.endswith(".log")], "the deletion flushes"
        assert [bookie._storage.index.last_entry_id(ledger_id) for ledger_id in (1, 2)] == [-1, 0]
        machine.crash(power_cut=True)
        bookie = await machine.start()
        assert (await bookie.read(2, 0, 1, 1)).count == 1

    on_machine(scenario)


@pytest.mark.parametrize("is_full", [False, True])
def test_while_there_is_no_room_a_deleted_ledger_goes_within_seconds(is_full: bool) -> None:
    async def scenario(machine: Machine) -> None:
        world = World(machine)
        await world.start()
        collector = GarbageCollector(machine.bookie, world.store, node, "/ledgers", 900.0, lacks_room=lambda: is_full)
        running = asyncio.ensure_future(collector.run())
        await asyncio.sleep(100)
        await world.store.delete(node(2))
        await asyncio.sleep(4)
        assert machine.bookie.ledger_ids() == ([1, 3, 4] if is_full else [1, 2, 3, 4])
        running.cancel()

    on_machine(scenario)


def test_rounds_on_a_full_disk_take_a_tenth_of_the_time_at_most() -> None:
    async def scenario(machine: Machine) -> None:
        world = World(machine)
        await world.start()
        loop, rounds = asyncio.get_running_loop(), list[float]()
        children = world.store.children

        async def slow(path: str) -> list[str]:
            if path == "/ledgers":
                rounds.append(loop.time())
                await asyncio.sleep(3)
            return await children(path)

        world.store.children = slow  # type: ignore[method-assign]
        collector = GarbageCollector(machine.bookie, world.store, node, "/ledgers", 900.0, lacks_room=lambda: True)
        running = asyncio.ensure_future(collector.run())
        await asyncio.sleep(200)
        assert 5 <= len(rounds) <= 7
        running.cancel()

    on_machine(scenario)


def test_a_disk_that_becomes_full_begins_a_compaction_where_that_is_wanted() -> None:
    class Keeper:
        forced: list[str | None]

        def __init__(self) -> None:
            self.forced = []

        def ledger_ids(self) -> list[int]:
            return []

        async def delete(self, ledger_ids: object) -> None:
            raise AssertionError(ledger_ids)

        async def compact(self, forced: str | None = None) -> None:
            self.forced.append(forced)

    async def scenario(machine: Machine) -> None:
        await machine.start()
        store, full = MemoryStore(SimClock(machine.loop)), set[str]()
        keepers = Keeper(), Keeper()
        for keeper in keepers:
            forces = keeper is keepers[1]
            collector = GarbageCollector(
                keeper, store, node, "/ledgers", 900.0, lacks_room=lambda: bool(full), forces_when_full=forces
            )
            running = asyncio.ensure_future(collector.run())
            full.clear()
            await asyncio.sleep(100)
            assert keeper.forced == []
            full.add("the disk")
            await asyncio.sleep(20)
            assert keeper.forced.count("major") == forces
            running.cancel()

    on_machine(scenario)
