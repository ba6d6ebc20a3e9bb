"""Listener: the port that clients connect to, its connections, and what they share."""

import asyncio
import logging
from collections import Counter

from ports.logs import line

from ..service.broker_service import BrokerService
from .connection import LINGER_SECONDS, Connection
from .publish_gate import PublishMemory
from .read_buffer import SharedRoom
from .settings import ConnectionSettings

log = logging.getLogger(__name__)

BACKLOG = 1024


class Listener:
    """One broker's. Implements `connection.Server`."""

    def __init__(self, service: BrokerService, settings: ConnectionSettings) -> None:
        self.service = service
        self.settings = settings
        self.room = SharedRoom()
        self.memory = PublishMemory(settings.max_message_publish_buffer_size_in_mb << 20)
        self._connections: dict[Connection, None] = {}
        self._per_host: Counter[str] = Counter()
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

    def admit(self, connection: Connection, host: str) -> str | None:
        settings = self.settings
        self._connections[connection] = None
        self._per_host[host] += 1
        self._is_empty.clear()
        if 0 < settings.broker_max_connections < len(self._connections):
            return f"Reached the maximum number of connections: {settings.broker_max_connections}"
        if 0 < settings.broker_max_connections_per_ip < self._per_host[host]:
            return f"Reached the maximum number of connections on address {host}: {settings.broker_max_connections_per_ip}"
        return None

    def dismiss(self, connection: Connection, host: str) -> None:
        del self._connections[connection]
        self._per_host[host] -= 1
        if not self._per_host[host]:
            del self._per_host[host]
        if not self._connections:
            self._is_empty.set()

    async def listen(self, host: str, port: int) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Connection(self), host, port, backlog=BACKLOG)

    def stop_accepting(self) -> None:
        """First of all at a stop; then the service is closed, so that clients hear of their topics' end; then `close`."""
        if self._server is not None:
            self._server.close()

    async def close(self) -> None:
        """Every connection sends what was written for it and ends. Closing twice is fine."""
        self.stop_accepting()
        for connection in tuple(self._connections):
            connection.close()
        try:
            async with asyncio.timeout(2 * LINGER_SECONDS):
                await self._is_empty.wait()
        except TimeoutError:
            log.error(line("connections did not end in time", count=len(self._connections)))


async def serve(service: BrokerService, settings: ConnectionSettings, host: str, port: int) -> Listener:
    """Accept clients; port 0 takes a free one."""
    listener = Listener(service, settings)
    await listener.listen(host, port)
    return listener
