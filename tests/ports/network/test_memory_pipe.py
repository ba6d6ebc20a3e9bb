"""A pipe between two protocols of one process behaves as a socket does."""

import asyncio

from ports.network.memory_pipe import TURN_BYTES, PipeEnd, connect
from tests.simulation.worlds import World, run


class Plain(asyncio.Protocol):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.data = b""
        self.parts = 0
        self.transport: PipeEnd

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, PipeEnd)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data
        self.parts += 1

    def pause_writing(self) -> None:
        self.told.append("pause")

    def resume_writing(self) -> None:
        self.told.append("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self.told.append("lost")


class Buffered(asyncio.BufferedProtocol):
    """Has room for five bytes at a time."""

    def __init__(self) -> None:
        self.data, self._room = b"", bytearray(5)

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        self.data += self._room[:nbytes]


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def pair() -> tuple[Plain, Plain]:
    server, client = Plain(), Plain()
    connect(lambda: server, lambda: client, {"peername": ("10.0.0.1", 5)})
    return server, client


def test_bytes_arrive_in_order_in_a_later_turn_and_the_server_knows_its_peer() -> None:
    async def scenario(world: World) -> None:
        server, client = pair()
        assert server.transport.get_extra_info("peername") == ("10.0.0.1", 5)
        buffer = bytearray(b"ab")
        client.transport.write(buffer)
        buffer[:] = b"??"
        client.transport.writelines([b"c", b"d"])
        assert server.data == b""
        await turns()
        assert server.data == b"abcd"
        server.transport.write(b"back")
        await turns()
        assert client.data == b"back"

    run(scenario)


def test_a_protocol_with_a_buffer_gets_all_in_parts_that_fit() -> None:
    async def scenario(world: World) -> None:
        server = Buffered()
        client = connect(lambda: server, Plain, {})
        client.write(b"0123456789abc")
        await turns()
        assert server.data == b"0123456789abc"

    run(scenario)


def test_a_writer_is_paused_while_the_reader_is_and_goes_on_after_it() -> None:
    async def scenario(world: World) -> None:
        server, client = pair()
        client.transport.set_write_buffer_limits(10, 4)
        server.transport.pause_reading()
        client.transport.write(b"x" * 10)
        assert client.told == []
        client.transport.write(b"x")
        assert client.told == ["pause"]
        assert client.transport.get_write_buffer_size() == 11
        await turns()
        assert server.data == b""
        server.transport.resume_reading()
        await turns()
        assert (len(server.data), client.told) == (11, ["pause", "resume"])

    run(scenario)


def test_one_turn_hands_over_a_bounded_number_of_bytes() -> None:
    async def scenario(world: World) -> None:
        server, client = pair()
        for _ in range(8):
            client.transport.write(bytes(TURN_BYTES // 2))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert server.parts < 8
        await turns()
        assert server.parts == 8

    run(scenario)


def test_closing_sends_what_was_written_and_ends_both_sides_once() -> None:
    async def scenario(world: World) -> None:
        server, client = pair()
        client.transport.write(b"last")
        client.transport.close()
        client.transport.close()
        client.transport.write(b"too late")
        await turns()
        assert (server.data, server.told, client.told) == (b"last", ["lost"], ["lost"])

    run(scenario)


def test_aborting_drops_what_was_written() -> None:
    async def scenario(world: World) -> None:
        server, client = pair()
        client.transport.write(b"gone")
        client.transport.abort()
        await turns()
        assert (server.data, server.told, client.told) == (b"", ["lost"], ["lost"])

    run(scenario)
