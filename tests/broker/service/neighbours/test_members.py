"""Members of a cluster: two brokers with one address are not both registered."""

import asyncio

import pytest

from broker.service.addresses import BROKERS
from broker.service.neighbours.members import CONTEST_SECONDS, MemberConflict
from metadata.memory import MemoryStore, SharedTree
from ports.clock import RealClock
from tests.broker.service.houses import House, play


def test_a_second_process_with_the_addresses_of_one_that_runs_is_refused_and_the_first_stays() -> None:
    async def scenario() -> None:
        shared = SharedTree()
        first, second = House("b", shared), House("b", shared)
        await first.start()
        with pytest.raises(MemberConflict, match="advertisedAddress"):
            await second.members.contest()
        await second.members.leave()
        await asyncio.sleep(1)
        assert await first.members.ids() == ["b:8080"]
        await second.stop()
        await first.stop()

    play(scenario)


def test_a_broker_that_was_killed_is_back_in_its_place_soon() -> None:
    """The old session is not over, and its node still exists."""

    async def scenario() -> None:
        shared = SharedTree()
        killed, again = MemoryStore(RealClock(), shared, alone=False), House("b", shared)
        other = House("other", shared)
        await other.start()
        await killed.put(f"{BROKERS}/b:8080", again.members._data, ephemeral=True)
        began = asyncio.get_running_loop().time()
        await again.members.contest()
        assert asyncio.get_running_loop().time() - began < CONTEST_SECONDS + 0.1
        await again.start()
        assert await other.members.ids() == ["b:8080", "other:8080"]
        for house in (again, other):
            await house.stop()
        await killed.close()

    play(scenario)


def test_a_place_that_is_free_or_anothers_is_not_touched() -> None:
    async def scenario() -> None:
        shared = SharedTree()
        house, other = House("b", shared), MemoryStore(RealClock(), shared, alone=False)
        began = asyncio.get_running_loop().time()
        await house.members.contest()
        await other.put(f"{BROKERS}/b:8080", b"{}", ephemeral=True)
        await house.members.contest()
        assert asyncio.get_running_loop().time() < began + 0.1, "nobody is waited for"
        with pytest.raises(MemberConflict, match="taken by another broker"):
            await house.members.join()
        found = await other.get(f"{BROKERS}/b:8080")
        assert found is not None
        assert found.value == b"{}"
        await house.stop()
        await other.close()

    play(scenario)
