"""ProxyListener: the port for clients of the binary protocol, its connections, and their shared parts."""

import logging
from collections import Counter

from ports.network.server_port import ServerPort
from ports.network.tls import RenewedTls

from ..security.security import Security
from .brokers import Brokers
from .connection import LINGER_SECONDS, ProxyConnection
from .counts import Counts
from .door import Door
from .lookups import Lookups
from .settings import ProxySettings
from .way import Way

log = logging.getLogger(__name__)

BACKLOG = 1024


class ProxyListener:
    """One proxy's. Implements `connection.Server`."""

    def __init__(
        self, settings: ProxySettings, brokers: Brokers, way: Way | None = None, security: Security | None = None
    ) -> None:
        self.settings, self.brokers, self.way = settings, brokers, way or Way()
        self.door = None if security is None else Door(security, forwards=settings.forward_authorization_credentials)
        self.counts = Counts()
        self.lookups = Lookups(brokers, settings, self.way, self.counts)
        self._port: ServerPort[ProxyConnection] = ServerPort(log, 2 * LINGER_SECONDS)
        self._per_host: Counter[str] = Counter()

    @property
    def connection_count(self) -> int:
        return self._port.connection_count

    @property
    def port(self) -> int:
        """Port of the listener, also when any free port was requested."""
        return self._port.number

    def admit(self, connection: ProxyConnection, host: str) -> str | None:
        self._port.opened(connection)
        self._per_host[host] += 1
        self.counts.new += 1
        limit, per_host = (
            self.settings.max_concurrent_inbound_connections,
            self.settings.max_concurrent_inbound_connections_per_ip,
        )
        if 0 < limit < self.connection_count:
            return f"Reached the maximum number of connections: {limit}"
        if 0 < per_host < self._per_host[host]:
            return f"Reached the maximum number of connections on address {host}: {per_host}"
        return None

    def dismiss(self, connection: ProxyConnection, host: str) -> None:
        self._port.gone(connection)
        self._per_host[host] -= 1
        if not self._per_host[host]:
            del self._per_host[host]

    @property
    def port_tls(self) -> int | None:
        """Port for TLS, like `port`; None: no port for TLS."""
        return self._port.tls_number

    async def listen(self, tls: RenewedTls | None = None) -> None:
        """OSError when a port is taken."""
        tls_port = self.settings.service_port_tls
        if tls is not None and tls_port is not None:
            self._port.listen_tls(lambda: ProxyConnection(self), self.settings.bind_address, tls_port, tls)
        await self._port.listen(lambda: ProxyConnection(self), self.settings.bind_address, self.settings.service_port, BACKLOG)

    async def close(self) -> None:
        """Accepts no more clients and ends every connection. Closing twice is fine."""
        await self._port.close()
        await self.lookups.close()
