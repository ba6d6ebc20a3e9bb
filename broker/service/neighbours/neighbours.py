"""Neighbours: this broker's access to the others of its cluster, over TLS or not, and its credentials. Owns no connection. A
broker set to use TLS never speaks in the clear: neither to a broker without a port for TLS, nor after a redirect of another
one.
"""

import asyncio
import base64
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from ports.network.tls import RenewedTls

from ...errors import BrokerError, ServerError
from ..addresses import Advertised

HANDSHAKE_SECONDS_MAX = 10.0


@dataclass(frozen=True, slots=True)
class Credentials:
    """Credentials of a method: a token, `name:password`, or nothing but the certificate for the method `tls`."""

    method: str = ""
    data: bytes = field(default=b"", repr=False)

    def headers(self) -> list[tuple[bytes, bytes]]:
        """HTTP headers."""
        if self.method == "token":
            return [(b"authorization", b"Bearer " + self.data)]
        if self.method == "basic":
            return [(b"authorization", b"Basic " + base64.b64encode(self.data))]
        return []


class Neighbours:
    """`credentials` is called for each connection: renewed ones are used. It does not fail. `tls`: None: in the clear."""

    def __init__(self, credentials: Callable[[], Credentials] = Credentials, tls: RenewedTls | None = None) -> None:
        self.credentials, self._tls = credentials, tls

    def web_url(self, address: Advertised) -> str:
        """BrokerError when the broker has no port of the kind that is to be used."""
        return self._chosen("web", address.http_url, address.http_url_tls, address)

    def binary_url(self, address: Advertised) -> str:
        """BrokerError, as `web_url`."""
        return self._chosen("binary protocol", address.broker_url, address.broker_url_tls, address)

    def _chosen(self, kind: str, plain: str, over_tls: str, address: Advertised) -> str:
        url = plain if self._tls is None else over_tls
        if url:
            return url
        name = address.http_url or address.http_url_tls or address.broker_url or address.broker_url_tls
        missing = "without TLS: brokerClientTlsEnabled=true is needed" if self._tls is None else "for TLS"
        raise BrokerError(ServerError.SERVICE_NOT_READY, f"The broker at {name} has no {kind} port {missing}")

    async def open(self, url: str, limit: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection for HTTP. OSError, of which those of ssl are a kind; ValueError for an address that is not for it."""
        host, port, context = self._where(url, {"http": 80, "https": 443})
        return await asyncio.open_connection(host, port, limit=limit, ssl=context, server_hostname=host if context else None)

    async def connect(self, make: Callable[[], asyncio.BaseProtocol], url: str) -> None:
        """Connects for the binary protocol; like `open`."""
        host, port, context = self._where(url, {"pulsar": 6650, "pulsar+ssl": 6651})
        loop = asyncio.get_running_loop()
        if context is None:
            await loop.create_connection(make, host, port)
        else:
            await loop.create_connection(
                make, host, port, ssl=context, server_hostname=host, ssl_handshake_timeout=HANDSHAKE_SECONDS_MAX
            )

    def _where(self, url: str, ports: dict[str, int]) -> tuple[str, int, ssl.SSLContext | None]:
        plain, over_tls = ports
        where = urlsplit(url)
        expected = plain if self._tls is None else over_tls
        if where.scheme != expected or where.hostname is None:
            raise ValueError(f"{url or 'nothing'} is no address of {expected}://")
        return where.hostname, where.port or ports[expected], None if self._tls is None else self._tls.context()
