"""A bookie that lost everything copies what it should have from two others, on a disk that is cut off at each of its calls."""

import asyncio
import dataclasses
from collections.abc import Callable, Iterator, Mapping

import pytest

from bookie.bookie import Bookie
from bookie.disk_space.health import FORCED
from bookkeeper.ledger_end.ledger_recovery import recover_ledger
from bookkeeper.ledger_metadata.codec import LedgerMetadata, LedgerState, Segment, encode_ledger_metadata, master_key
from bookkeeper.ledger_metadata.paths import ledger_path
from bookkeeper.ledger_metadata.registry import LedgerRegistry, RegisteredLedger
from bookkeeper.ledgers import LedgerError
from bookkeeper.placement.candidates import Candidates
from bookkeeper.placement.quarantine import Quarantine
from bookkeeper.placement.rack_placement import AnyPlace
from bookkeeper.ports import BookieClient
from bookkeeper.write.quorum_tracker import Quorum
from cli.bookie.integrity import DataIntegrity
from cli.bookie.places import ledgers_of_bookie
from cli.bookie.replicas import BookieReplicas
from metadata.memory import MemoryStore
from simulation.disks.disk import SimDisk
from simulation.world.rng import stream
from tests.bookie.machines import SMALL, Machine, SimClock
from tests.bookie.runs import entries_of, sealed
from wire.bookie.codes import BookieCode, BookieError

ALLOWED = dataclasses.replace(SMALL, data_integrity_checking=True, data_integrity_stamp_missing_cookies=True)
LOST, OTHERS = "a:1", ("b:1", "c:1")
ENSEMBLE = (LOST, *OTHERS)
KEY = master_key(b"")
SIZE = 10
CLOSED, STRIPED, OPEN, OPEN_ELSEWHERE, EMPTY, DELETED, OF_OTHERS = range(1, 8)


def closed(metadata: LedgerMetadata, last_entry_id: int) -> LedgerMetadata:
    return metadata.closed(last_entry_id, (last_entry_id + 1) * SIZE)


LEDGERS: Mapping[int, LedgerMetadata] = {
    CLOSED: closed(LedgerMetadata(3, 3, 2, (Segment(0, ENSEMBLE),)), 19),
    STRIPED: closed(LedgerMetadata(3, 2, 2, (Segment(0, ENSEMBLE), Segment(7, (OTHERS[1], LOST, OTHERS[0])))), 14),
    OPEN: LedgerMetadata(3, 3, 2, (Segment(0, ENSEMBLE),)),
    OPEN_ELSEWHERE: LedgerMetadata(2, 2, 1, (Segment(0, (LOST, OTHERS[0])), Segment(6, OTHERS))),
    EMPTY: closed(LedgerMetadata(3, 3, 2, (Segment(0, ENSEMBLE),)), -1),
    DELETED: closed(LedgerMetadata(3, 3, 2, (Segment(0, ENSEMBLE),)), 2),
    OF_OTHERS: closed(LedgerMetadata(2, 2, 2, (Segment(0, OTHERS),)), 4),
}
WRITTEN = {CLOSED: 20, STRIPED: 15, OPEN: 10, OPEN_ELSEWHERE: 9, EMPTY: 0, DELETED: 3, OF_OTHERS: 5}


def due(ledger_id: int) -> Iterator[int]:
    """Entries of a ledger that the bookie had before it lost everything."""
    metadata = LEDGERS[ledger_id]
    quorum = Quorum(metadata.ensemble_size, metadata.write_quorum, metadata.ack_quorum)
    for entry_id in range(WRITTEN[ledger_id]):
        ensemble = [segment for segment in metadata.segments if segment.first_entry_id <= entry_id][-1].bookies
        if LOST in [ensemble[index] for index in quorum.write_set(entry_id)]:
            yield entry_id


class World:
    """Two bookies that stay, one that lost its disk, and the ledgers' metadata."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        machine.was_known = True
        self.store = MemoryStore(SimClock(machine.loop))
        self.registry = LedgerRegistry(self.store, stream(0, "registry"))
        self.bookies: dict[str, BookieClient] = {}
        self.others: list[Bookie] = []
        self.said: dict[BookieCode, int] = {}

    async def build(self) -> None:
        """All entries at their bookies; then the first one's directories are emptied."""
        loop = self.machine.loop
        await self.registry.initialise()
        for name in OTHERS:
            bookie = Bookie(SimDisk(loop, stream(0, name)), SMALL, SimClock(loop), stream(1, name))
            await bookie.start()
            self.bookies[name] = bookie
            self.others.append(bookie)
        self.bookies[LOST] = await self.machine.start()
        for ledger_id, metadata in LEDGERS.items():
            await self.store.put(ledger_path(ledger_id), encode_ledger_metadata(metadata))
            await self._write(ledger_id, metadata)
        self.machine.crash(power_cut=True)
        for path in self.machine.disk.paths():
            await self.machine.disk.remove(path)
        for directory in (SMALL.journal_directory, SMALL.ledger_directory):
            await self.machine.disk.sync_directory(directory)
        self.machine.settings = ALLOWED

    async def _write(self, ledger_id: int, metadata: LedgerMetadata) -> None:
        quorum = Quorum(metadata.ensemble_size, metadata.write_quorum, metadata.ack_quorum)
        for entry_id in range(WRITTEN[ledger_id]):
            ensemble = [segment for segment in metadata.segments if segment.first_entry_id <= entry_id][-1].bookies
            for index in quorum.write_set(entry_id):
                await self.bookies[ensemble[index]].add(sealed(ledger_id, entry_id, 1, SIZE), KEY)

    async def start(self) -> DataIntegrity:
        """Start as `cli.bookie.server` does."""
        bookie = self.bookies[LOST] = await self.machine.start()
        if bookie.needs_limbo:
            await bookie.enter_limbo(await ledgers_of_bookie(self.store, self.registry.layout, LOST))
        if await self.store.exists(ledger_path(DELETED)):
            await self.store.delete(ledger_path(DELETED))
        replicas = BookieReplicas(LOST, self.registry, self.bookies)
        return DataIntegrity(bookie, LOST, replicas, self._recover, bytes_per_second=0)

    async def _recover(self, ledger: RegisteredLedger) -> RegisteredLedger:
        candidates = Candidates(self.bookies, AnyPlace(stream(0, "place")), Quarantine(None, stream(0, "quarantine")))
        return await recover_ledger(ledger, self.registry, self.bookies, candidates, KEY)

    async def look(self) -> None:
        """Every entry that the bookie had: it is here and right, or nothing is known of it."""
        for ledger_id in LEDGERS:
            for entry_id in due(ledger_id):
                code = await self.said_of(ledger_id, entry_id)
                self.said[code] = self.said.get(code, 0) + 1

    async def said_of(self, ledger_id: int, entry_id: int) -> BookieCode:
        try:
            run = await self.machine.bookie.read(ledger_id, entry_id, 1, 1)
        except BookieError as error:
            return error.code
        (entry,) = entries_of(run).values()
        assert entry[36:] == entries_of(sealed(ledger_id, entry_id, 1, SIZE))[entry_id][36:]
        return BookieCode.EOK

    def check_said(self) -> None:
        assert self.said.keys() <= {BookieCode.EOK, BookieCode.EUNKNOWNLEDGERSTATE}, self.said

    async def check_whole(self) -> None:
        bookie = self.machine.bookie
        assert bookie.limbo_ids() == [DELETED]
        for ledger_id in LEDGERS:
            for entry_id in due(ledger_id):
                expected = BookieCode.EUNKNOWNLEDGERSTATE if ledger_id == DELETED else BookieCode.EOK
                assert await self.said_of(ledger_id, entry_id) is expected, (ledger_id, entry_id)
        assert await self.said_of(CLOSED, 20) is BookieCode.ENOENTRY
        assert await self.said_of(EMPTY, 0) is BookieCode.ENOENTRY
        assert await self.said_of(OF_OTHERS, 0) is BookieCode.ENOLEDGER
        recovered = (await self.registry.read(OPEN)).metadata
        assert (recovered.state, recovered.last_entry_id) == (LedgerState.CLOSED, 9)
        assert (await self.registry.read(OPEN_ELSEWHERE)).metadata == LEDGERS[OPEN_ELSEWHERE]
        with pytest.raises(BookieError) as caught:
            await bookie.add(sealed(OPEN, 10, 1, SIZE), KEY)
        assert caught.value.code is BookieCode.EFENCED

    async def stop(self) -> None:
        for bookie in self.others:
            await bookie.stop()


def on_world(scenario: Callable[[World], object], seed: int = 0) -> None:
    machine = Machine(seed, SMALL)

    async def run() -> None:
        world = World(machine)
        await world.build()
        await scenario(world)  # type: ignore[misc]
        await world.stop()

    try:
        machine.loop.run_until_complete(run())
    finally:
        machine.loop.finish()


def test_everything_is_here_again_and_stays() -> None:
    async def scenario(world: World) -> None:
        integrity = await world.start()
        await world.look()
        assert world.said.keys() == {BookieCode.EUNKNOWNLEDGERSTATE}
        assert await integrity.run_round() == 5
        copied = [entry_id for each in (CLOSED, STRIPED, OPEN, OPEN_ELSEWHERE) for entry_id in due(each)]
        assert integrity.entries_copied == len(copied) - 1  # the last one of the open ledger came by its recovery
        await world.check_whole()
        for power_cut in (True, False):
            world.machine.crash(power_cut=power_cut)
            integrity = await world.start()
            await world.check_whole()
            assert await integrity.run_round() == integrity.entries_copied == 0

    on_world(scenario)


async def cut_off(world: World, at: int) -> int:
    """A start and a round that are cut off at a call of the disk; how many calls there were when it ended by itself."""
    disk = world.machine.disk
    cut, begin = world.machine.loop.create_future(), disk.steps

    def on_step(step: int) -> None:
        if step == begin + at:
            world.machine.loop.call_soon(cut.set_result, None)

    async def life() -> None:
        await (await world.start()).run_round()

    async def watch() -> None:
        while True:
            await asyncio.sleep(0.001)
            if world.machine.alive and not world.machine.bookie.read_only_reason:
                await world.look()

    disk.on_step = on_step
    running, watching = asyncio.ensure_future(life()), asyncio.ensure_future(watch())
    await asyncio.wait([cut, running], return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        await running
    for task in (running, watching):
        task.cancel()
    await asyncio.wait([running, watching])
    disk.on_step = lambda step: None
    return disk.steps - begin


def test_cut_off_at_any_call_of_the_disk_it_goes_on_where_it_was_and_says_nothing_false() -> None:
    steps: list[int] = []

    async def whole(world: World) -> None:
        steps.append(await cut_off(world, 1 << 30))
        world.check_said()
        assert world.said.keys() == {BookieCode.EOK, BookieCode.EUNKNOWNLEDGERSTATE}

    async def scenario(world: World, at: int) -> None:
        await cut_off(world, at)
        world.machine.crash(power_cut=at % 2 == 0)
        integrity = await world.start()
        await world.look()
        await integrity.run_round()
        world.check_said()
        await world.check_whole()

    on_world(whole)
    assert steps[0] > 40
    for at in range(1, steps[0], 2):
        on_world(lambda world, at=at: scenario(world, at), seed=at)  # type: ignore[misc]


class Without(Mapping[str, BookieClient]):
    """The bookies but for one."""

    def __init__(self, bookies: Mapping[str, BookieClient], name: str) -> None:
        self._bookies, self._name = bookies, name

    def __getitem__(self, name: str) -> BookieClient:
        if name == self._name:
            raise KeyError(name)
        return self._bookies[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._bookies if name != self._name)

    def __len__(self) -> int:
        return len(list(iter(self)))


def test_ledgers_that_no_bookie_can_give_stay_in_limbo_until_one_can() -> None:
    async def scenario(world: World) -> None:
        integrity = await world.start()
        everybody = world.bookies
        world.bookies = dict(everybody)
        integrity._replicas._bookies = Without(everybody, OTHERS[0])
        await world.others[1].delete([CLOSED])
        await integrity.run_round()
        assert set(world.machine.bookie.limbo_ids()) == {CLOSED, STRIPED, OPEN_ELSEWHERE, DELETED}
        integrity._replicas._bookies = everybody
        await integrity.run_round()
        world.check_said()
        await world.check_whole()

    on_world(scenario)


def test_an_entry_that_is_lost_everywhere_keeps_its_ledger_in_limbo_and_the_others_of_it_come() -> None:
    async def scenario(world: World) -> None:
        integrity = await world.start()
        for other in world.others:
            span = sealed(CLOSED, 4, 1, SIZE)
            data = bytearray(span.buffer)
            data[-1] ^= 1
            await other.add(dataclasses.replace(span, buffer=bytes(data)), KEY, recovery=True)
        await integrity.run_round()
        said = [await world.said_of(CLOSED, entry_id) for entry_id in range(20)]
        unknown = [entry_id for entry_id, code in enumerate(said) if code is not BookieCode.EOK]
        assert (unknown, said[4]) == ([4], BookieCode.EUNKNOWNLEDGERSTATE)
        assert world.machine.bookie.limbo_ids() == [CLOSED, DELETED]

    on_world(scenario)


def test_while_the_bookie_takes_no_adds_nothing_leaves_limbo() -> None:
    async def scenario(world: World) -> None:
        integrity = await world.start()
        world.machine.bookie.health.turn_read_only(FORCED, "an operator said so")
        await integrity.run_round()
        assert world.machine.bookie.limbo_ids() == [CLOSED, STRIPED, OPEN, OPEN_ELSEWHERE, DELETED]
        world.machine.bookie.health.turn_writable(FORCED)
        await integrity.run_round()
        await world.check_whole()

    on_world(scenario)


def test_data_integrity_retries_by_itself_until_no_ledger_is_in_limbo() -> None:
    async def scenario(world: World) -> None:
        integrity = await world.start()
        failures = iter(range(3))

        async def recover(ledger: RegisteredLedger) -> RegisteredLedger:
            if next(failures, None) is not None:
                raise LedgerError("not now")
            return await world._recover(ledger)

        integrity._recover = recover
        running = asyncio.ensure_future(integrity.run())
        await asyncio.sleep(100)
        assert not running.done()
        await world.machine.bookie.delete([DELETED])
        await asyncio.wait_for(running, 300)
        assert world.machine.bookie.limbo_ids() == []
        assert next(failures, None) is None

    on_world(scenario)
