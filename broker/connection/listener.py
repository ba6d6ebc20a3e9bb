"""Listener: the port that clients connect to, its connections, and their shared parts."""

import logging
import socket
from collections import Counter

from ports.ends import ENDS
from ports.loop.starts import Starts
from ports.network.read_buffer import SharedRoom
from ports.network.server_port import Closable, ServerPort
from ports.network.tls import RenewedTls

from ..security.security import Security
from ..service.broker_service import BrokerService
from ..transaction.coordinators import Coordinators
from .connection import LINGER_SECONDS, Connection
from .producers.publish_gate import PublishMemory
from .settings import ConnectionSettings

log = logging.getLogger(__name__)

BACKLOG = 1024


class Listener:
    """One broker's. Implements `connection.Server`."""

    def __init__(
        self,
        service: BrokerService,
        settings: ConnectionSettings,
        security: Security | None = None,
        coordinators: Coordinators | None = None,
    ) -> None:
        self.service = service
        self.security = security
        self.coordinators = coordinators
        self.settings = settings
        self.room = SharedRoom()
        self.memory = PublishMemory(settings.max_message_publish_buffer_size_in_mb << 20)
        self.starts = Starts()
        self.server_port: ServerPort[Closable] = ServerPort(log, 2 * LINGER_SECONDS)
        self._per_host: Counter[str] = Counter()

    @property
    def connection_count(self) -> int:
        return self.server_port.connection_count

    @property
    def port(self) -> int:
        """Port of the listener, also when any free port was requested."""
        return self.server_port.number

    @property
    def port_tls(self) -> int | None:
        """Port for TLS, like `port`; None: no port for TLS."""
        return self.server_port.tls_number

    def admit(self, connection: Closable, host: str) -> str | None:
        self.server_port.opened(connection)
        self._per_host[host] += 1
        refusal = self._refusal(host)
        self.service.meters.connections_opened += 1
        self.service.meters.connections_refused += refusal is not None
        return refusal

    def _refusal(self, host: str) -> str | None:
        settings = self.settings
        if 0 < settings.broker_max_connections < self.connection_count:
            return f"Reached the maximum number of connections: {settings.broker_max_connections}"
        if 0 < settings.broker_max_connections_per_ip < self._per_host[host]:
            return f"Reached the maximum number of connections on address {host}: {settings.broker_max_connections_per_ip}"
        return None

    def dismiss(self, connection: Closable, host: str) -> None:
        self.server_port.gone(connection)
        self.service.meters.connections_closed += 1
        ENDS.ended(connection)
        self._per_host[host] -= 1
        if not self._per_host[host]:
            del self._per_host[host]

    async def listen(self, host: str, port: int) -> None:
        await self.server_port.listen(lambda: Connection(self), host, port, BACKLOG)

    def listen_tls(self, host: str, port: int, tls: RenewedTls) -> None:
        """Beside the plain port, or instead of it."""
        self.server_port.listen_tls(lambda: Connection(self), host, port, tls)

    async def listen_in_front(self, listening: socket.socket, tls: RenewedTls | None = None) -> None:
        """Also on a bound socket that brokers in other processes share; any broker there names the owner to a client."""
        await self.server_port.listen_in_front(lambda: Connection(self), listening, BACKLOG, tls)

    def leave_front(self) -> None:
        """Before a drain: new clients go to the other processes, those that are here stay."""
        self.server_port.leave_front()

    def stop_accepting(self) -> None:
        """First of all at a stop; then the service is closed, which closes producers and consumers; then `close`."""
        self.server_port.stop_accepting()

    async def close(self) -> None:
        """Every connection sends its written bytes and ends. Closing twice is fine."""
        await self.server_port.close()


async def serve(service: BrokerService, settings: ConnectionSettings, host: str, port: int) -> Listener:
    """Accept clients; port 0 takes a free one."""
    listener = Listener(service, settings)
    await listener.listen(host, port)
    return listener
