"""A bookie gives up a ledger that others have in its place, and no other ledger, even while a ledger is copied to it."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from bookie.bookie import Bookie
from bookie.upkeep.over_replication import LOOK_SECONDS, OverReplication
from bookkeeper.ledger_metadata.codec import LedgerMetadata, Segment, encode_ledger_metadata
from bookkeeper.ledger_metadata.paths import ledger_path
from bookkeeper.ledger_metadata.registry import LedgerRegistry
from bookkeeper.repair.underreplication.tree import encode_lock, lock_path
from cli.bookie.places import LedgerPlaces
from metadata.memory import MemoryStore
from metadata.store import ANY_VERSION, MetadataError, OutcomeUnknown, Stat
from simulation.world.rng import stream
from tests.bookie.machines import Machine, SimClock, on_machine
from tests.bookie.runs import KEY, entries_of, sealed
from wire.bookie.codes import BookieCode, BookieError

MINE, OTHERS = "a:1", ("b:1", "c:1")
HERE, ELSEWHERE, OPEN, UNREADABLE, UNKNOWN, FENCED = range(1, 7)


def of(*ensembles: tuple[str, ...]) -> LedgerMetadata:
    return LedgerMetadata(2, 2, 2, tuple(Segment(5 * index, bookies) for index, bookies in enumerate(ensembles)))


class Store(MemoryStore):
    """Store whose writes may lose their answer, whatever that was."""

    loses_answers = False
    fails = False

    async def put(
        self, path: str, value: bytes, expected_version: int = ANY_VERSION, *, ephemeral: bool = False, sequential: bool = False
    ) -> Stat:
        try:
            return await super().put(path, value, expected_version, ephemeral=ephemeral, sequential=sequential)
        finally:
            if self.loses_answers:
                raise OutcomeUnknown("the connection was lost")

    async def delete(self, path: str, expected_version: int = ANY_VERSION) -> None:
        if self.fails:
            raise MetadataError("connection loss")
        await super().delete(path, expected_version)


class World:
    """A bookie with six ledgers of which two are elsewhere."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.store = Store(SimClock(machine.loop))
        self.registry = LedgerRegistry(self.store, stream(0, "registry"))
        self.bookie: Bookie

    async def start(self) -> None:
        await self.registry.initialise()
        self.bookie = await self.machine.start()
        closed = of(OTHERS).closed(9, 100)
        for ledger_id, metadata in {
            HERE: of((OTHERS[0], MINE), OTHERS).closed(9, 100),
            ELSEWHERE: closed,
            OPEN: of(OTHERS),
            FENCED: closed,
        }.items():
            await self.store.put(ledger_path(ledger_id), encode_ledger_metadata(metadata))
        await self.store.put(ledger_path(UNREADABLE), b"nonsense")
        for ledger_id in range(1, 7):
            for entry_id in range(10):
                await self.bookie.add(sealed(ledger_id, entry_id), KEY)
        await self.bookie.fence(FENCED, KEY)
        await self.bookie.flush()
        self.collect()

    def collect(self) -> None:
        self.places = LedgerPlaces(self.store, self.registry, MINE)
        self.collector = OverReplication(self.bookie, self.places, 86_400)

    async def restart(self) -> None:
        self.machine.crash(power_cut=True)
        self.bookie = await self.machine.start()
        self.collect()

    async def locks(self) -> list[str]:
        return await self.store.children(lock_path(0).rpartition("/")[0])


def on_world(scenario: Callable[[World], Awaitable[None]]) -> None:
    async def run(machine: Machine) -> None:
        world = World(machine)
        await world.start()
        await scenario(world)

    on_machine(run)


async def code(awaitable: Awaitable[object]) -> BookieCode:
    with pytest.raises(BookieError) as caught:
        await awaitable
    return caught.value.code


def test_only_closed_ledgers_that_name_others_go_and_for_good() -> None:
    async def scenario(world: World) -> None:
        assert await world.collector.run_round() == [ELSEWHERE, FENCED]
        assert await world.locks() == []
        for _ in range(2):
            assert world.bookie.ledger_ids() == [HERE, OPEN, UNREADABLE, UNKNOWN]
            assert await code(world.bookie.read(ELSEWHERE, 0, 1, 1)) is BookieCode.ENOLEDGER
            assert (await world.bookie.read(HERE, 9, 1, 1)).count == 1
            assert await world.collector.run_round() == []
            await world.restart()

    on_world(scenario)


def test_over_replicated_ledgers_are_removed_at_the_interval_and_never_when_it_is_0() -> None:
    async def scenario(world: World) -> None:
        never = asyncio.create_task(OverReplication(world.bookie, world.places, 0).run())
        running = asyncio.create_task(world.collector.run())
        await asyncio.sleep(86_400 + LOOK_SECONDS - 1)
        assert never.done()
        assert len(world.bookie.ledger_ids()) == 6
        await asyncio.sleep(2)
        assert len(world.bookie.ledger_ids()) == 4
        running.cancel()
        await asyncio.wait([running])

    on_world(scenario)


def test_a_ledger_copied_here_between_the_two_looks_stays() -> None:
    """apache/bookkeeper#4668: an operator copies a ledger by hand, and names the bookie when all of it is there."""

    async def scenario(world: World) -> None:
        collecting = asyncio.create_task(world.collector.run_round())
        await asyncio.sleep(LOOK_SECONDS / 2)
        await world.bookie.add(sealed(ELSEWHERE, 3), KEY, recovery=True)
        await world.bookie.add(sealed(FENCED, 3), KEY, recovery=True)
        await world.bookie.flush()
        assert await collecting == []
        assert (await world.bookie.read(ELSEWHERE, 3, 1, 1)).count == 1

    on_world(scenario)


def test_a_ledger_not_yet_in_an_entry_log_stays() -> None:
    async def scenario(world: World) -> None:
        await world.bookie.add(sealed(ELSEWHERE, 10), KEY)
        assert await world.collector.run_round() == [FENCED]
        await world.bookie.flush()
        assert await world.collector.run_round() == [ELSEWHERE]

    on_world(scenario)


def test_a_ledger_that_names_the_bookie_again_before_the_second_look_stays() -> None:
    async def scenario(world: World) -> None:
        collecting = asyncio.create_task(world.collector.run_round())
        await asyncio.sleep(LOOK_SECONDS / 2)
        again = of((MINE, OTHERS[0])).closed(9, 100)
        await world.store.put(ledger_path(ELSEWHERE), encode_ledger_metadata(again))
        assert await collecting == [FENCED]

    on_world(scenario)


def test_a_ledger_that_somebody_repairs_stays_and_so_does_his_lock() -> None:
    async def scenario(world: World) -> None:
        await world.store.put(lock_path(ELSEWHERE), encode_lock("b:1"))
        assert await world.collector.run_round() == [FENCED]
        assert await world.locks() == [lock_path(ELSEWHERE).rpartition("/")[2]]
        world.store.loses_answers = True
        assert await world.collector.run_round() == []
        assert await world.locks() == [lock_path(ELSEWHERE).rpartition("/")[2]]

    on_world(scenario)


def test_a_lock_whose_answer_was_lost_is_ours_and_one_that_could_not_be_released_goes_later() -> None:
    async def scenario(world: World) -> None:
        world.store.loses_answers = True
        world.store.fails = True
        assert await world.collector.run_round() == []
        assert world.bookie.ledger_ids() == [HERE, OPEN, UNREADABLE, UNKNOWN, FENCED]
        assert len(await world.locks()) == 1
        world.store.fails = False
        assert await world.collector.run_round() == [FENCED]
        assert await world.locks() == []

    on_world(scenario)


@pytest.mark.parametrize("flushes", [True, False])
def test_a_repair_brings_a_ledger_back_and_its_old_writer_does_not(flushes: bool) -> None:
    async def scenario(world: World) -> None:
        await world.collector.run_round()
        assert await code(world.bookie.add(sealed(FENCED, 10), KEY)) is BookieCode.EFENCED
        await world.restart()
        assert await code(world.bookie.add(sealed(FENCED, 10), KEY)) is BookieCode.EFENCED
        for entry_id in range(3):
            await world.bookie.add(sealed(FENCED, entry_id), KEY, recovery=True)
        if flushes:
            await world.bookie.flush()
        for _ in range(2):
            for entry_id in range(3):
                assert entries_of(await world.bookie.read(FENCED, entry_id, 1, 1)) == entries_of(sealed(FENCED, entry_id))
            assert await code(world.bookie.add(sealed(FENCED, 10), KEY)) is BookieCode.EFENCED
            await world.restart()

    on_world(scenario)


def test_a_removed_ledger_that_enters_limbo_is_unknown() -> None:
    async def scenario(world: World) -> None:
        await world.collector.run_round()
        world.bookie._ledgers.enter_limbo([FENCED])
        assert await code(world.bookie.read(FENCED, 0, 1, 1)) is BookieCode.EUNKNOWNLEDGERSTATE

    on_world(scenario)
