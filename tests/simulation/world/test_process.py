"""SimProcess: a killed process does nothing more, at whatever moment it was killed; its disk and its peers go on."""

import asyncio
import io

import pytest

from simulation.world.loop import OWNER, SimulationFailure
from simulation.world.process import SimProcess
from tests.simulation.worlds import World, run


class Echo(asyncio.Protocol):
    """Answers with what it gets, after writing it to a log on disk and syncing it."""

    def __init__(self, world: World, disk_lock: asyncio.Lock) -> None:
        self.world, self.lock = world, disk_lock
        self.tasks: list[asyncio.Task[None]] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.tasks.append(asyncio.create_task(self.answer(data)))

    async def answer(self, data: bytes) -> None:
        async with self.lock:
            file = await self.world.disk.open("/log", create=True)
            await file.write(file.size(), [data], sync=True)
            await self.world.disk.sync_directory("/")
            self.transport.write(data)


def echo_server(world: World) -> SimProcess:
    async def main() -> None:
        lock = asyncio.Lock()
        await world.loop.create_server(lambda: Echo(world, lock), None, 7)
        await asyncio.Event().wait()

    return SimProcess(world.loop, world.network, "server", world.disk, main)


async def log_on_disk(world: World) -> bytes:
    if not await world.disk.exists("/log"):
        return b""
    file = await world.disk.open("/log")
    return await file.read(0, file.size())


async def exchange(world: World, received: bytearray, patience: float) -> None:
    """Send numbered bytes to the server until it fails, and keep what comes back."""
    reader, writer = await asyncio.open_connection("server", 7)
    try:
        for number in range(200):
            writer.write(bytes([number]))
            async with asyncio.timeout(patience):
                received += await reader.readexactly(1)
    finally:
        writer.close()


@pytest.mark.parametrize("power_cut", [False, True])
@pytest.mark.parametrize("seed", range(15))
def test_answered_bytes_are_on_disk_whenever_the_process_is_killed(seed: int, power_cut: bool) -> None:
    async def scenario(world: World) -> None:
        server, received = echo_server(world), bytearray()
        server.start()
        await asyncio.sleep(0.01)
        end = server.cut_power if power_cut else server.kill
        world.loop.hardware_later(0.05 + seed * 0.0031, end)
        with pytest.raises((ConnectionError, TimeoutError, asyncio.IncompleteReadError)):
            await exchange(world, received, patience=5)
        assert received
        assert (await log_on_disk(world)).startswith(received)
        server.start()
        await asyncio.sleep(0.01)
        await exchange(world, bytearray(), patience=5)

    run(scenario, seed)


def test_nothing_of_a_killed_process_runs_not_even_its_finally_blocks() -> None:
    ran: list[str] = []
    lives: list[str] = []

    async def child() -> None:
        try:
            await asyncio.sleep(1)
            ran.append("went on")
        finally:
            ran.append("finally")

    async def scenario(world: World) -> None:
        async def main() -> None:
            if lives:
                return
            lives.append("first")
            asyncio.get_running_loop().call_later(1, ran.append, "timer")
            async with asyncio.TaskGroup() as group:
                group.create_task(child())

        process = SimProcess(world.loop, world.network, "p", None, main)
        process.start()
        await asyncio.sleep(0.5)
        process.kill()
        process.start()
        await asyncio.sleep(10)
        assert not process.alive
        assert not ran, "nor when the last reference to them goes"

    run(scenario)


def test_a_process_that_dies_of_an_error_says_of_which() -> None:
    async def scenario(world: World) -> None:
        async def main() -> None:
            await asyncio.sleep(1)
            raise LookupError

        process = SimProcess(world.loop, world.network, "p", None, main, may_die=True)
        process.start()
        await asyncio.sleep(0.5)
        lives = [process.alive]
        await asyncio.sleep(1)
        lives.append(process.alive)
        assert isinstance(process.error, LookupError)
        process.start()
        assert [*lives, process.alive] == [True, False, True]
        assert process.error is None

    run(scenario)


def test_an_exception_in_the_background_of_a_process_ends_the_run() -> None:
    async def scenario(world: World) -> None:
        async def main() -> None:
            asyncio.get_running_loop().call_later(1, [].pop)
            await asyncio.sleep(5)

        SimProcess(world.loop, world.network, "p", None, main).start()
        await asyncio.sleep(9)

    with pytest.raises(SimulationFailure, match="IndexError"):
        run(scenario)


def life_of_a_server(seed: int) -> str:
    sink = io.StringIO()

    async def scenario(world: World) -> None:
        server = echo_server(world)
        for _ in range(4):
            server.start()
            await asyncio.sleep(0.01)
            world.loop.hardware_later(0.05, server.kill)
            with pytest.raises((ConnectionError, TimeoutError, asyncio.IncompleteReadError)):
                await exchange(world, bytearray(), patience=5)

    run(scenario, seed, sink)
    return sink.getvalue()


def test_a_seed_replays_byte_for_byte() -> None:
    first = life_of_a_server(1)
    assert len(first.splitlines()) > 100
    assert life_of_a_server(1) == first
    assert life_of_a_server(2) != first


def host_now() -> str:
    owner = OWNER.get()
    return "nowhere" if owner is None else owner.host


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_promise_resolved_from_outside_is_heard_in_its_own_process_or_never(is_killed: bool) -> None:
    async def scenario(world: World) -> list[str]:
        made, told = asyncio.Event(), list[str]()
        promises: list[asyncio.Future[int]] = []

        async def main() -> None:
            for _ in range(2):
                promise = world.loop.create_promise()
                promise.listen(lambda done: told.append(f"{done.result()} in {host_now()}"))
                promises.append(promise)
            promises[0].set_result(1)
            assert len(told) == 1  # its own
            made.set()
            await asyncio.Event().wait()

        process = SimProcess(world.loop, world.network, "host", world.disk, main)
        process.start()
        await made.wait()
        promises[1].set_result(2)
        assert len(told) == 1
        if is_killed:
            process.kill()
        await asyncio.sleep(1)
        return told

    told = run(scenario)
    assert told == (["1 in host"] if is_killed else ["1 in host", "2 in host"])
