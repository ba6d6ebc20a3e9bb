"""A port's end waits for its connections, for so long and no longer; a socket that others share is left to them."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from ports.network.server_port import ServerPort

LOG = logging.getLogger("tests.server_port")


class Connection(asyncio.Protocol):
    """Says hello, and ends when it is told to unless it is stubborn."""

    def __init__(self, port: "ServerPort[Connection]", *, is_stubborn: bool = False) -> None:
        self._port, self._is_stubborn = port, is_stubborn

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._port.opened(self)
        self.transport.write(b"hello\n")

    def connection_lost(self, exc: Exception | None) -> None:
        self._port.gone(self)

    def close(self) -> None:
        if not self._is_stubborn:
            self.transport.close()


def played(scenario: Callable[[ServerPort[Connection]], Coroutine[Any, Any, None]], end_seconds: float = 20.0) -> None:
    async def bounded() -> None:
        port = ServerPort[Connection](LOG, end_seconds)
        async with asyncio.timeout(20):
            await scenario(port)
            await port.close()
            for connection in port.connections:
                connection.transport.abort()
            await asyncio.sleep(0)

    asyncio.run(bounded())


@asynccontextmanager
async def greeted(number: int) -> AsyncIterator[asyncio.StreamReader]:
    reader, writer = await asyncio.open_connection("127.0.0.1", number)
    try:
        assert await reader.readline() == b"hello\n"
        yield reader
    finally:
        writer.close()
        await writer.wait_closed()


def test_the_close_ends_connections_and_waits_until_all_are_gone() -> None:
    async def scenario(port: ServerPort[Connection]) -> None:
        await port.listen(lambda: Connection(port), "127.0.0.1", 0, 10)
        async with greeted(port.number) as one, greeted(port.number) as other:
            assert port.connection_count == 2
            await port.close()
            assert port.connection_count == 0
            assert (await one.read(), await other.read()) == (b"", b"")

    played(scenario)


def test_connections_that_do_not_end_in_time_are_logged_with_their_number(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(port: ServerPort[Connection]) -> None:
        await port.listen(lambda: Connection(port, is_stubborn=True), "127.0.0.1", 0, 10)
        async with greeted(port.number):
            await port.close()
            assert '"connections did not end in time" count=1' in caplog.text

    played(scenario, end_seconds=0.01)


def test_a_port_that_never_listened_closes_at_once() -> None:
    async def scenario(port: ServerPort[Connection]) -> None:
        await port.close()

    played(scenario)


def test_a_port_that_is_taken_is_an_error() -> None:
    async def scenario(port: ServerPort[Connection]) -> None:
        await port.listen(lambda: Connection(port), "127.0.0.1", 0, 10)
        with pytest.raises(OSError, match="address already in use"):
            await ServerPort[Connection](LOG, 1.0).listen(asyncio.Protocol, "127.0.0.1", port.number, 10)

    played(scenario)


def test_connections_at_a_shared_socket_stay_when_the_port_leaves_it() -> None:
    async def scenario(port: ServerPort[Connection]) -> None:
        shared = socket.socket()
        shared.bind(("127.0.0.1", 0))
        number = shared.getsockname()[1]
        await port.listen_in_front(lambda: Connection(port), shared, 10)
        async with greeted(number) as reader:
            port.leave_front()
            port.leave_front()
            assert port.connection_count == 1
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", number)
            await port.close()
            assert await reader.read() == b""

    played(scenario)


def test_without_tls_there_is_no_number_of_a_port_for_it() -> None:
    async def scenario(port: ServerPort[Connection]) -> None:
        assert port.tls_number is None

    played(scenario)
