"""BookieListener: the port of a bookie, its connections, and their shared objects."""

import asyncio
import logging

from bookie.server.confirmations import Confirmations
from bookie.server.connection import LINGER_SECONDS, BookieConnection
from bookie.server.operations import Operations
from bookie.server.request_stats import RequestStats
from bookie.server.security.security import Security
from bookie.server.security.settings import BookieSecuritySettings
from bookie.server.settings import BookieServerSettings
from bookie.striped_bookie import AnyBookie
from ports.network.read_buffer import SharedRoom
from ports.network.server_port import ServerPort

log = logging.getLogger("bookie.server")

BACKLOG = 128


class BookieListener:
    """Listener of one bookie, which is started before this and stopped after it. Implements `connection.Server`."""

    def __init__(self, bookie: AnyBookie, settings: BookieServerSettings, security: Security | None = None) -> None:
        """Without `security`: no TLS, and every client may do everything."""
        now = asyncio.get_running_loop().time
        self.bookie = bookie
        self.settings = settings
        self.confirmations = Confirmations()
        self.stats = RequestStats(now)
        self.operations = Operations(bookie, self.confirmations, settings.max_batch_read_size, self.stats)
        self.room = SharedRoom()
        self.security = Security(BookieSecuritySettings(), now) if security is None else security
        self.server_port: ServerPort[BookieConnection] = ServerPort(log, 2 * LINGER_SECONDS)

    @property
    def connection_count(self) -> int:
        return self.server_port.connection_count

    @property
    def port(self) -> int:
        """Port number, also when any free port was asked for."""
        return self.server_port.number

    def admit(self, connection: BookieConnection) -> None:
        self.server_port.opened(connection)

    def dismiss(self, connection: BookieConnection) -> None:
        self.server_port.gone(connection)

    async def listen(self, host: str | None, port: int) -> None:
        """On every interface when `host` is None; port 0 takes a free one. OSError when the port is taken."""
        await self.server_port.listen(lambda: BookieConnection(self), host or "0.0.0.0", port, BACKLOG)

    async def close(self) -> None:
        """Close the port; each connection sends its written answers and ends. Closing twice is fine."""
        await self.server_port.close()
