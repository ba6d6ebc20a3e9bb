"""Ways of a session to the brokers: inside a broker, a pipe to it, and the network to others, with the client's proof."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from broker.connection.connection import Connection
from broker.connection.server import Server
from broker.errors import BrokerError
from broker.security.authentication.principals import AuthenticationRefused, Shown
from broker.service.addresses import Advertised
from ports.network.memory_pipe import connect
from wire.generated.pulsar_api_pb2 import CommandConnect, FeatureFlags

from .errors import LinkLost
from .requests import Proof

CLIENT_VERSION = "Interpulse WebSocket"
PROTOCOL_VERSION = 21
CONNECT_SECONDS_MAX = 10.0
HOME = ""
"""Address of the broker that a session asks first."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Client of a session, as its connection shows it."""

    address: tuple[str, int]
    certificate: Mapping[str, Any] | None = None


class Way(Protocol):
    """Access of sessions to brokers."""

    def chosen(self, url: str, url_tls: str) -> str:
        """Address to connect to, of those that a lookup names; HOME for the first broker. LinkLost."""

    def hello(self, address: str, proof: Proof, peer: Peer) -> CommandConnect: ...
    async def connect(self, address: str, make: Callable[[], asyncio.BaseProtocol], peer: Peer) -> None:
        """LinkLost."""


class InsideBroker:
    """Way of sessions that a broker serves itself. The broker sees the client's own address and certificate."""

    def __init__(self, server: Server) -> None:
        self._server = server

    @property
    def _own(self) -> Advertised:
        return self._server.service.lookup.advertised

    def chosen(self, url: str, url_tls: str) -> str:
        if (url and url == self._own.broker_url) or (url_tls and url_tls == self._own.broker_url_tls):
            return HOME
        try:
            return self._server.service.lookup.neighbours.binary_url(Advertised(url, "", url_tls))
        except BrokerError as error:
            raise LinkLost(error.message) from None

    def hello(self, address: str, proof: Proof, peer: Peer) -> CommandConnect:
        """A certificate proves nothing to another broker: that one gets this broker's credentials, and the client's role."""
        hello = CommandConnect(
            client_version=CLIENT_VERSION,
            protocol_version=PROTOCOL_VERSION,
            feature_flags=FeatureFlags(supports_auth_refresh=False),
        )
        method, data = proof.method, proof.data
        if address != HOME and proof.method == "tls":
            own = self._server.service.lookup.neighbours.credentials()
            method, data, hello.original_principal = own.method, own.data, self._role(peer)
        if method:
            hello.auth_method_name, hello.auth_data = method, data
        return hello

    def _role(self, peer: Peer) -> str:
        security = self._server.security
        if security is None:
            return ""
        try:
            return security.authentication.of_connection("tls", Shown(b"", peer.certificate), security.now()).role
        except AuthenticationRefused:
            return ""

    async def connect(self, address: str, make: Callable[[], asyncio.BaseProtocol], peer: Peer) -> None:
        if address == HOME:
            connect(lambda: Connection(self._server), make, {"peername": peer.address, "peercert": peer.certificate})
            return
        try:
            async with asyncio.timeout(CONNECT_SECONDS_MAX):
                await self._server.service.lookup.neighbours.connect(make, address)
        except (OSError, TimeoutError, ValueError) as error:
            raise LinkLost(f"{address}: {error or 'no answer in time'}") from error
