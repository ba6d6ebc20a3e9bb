"""SimNetwork and SimTransport: streams keep their bytes and their order, and end as TCP's do."""

import asyncio
import contextvars
import io
import random
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

from simulation.world.loop import HARDWARE, OWNER, SimulationFailure
from simulation.world.process import Incarnation
from simulation.world.transport import SimTransport
from tests.simulation.worlds import World, run

T = TypeVar("T")


class Recorder(asyncio.Protocol):
    """Keeps all that happens to it."""

    def __init__(self) -> None:
        self.transport: SimTransport
        self.received = bytearray()
        self.pieces: list[int] = []
        self.pauses = 0
        self.resumes = 0
        self.has_eof = False
        self.keep_open = False
        self.lost: list[Exception | None] = []
        self.changed = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, SimTransport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        assert not self.lost
        self.received += data
        self.pieces.append(len(data))
        self.changed.set()

    def pause_writing(self) -> None:
        self.pauses += 1

    def resume_writing(self) -> None:
        self.resumes += 1

    def eof_received(self) -> bool:
        self.has_eof = True
        return self.keep_open

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.append(exc)
        self.changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not condition():
                self.changed.clear()
                await self.changed.wait()


class BufferedRecorder(Recorder, asyncio.BufferedProtocol):
    """The same through get_buffer and buffer_updated, with a small buffer."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.buffer = bytearray(100)

    def get_buffer(self, sizehint: int) -> bytearray:
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(bytes(self.buffer[:nbytes]))


async def on_host(host: str, work: Coroutine[Any, Any, T]) -> tuple[T, Incarnation]:
    """Run `work` as a process of its own on `host`."""
    life = Incarnation(host, host, 1)
    context = contextvars.Context()
    context.run(OWNER.set, life)
    return await asyncio.get_running_loop().create_task(work, context=context), life


async def pair(world: World, kind: type[Recorder] = Recorder) -> tuple[Recorder, Recorder, Incarnation, Incarnation]:
    """A connection from host `c` to host `s`: client, server, and the two processes."""
    accepted: list[Recorder] = []

    def accept() -> Recorder:
        accepted.append(kind())
        return accepted[-1]

    _, server_life = await on_host("s", world.loop.create_server(accept, None, 6650))
    (_, client), client_life = await on_host("c", world.loop.create_connection(kind, "s", 6650))
    await asyncio.sleep(0.1)
    return client, accepted[0], client_life, server_life


@pytest.mark.parametrize("kind", [Recorder, BufferedRecorder])
@pytest.mark.parametrize("seed", range(12))
def test_bytes_arrive_whole_and_in_order_however_they_are_cut(seed: int, kind: type[Recorder]) -> None:
    rng = random.Random(seed)
    sent = [rng.randbytes(rng.choice((0, 1, 7, 300, 5000))) for _ in range(60)]

    async def scenario(world: World) -> tuple[Recorder, Recorder]:
        client, server, _, _ = await pair(world, kind)
        for data in sent:
            client.transport.write(memoryview(data))
            server.transport.writelines([data[:3], bytearray(data[3:])])
            await asyncio.sleep(rng.choice((0, 0, 0.001)))
        size = sum(map(len, sent))
        await client.until(lambda: len(client.received) == size)
        await server.until(lambda: len(server.received) == size)
        return client, server

    client, server = run(scenario, seed)
    assert client.received == server.received == b"".join(sent)


def test_the_same_seed_cuts_the_same_and_another_cuts_otherwise() -> None:
    def pieces(seed: int) -> tuple[list[int], str]:
        sink = io.StringIO()

        async def scenario(world: World) -> list[int]:
            client, server, _, _ = await pair(world)
            for _ in range(50):
                client.transport.write(bytes(1000))
                await asyncio.sleep(0.001)
            await server.until(lambda: len(server.received) == 50_000)
            return server.pieces

        return run(scenario, seed, sink), sink.getvalue()

    assert pieces(5) == pieces(5)
    assert pieces(5) != pieces(6)


@pytest.mark.parametrize("seed", range(5))
def test_a_reader_that_pauses_stops_the_writer_and_loses_nothing(seed: int) -> None:
    data = random.Random(seed).randbytes(3_000_000)

    async def scenario(world: World) -> Recorder:
        client, server, _, _ = await pair(world)
        server.transport.pause_reading()
        client.transport.write(data)
        assert client.pauses == 1
        await asyncio.sleep(10)
        assert client.resumes == 0
        assert not server.received
        assert client.transport.get_write_buffer_size() > 64 * 1024
        server.transport.resume_reading()
        await server.until(lambda: len(server.received) == len(data))
        await asyncio.sleep(1)
        assert (client.pauses, client.resumes) == (1, 1)
        return server

    assert run(scenario, seed).received == data


def test_write_buffer_limits_decide_when_the_protocol_is_paused() -> None:
    async def scenario(world: World) -> None:
        client, server, _, _ = await pair(world)
        server.transport.pause_reading()
        client.transport.set_write_buffer_limits(high=0)
        client.transport.write(bytes(2_000_000))
        assert client.pauses == 1
        assert client.transport.get_write_buffer_limits() == (0, 0)

    run(scenario)


@pytest.mark.parametrize("seed", range(5))
def test_close_sends_what_was_written_and_then_the_end(seed: int) -> None:
    async def scenario(world: World) -> None:
        client, server, _, _ = await pair(world)
        client.transport.write(bytes(500_000))
        client.transport.close()
        client.transport.write(b"too late")
        assert client.transport.is_closing()
        await server.until(lambda: bool(server.lost))
        assert len(server.received) == 500_000
        assert server.has_eof
        assert server.lost == client.lost == [None]

    run(scenario, seed)


def test_abort_is_a_reset_for_the_peer() -> None:
    async def scenario(world: World) -> None:
        client, server, _, _ = await pair(world)
        client.transport.abort()
        await server.until(lambda: bool(server.lost))
        assert client.lost == [None]
        assert isinstance(server.lost[0], ConnectionResetError)

    run(scenario)


def test_write_eof_ends_one_direction_only() -> None:
    async def scenario(world: World) -> None:
        client, server, _, _ = await pair(world)
        server.keep_open = True
        client.transport.write(b"question")
        client.transport.write_eof()
        with pytest.raises(RuntimeError):
            client.transport.write(b"more")
        await asyncio.sleep(1)
        assert server.has_eof
        assert not server.lost
        server.transport.write(b"answer")
        await client.until(lambda: client.received == b"answer")

    run(scenario)


def test_a_paused_reader_does_not_notice_the_end_of_its_peer() -> None:
    async def scenario(world: World) -> None:
        client, server, _, _ = await pair(world)
        server.transport.pause_reading()
        client.transport.abort()
        await asyncio.sleep(5)
        assert not server.lost
        server.transport.resume_reading()
        await server.until(lambda: bool(server.lost))

    run(scenario)


def test_a_buffer_that_changes_after_write_fails_the_run() -> None:
    async def scenario(world: World) -> None:
        client, _, _, _ = await pair(world)
        buffer = bytearray(b"before")
        client.transport.write(buffer)
        buffer[0] = 0
        await asyncio.sleep(1)

    with pytest.raises(SimulationFailure, match="changed after it was written"):
        run(scenario)


def test_a_partition_holds_packets_until_it_is_healed() -> None:
    async def scenario(world: World) -> None:
        client, server, _, _ = await pair(world)
        world.network.cut("c", "s")
        client.transport.write(b"one")
        client.transport.write(b"two")
        server.transport.write(b"back")
        await asyncio.sleep(30)
        assert not server.received
        assert client.received == b"back", "the cut is in one direction"
        world.network.heal()
        await server.until(lambda: server.received == b"onetwo")

    run(scenario)


def test_a_connect_through_a_partition_times_out_and_to_a_closed_port_is_refused() -> None:
    async def scenario(world: World) -> None:
        with pytest.raises(ConnectionRefusedError):
            await world.loop.create_connection(Recorder, "s", 1)
        world.network.cut("s", "outside")
        with pytest.raises(TimeoutError):
            await world.loop.create_connection(Recorder, "s", 1)

    run(scenario)


@pytest.mark.parametrize("seed", range(10))
def test_a_killed_process_ends_its_connections_and_its_ports(seed: int) -> None:
    async def scenario(world: World) -> None:
        client, server, _, server_life = await pair(world)
        server_life.alive = False
        world.network.drop_process(server_life, power_cut=False)
        await client.until(lambda: bool(client.lost))
        assert not server.lost, "nothing of a dead process runs"
        with pytest.raises(ConnectionRefusedError):
            await world.loop.create_connection(Recorder, "s", 6650)

    run(scenario, seed)


@pytest.mark.parametrize("seed", range(10))
def test_after_a_power_cut_the_peer_is_half_open_until_it_sends_to_the_host_that_is_back(seed: int) -> None:
    async def scenario(world: World) -> None:
        client, _, _, server_life = await pair(world)
        server_life.alive = False
        world.network.set_power("s", on=False)
        world.network.drop_process(server_life, power_cut=True)
        if seed % 2:
            client.transport.write(b"is anybody there")
        await asyncio.sleep(100)
        assert not client.lost
        world.network.set_power("s", on=True)
        if not seed % 2:
            await asyncio.sleep(100)
            assert not client.lost
            client.transport.write(b"and now")
        await client.until(lambda: bool(client.lost))

    run(scenario, seed)


def test_a_reset_reaches_both_ends() -> None:
    async def scenario(world: World) -> None:
        client, server, _, _ = await pair(world)
        world.network.reset(client.transport)
        await asyncio.sleep(1)
        assert isinstance(client.lost[0], ConnectionResetError)
        assert isinstance(server.lost[0], ConnectionResetError)

    run(scenario)


def test_a_closed_server_accepts_no_one_and_keeps_its_connections() -> None:
    async def scenario(world: World) -> None:
        server = await world.loop.create_server(Recorder, "localhost", 0)
        port = server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]  # AbstractServer in typeshed has no sockets
        transport, _ = await world.loop.create_connection(Recorder, "localhost", port)
        server.close()
        await server.wait_closed()
        await asyncio.sleep(1)
        assert not transport.is_closing()
        with pytest.raises(ConnectionRefusedError):
            await world.loop.create_connection(Recorder, "localhost", port)

    run(scenario)


def test_connections_overtake_each_other() -> None:
    seen: list[str] = []

    class Note(Recorder):
        def data_received(self, data: bytes) -> None:
            seen.append(data.decode())

    async def scenario(world: World) -> None:
        await world.loop.create_server(Note, None, 1)
        ends = [await world.loop.create_connection(Recorder, "outside", 1) for _ in range(8)]
        for number, (transport, _) in enumerate(ends):
            transport.write(str(number).encode())
        await asyncio.sleep(1)

    run(scenario)
    assert sorted(seen) == list("01234567")
    assert seen != list("01234567")
    assert len(HARDWARE) == 0, "the machine's own context is nobody's"
