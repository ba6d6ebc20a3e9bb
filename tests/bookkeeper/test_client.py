"""The ledger client on the project's own bookies, in a simulated process that is killed or loses power in mid-traffic."""

import asyncio
import dataclasses
from random import Random

import pytest

from bookie.bookie import Bookie
from bookkeeper.client import BookKeeper
from bookkeeper.ledgers import LedgerReader
from bookkeeper.settings import BookKeeperSettings
from metadata.memory import MemoryStore, SharedTree
from simulation.world.clock import SimClock
from simulation.world.process import SimProcess
from tests.bookie.machines import SMALL
from tests.bookkeeper.fake_bookies import batch, payloads_of
from tests.simulation.worlds import World, run
from wire.run import EntryRun

LIVES = 4
PAYLOAD_BYTES = 700


def payload(ledger_id: int, entry_id: int) -> bytes:
    return (b"%d:%d " % (ledger_id, entry_id)).ljust(PAYLOAD_BYTES, b".")


class Host:
    """One process with its bookies and a ledger client, as in a standalone. `acknowledged` outlives the process."""

    def __init__(self, world: World, seed: int, sizes: tuple[int, int, int]) -> None:
        self.world, self.seed = world, seed
        self.settings = BookKeeperSettings(*sizes)
        self.settings_sizes = sizes
        self.picked = 0
        self.shared = SharedTree()
        self.acknowledged: dict[int, int] = {}
        self.found: dict[int, tuple[int, int]] = {}
        self.ready: asyncio.Future[None]
        self.process = SimProcess(world.loop, world.network, "host", world.disk, self._main)

    async def _main(self) -> None:
        bookies = {
            f"b{number}": await self._bookie(number) for number in range(self.settings.managed_ledger_default_ensemble_size)
        }
        store = MemoryStore(SimClock(self.world.loop), self.shared)
        client = BookKeeper(bookies, store, self.settings, Random(self.seed))
        await client.initialise()
        for ledger_id in sorted(self.acknowledged):
            await self._check(client, ledger_id)
        self.ready.set_result(None)
        writer = await client.create({})
        self.acknowledged[writer.ledger_id] = -1
        rng = Random(self.seed)
        while True:
            first = writer.next_entry_id
            future = writer.append(batch(*(payload(writer.ledger_id, first + at) for at in range(rng.randrange(1, 6)))))
            future.add_done_callback(self._acknowledge)
            if rng.random() < 0.3:
                await future

    async def _bookie(self, number: int) -> Bookie:
        directory = f"/data/{number}"
        settings = dataclasses.replace(
            SMALL, journal_directories=(f"{directory}/journal",), ledger_directories=(f"{directory}/ledgers",)
        )
        bookie = Bookie(self.world.disk, settings, SimClock(self.world.loop), Random(number))
        await bookie.start()
        return bookie

    def _acknowledge(self, future: "asyncio.Future[EntryRun]") -> None:
        stored = future.result()
        assert stored.first_entry_id == self.acknowledged[stored.ledger_id] + 1
        self.acknowledged[stored.ledger_id] = stored.last_entry_id

    async def _check(self, client: BookKeeper, ledger_id: int) -> None:
        reader = await client.open(ledger_id)
        assert reader.last_entry_id >= self.acknowledged[ledger_id]
        end = (reader.last_entry_id, reader.length_bytes)
        assert self.found.setdefault(ledger_id, end) == end
        entry_id = 0
        while entry_id <= reader.last_entry_id:
            read = payloads_of(await reader.read(entry_id, 1000, 1 << 20))
            assert read == [payload(ledger_id, entry_id + at) for at in range(len(read))]
            entry_id += len(read)
        await self._check_picks(client, reader)

    async def _check_picks(self, client: BookKeeper, reader: LedgerReader) -> None:
        """Check that picked entries are right, and complete where one bookie has everything."""
        wanted = Random(self.seed).sample(range(reader.last_entry_id + 1), (reader.last_entry_id + 1) // 3)
        found = {run.first_entry_id: payloads_of(run) for run in await client.pick([(reader, sorted(wanted))], 1 << 20)}
        assert found == {entry_id: [payload(reader.ledger_id, entry_id)] for entry_id in found}
        assert found.keys() <= set(wanted)
        if len(self.settings_sizes) == self.settings_sizes.count(1):
            assert found.keys() == set(wanted)
        self.picked += len(found)


@pytest.mark.parametrize("sizes", [(1, 1, 1), (3, 3, 2), (3, 2, 2)])
@pytest.mark.parametrize("seed", range(6))
def test_acknowledged_entries_survive_kills_and_power_cuts(seed: int, sizes: tuple[int, int, int]) -> None:
    async def scenario(world: World) -> None:
        host, rng = Host(world, seed, sizes), Random(seed)
        for _ in range(LIVES):
            host.ready = world.loop.create_future()
            host.process.start()
            await host.ready
            await asyncio.sleep(rng.random() * 0.05)
            if rng.random() < 0.5:
                host.process.kill()
            else:
                host.process.cut_power()
        assert sum(host.acknowledged.values()) > 0
        assert host.picked > 0

    run(scenario, seed)
