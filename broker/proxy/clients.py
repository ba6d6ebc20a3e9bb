"""Clients: for whom a proxy speaks, and how it says so to a broker. Pure.

A broker is shown the proxy's own credentials and the client's role; what the client itself has shown goes along only where
forwardAuthorizationCredentials asks for it.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field

from ports.settings import BadSetting
from wire.generated.pulsar_api_pb2 import CommandConnect

from ..security.key_material import read_file_or_text

_PACKAGE = "org.apache.pulsar.client.impl.auth."
TOKEN_PLUGINS = ("token", f"{_PACKAGE}AuthenticationToken")
BASIC_PLUGINS = ("basic", f"{_PACKAGE}AuthenticationBasic")
TLS_PLUGINS = ("tls", f"{_PACKAGE}AuthenticationTls")
NO_PLUGINS = ("", f"{_PACKAGE}AuthenticationDisabled")


@dataclass(frozen=True, slots=True)
class Client:
    """`principal` is empty where the proxy asks nobody who they are."""

    principal: str = ""
    method: str = ""
    data: bytes = field(default=b"", repr=False)
    """What it has shown; empty where that is not forwarded."""


NOBODY = Client()


@dataclass(frozen=True, slots=True)
class OwnCredentials:
    """What the proxy shows for itself (brokerClientAuthenticationPlugin)."""

    method: str = ""
    data: bytes = field(default=b"", repr=False)

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
        headers = [(b"x-original-principal", client.principal.encode())] if client.principal else []
        if self.method == "token":
            headers.append((b"authorization", b"Bearer " + self.data))
        elif self.method == "basic":
            headers.append((b"authorization", b"Basic " + base64.b64encode(self.data)))
        return headers


def own_credentials(plugin: str, parameters: str, environ: Mapping[str, str]) -> OwnCredentials:
    """BadSetting, which never shows what the parameters hold."""
    name = plugin.strip()
    if name in NO_PLUGINS:
        return OwnCredentials()
    if name in TLS_PLUGINS:
        return OwnCredentials("tls")
    if name in TOKEN_PLUGINS:
        text = parameters.removeprefix("token:")
        return OwnCredentials("token", read_file_or_text("brokerClientAuthenticationParameters", text, environ).strip())
    if name in BASIC_PLUGINS:
        return OwnCredentials("basic", parameters.encode())
    known = ", ".join((*TOKEN_PLUGINS, *BASIC_PLUGINS, *TLS_PLUGINS))
    raise BadSetting(f"brokerClientAuthenticationPlugin={name}: expected one of {known}")
