"""ServerPort: a port, the connections that it has let in, and their end. The owner speaks the protocol."""

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from ports.logs import line
from ports.network.tls import RenewedTls
from ports.network.tls_port import TlsPort, bound_listener


class Closable(Protocol):
    """A connection, as far as its end is concerned: it sends the bytes written for it, then it is gone."""

    def close(self) -> None: ...


C = TypeVar("C", bound=Closable)


class ServerPort(Generic[C]):
    """`opened` and `gone` are called for each connection. `end_seconds`: how long their ends may take, all together."""

    def __init__(self, log: logging.Logger, end_seconds: float) -> None:
        self._log = log
        self._end_seconds = end_seconds
        self._connections: dict[C, None] = {}
        self._is_empty = asyncio.Event()
        self._is_empty.set()
        self._server: asyncio.Server | None = None
        self._tls: TlsPort | None = None
        self._fronts: list[asyncio.Server | TlsPort] = []

    @property
    def connections(self) -> tuple[C, ...]:
        return tuple(self._connections)

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    @property
    def number(self) -> int:
        """Port number, also when any free port was asked for."""
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def tls_number(self) -> int | None:
        """Port number for TLS; None: there is none."""
        return None if self._tls is None else self._tls.number

    def opened(self, connection: C) -> None:
        self._connections[connection] = None
        self._is_empty.clear()

    def gone(self, connection: C) -> None:
        del self._connections[connection]
        if not self._connections:
            self._is_empty.set()

    async def listen(self, accept: Callable[[], asyncio.BaseProtocol], host: str, port: int, backlog: int) -> None:
        """Port 0 takes a free one. OSError when the port is taken."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(accept, host, port, backlog=backlog)

    def listen_tls(self, accept: Callable[[], asyncio.BaseProtocol], host: str, port: int, tls: RenewedTls) -> None:
        """Listen for connections that begin with a handshake; the port may have both kinds."""
        self._tls = TlsPort(bound_listener(host, port), accept, tls)
        self._tls.start()

    async def listen_in_front(
        self, accept: Callable[[], asyncio.BaseProtocol], listening: socket.socket, backlog: int, tls: RenewedTls | None = None
    ) -> None:
        """Also on a bound socket that other processes accept from as well; `leave_front` ends that alone."""
        loop = asyncio.get_running_loop()
        if tls is None:
            self._fronts.append(await loop.create_server(accept, sock=listening, backlog=backlog))
            return
        listening.listen(backlog)
        secure = TlsPort(listening, accept, tls)
        secure.start()
        self._fronts.append(secure)

    def leave_front(self) -> None:
        """The others accept from there. Leaving twice is fine."""
        fronts, self._fronts = self._fronts, []
        for each in fronts:
            each.close()

    def stop_accepting(self) -> None:
        self.leave_front()
        if self._server is not None:
            self._server.close()
        if self._tls is not None:
            self._tls.close()

    async def close(self) -> None:
        """Close the port; each connection sends its written bytes and ends. Closing twice is fine."""
        self.stop_accepting()
        for connection in self.connections:
            connection.close()
        try:
            async with asyncio.timeout(self._end_seconds):
                await self._is_empty.wait()
        except TimeoutError:
            self._log.error(line("connections did not end in time", count=self.connection_count))
