"""Reads across a socket: how much they ask for, and how long they wait for one another."""

import asyncio

from bookkeeper.network import network_bookie
from bookkeeper.network.link import AWAY
from bookkeeper.network.network_bookie import NetworkBookie
from bookkeeper.network.pending_requests import PendingRead
from ports.network.read_buffer import SharedRoom
from tests.bookie.runs import KEY, sealed
from tests.bookie.server.client import Served
from tests.bookkeeper.network.test_network_bookie import VERSIONS, Speaker, code_of, over_the_network
from tests.invariants import checked_after_each_step
from tests.simulation.worlds import run as on_loop

checked_machines = checked_after_each_step(PendingRead)


def test_the_size_of_a_read_request_goes_by_the_entries_of_that_ledger() -> None:
    """A bookie that was read a ledger of small entries was asked for 1,000 of the next one's at once, whatever their size."""

    async def scenario(at: Served, client: NetworkBookie) -> None:
        for first in range(0, 1000, 100):
            await client.add(sealed(7, first, count=100), KEY)
        for first in range(0, 100, 10):
            await client.add(sealed(8, first, count=10, size=100_000), KEY)
        for _ in range(20):
            await client.read(7, 0, 1000, 2 << 20)
        assert (await client.read(7, 0, 1000, 2 << 20)).count == 1000
        for _ in range(2):
            before = at.listener.stats.read_bytes
            assert (await client.read(8, 0, 100, 2 << 20)).count == 20
            assert at.listener.stats.read_bytes - before <= 2 * (2 << 20)
        assert (await client.read(7, 0, 1000, 2 << 20)).count == 1000

    over_the_network(scenario)


@VERSIONS
def test_reads_that_wait_for_others_do_not_wait_for_a_bookie_that_hangs_again_and_again(version: int) -> None:
    """Each READS_MAX waited for a time-out of their own: the last of 1,000 readers went to another bookie after minutes."""

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        silent = await loop.create_server(lambda: Speaker(b""), "localhost", 4000)
        client = NetworkBookie("b1", "localhost", 4000, SharedRoom(), 5.0, use_version2=version == 2)
        began = loop.time()
        reads = [client.read(7, entry_id, 1, 1) for entry_id in range(3 * network_bookie.READS_MAX)]
        assert {await code_of(read) for read in [loop.create_task(read) for read in reads]} == {AWAY}
        assert loop.time() - began < 7
        await client.close()
        silent.close()

    on_loop(lambda _: scenario())
