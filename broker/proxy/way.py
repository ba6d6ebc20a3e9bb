"""Way: a proxy's access to brokers, over TLS or not, and its credentials."""

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field

from ports.network.tls import RenewedTls

from .clients import OwnCredentials

HANDSHAKE_SECONDS_MAX = 10.0


@dataclass(frozen=True, slots=True)
class Way:
    """Way of one proxy to its brokers. `tls`: None: in the clear."""

    own: OwnCredentials = field(default_factory=OwnCredentials)
    tls: RenewedTls | None = None

    def context(self) -> ssl.SSLContext | None:
        return None if self.tls is None else self.tls.context()

    async def connect(self, make: Callable[[], asyncio.BaseProtocol], host: str, port: int) -> asyncio.Transport:
        """OSError, including those of ssl: no byte was sent to a broker whose certificate does not fit."""
        context, loop = self.context(), asyncio.get_running_loop()
        if context is None:
            transport, _ = await loop.create_connection(make, host, port)
        else:
            transport, _ = await loop.create_connection(
                make, host, port, ssl=context, server_hostname=host, ssl_handshake_timeout=HANDSHAKE_SECONDS_MAX
            )
        return transport
