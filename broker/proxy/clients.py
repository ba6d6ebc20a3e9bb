"""Clients of a proxy, and their identity in its requests to a broker. Pure.

A broker gets the proxy's own credentials and the client's role; the client's own credentials are forwarded only where
forwardAuthorizationCredentials asks for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from wire.generated.pulsar_api_pb2 import CommandConnect

from ..security.own_credentials import read_credentials
from ..service.neighbours.neighbours import Credentials


@dataclass(frozen=True, slots=True)
class Client:
    """`principal` is empty where the proxy does not authenticate."""

    principal: str = ""
    method: str = ""
    data: bytes = field(default=b"", repr=False)
    """Credentials that the client has shown; empty where they are not forwarded."""


NOBODY = Client()


@dataclass(frozen=True, slots=True)
class OwnCredentials(Credentials):
    """Credentials of the proxy itself (brokerClientAuthenticationPlugin)."""

    def introduce(self, command: CommandConnect, client: Client) -> None:
        """Fills a CONNECT to a broker. A client of a proxy without authentication speaks for itself."""
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
    """Raises BadSetting, which never shows the content of the parameters."""
    found = read_credentials(plugin, parameters, environ)
    return OwnCredentials(found.method, found.data)
