"""A flush leaves the loop to others between two slices, unless adds wait for it."""

import asyncio

from bookie.adds.flusher import PAUSE_SECONDS
from tests.bookie.machines import SMALL, Machine, on_machine
from tests.bookie.runs import KEY, sealed

RUNS = 60


async def seconds_of_a_flush(machine: Machine, following: int) -> float:
    """Virtual time of the flush of one table, while the other one has so many runs of 10,000 bytes already."""
    bookie = await machine.start()
    for number in range(RUNS):
        await bookie.add(sealed(number, 0, 1, 100), KEY)
    flush = asyncio.ensure_future(bookie.flush())
    await asyncio.sleep(0)
    for number in range(following):
        await bookie.add(sealed(RUNS + number, 0, 1, 10_000), KEY)
    began = machine.loop.time()
    await bookie._flusher._pause()
    paused = machine.loop.time() - began
    await flush
    return paused


def test_a_flush_pauses_while_the_other_table_has_room() -> None:
    async def scenario(machine: Machine) -> None:
        assert await seconds_of_a_flush(machine, 0) >= PAUSE_SECONDS

    on_machine(scenario, settings=SMALL)


def test_a_flush_goes_on_at_once_where_adds_fill_the_other_table() -> None:
    async def scenario(machine: Machine) -> None:
        assert await seconds_of_a_flush(machine, 30) < PAUSE_SECONDS

    on_machine(scenario, settings=SMALL)
