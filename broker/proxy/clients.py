"""Clients: for whom a proxy speaks, and how it says so to a broker. Pure.

A broker is shown the proxy's own credentials and the client's role; what the client itself has shown goes along only where
forwardAuthorizationCredentials asks for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from wire.generated.pulsar_api_pb2 import CommandConnect

from ..security.own_credentials import read_credentials
from ..service.neighbours.neighbours import Credentials


@dataclass(frozen=True, slots=True)
class Client:
    """`principal` is empty where the proxy asks nobody who they are."""

    principal: str = ""
    method: str = ""
    data: bytes = field(default=b"", repr=False)
    """What it has shown; empty where that is not forwarded."""


NOBODY = Client()


@dataclass(frozen=True, slots=True)
class OwnCredentials(Credentials):
    """Credentials of the proxy itself (brokerClientAuthenticationPlugin)."""

    def introduce(self, command: CommandConnect, client: Client) -> None:
        """Into a CONNECT to a broker. A client of a proxy that asks nobody speaks for itself."""
        if self.method:
            command.auth_method_name, command.auth_data = self.method, self.data
        if client.principal:
            command.original_principal = client.principal
            if client.method:
                command.original_auth_method = client.method
                command.original_auth_data = client.data.decode("utf-8", "replace")

    def http_headers(self, client: Client) -> list[tuple[bytes, bytes]]:
        named = [(b"x-original-principal", client.principal.encode())] if client.principal else []
        return [*named, *self.headers()]


def own_credentials(plugin: str, parameters: str, environ: Mapping[str, str]) -> OwnCredentials:
    """BadSetting, which never shows what the parameters hold."""
    found = read_credentials(plugin, parameters, environ)
    return OwnCredentials(found.method, found.data)
