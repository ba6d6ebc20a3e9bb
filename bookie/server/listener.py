"""BookieListener: the port of a bookie, its connections, and what they share."""

import asyncio
import logging

from bookie.server.confirmations import Confirmations
from bookie.server.connection import LINGER_SECONDS, BookieConnection
from bookie.server.operations import Operations
from bookie.server.settings import BookieServerSettings
from bookie.striped_bookie import AnyBookie
from ports.logs import line
from ports.read_buffer import SharedRoom

log = logging.getLogger("bookie.server")

BACKLOG = 128


class BookieListener:
    """Of one bookie, which is started before this and stopped after it. Implements `connection.Server`."""

    def __init__(self, bookie: AnyBookie, settings: BookieServerSettings) -> None:
        self.bookie = bookie
        self.settings = settings
        self.confirmations = Confirmations()
        self.operations = Operations(bookie, self.confirmations, settings.max_batch_read_size)
        self.room = SharedRoom()
        self._connections: dict[BookieConnection, None] = {}
        self._is_empty = asyncio.Event()
        self._is_empty.set()
        self._server: asyncio.Server | None = None

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    @property
    def port(self) -> int:
        """Where it listens, also when any free port was asked for."""
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def admit(self, connection: BookieConnection) -> None:
        self._connections[connection] = None
        self._is_empty.clear()

    def dismiss(self, connection: BookieConnection) -> None:
        del self._connections[connection]
        if not self._connections:
            self._is_empty.set()

    async def listen(self, host: str | None, port: int) -> None:
        """On every interface when `host` is None; port 0 takes a free one. OSError when the port is taken."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: BookieConnection(self), host or "0.0.0.0", port, backlog=BACKLOG)

    async def close(self) -> None:
        """Nobody new is let in; every connection sends what was written for it and ends. Closing twice is fine."""
        if self._server is not None:
            self._server.close()
        for connection in tuple(self._connections):
            connection.close()
        try:
            async with asyncio.timeout(2 * LINGER_SECONDS):
                await self._is_empty.wait()
        except TimeoutError:
            log.error(line("connections did not end in time", count=len(self._connections)))
