"""Credentials of a broker or a proxy towards brokers, by Apache's brokerClientAuthenticationPlugin and ...Parameters.

Errors never show the content of the parameters.
"""

import json
import logging
from collections.abc import Callable, Mapping

from ports.logs import line
from ports.settings import BadSetting

from ..service.neighbours.neighbours import Credentials
from .authentication.key_material import read_file_or_text

log = logging.getLogger(__name__)

_PARAMETERS = "brokerClientAuthenticationParameters"
_PACKAGE = "org.apache.pulsar.client.impl.auth."
TOKEN_PLUGINS = ("token", f"{_PACKAGE}AuthenticationToken")
BASIC_PLUGINS = ("basic", f"{_PACKAGE}AuthenticationBasic")
TLS_PLUGINS = ("tls", f"{_PACKAGE}AuthenticationTls")
NO_PLUGINS = ("", f"{_PACKAGE}AuthenticationDisabled")


def read_credentials(plugin: str, parameters: str, environ: Mapping[str, str]) -> Credentials:
    """BadSetting."""
    name = plugin.strip()
    if name in NO_PLUGINS:
        return Credentials()
    if name in TLS_PLUGINS:
        return Credentials("tls")
    if name in TOKEN_PLUGINS:
        return Credentials("token", _token(parameters.removeprefix("token:"), environ))
    if name in BASIC_PLUGINS:
        return Credentials("basic", parameters.encode())
    known = ", ".join((*TOKEN_PLUGINS, *BASIC_PLUGINS, *TLS_PLUGINS))
    raise BadSetting(f"brokerClientAuthenticationPlugin={name}: expected one of {known}")


def own_certificate(plugin: str, parameters: str, certificate: str | None, key: str | None) -> tuple[str | None, str | None]:
    """The files of certificate and key: those in the parameters of AuthenticationTls come first, as in Apache's client."""
    named = _named_files(parameters) if plugin.strip() in TLS_PLUGINS else {}
    if named.get("tlsCertFile") and named.get("tlsKeyFile"):
        return str(named["tlsCertFile"]), str(named["tlsKeyFile"])
    return certificate, key


def _named_files(parameters: str) -> Mapping[str, object]:
    """Apache's two forms: {"tlsCertFile":"/path"} and tlsCertFile:/path. Broken JSON names none."""
    if not parameters.lstrip().startswith("{"):
        return {key.strip(): path.strip() for key, _, path in (part.partition(":") for part in parameters.split(","))}
    try:
        return dict(json.loads(parameters))
    except ValueError:
        return {}


def _token(text: str, environ: Mapping[str, str]) -> bytes:
    token = read_file_or_text(_PARAMETERS, text, environ).strip()
    if not token or len(token.split()) != 1:
        raise BadSetting(f"{_PARAMETERS}: expected one token: token:..., file:///path or env:NAME")
    return token


def renewed_credentials(plugin: str, parameters: str, environ: Mapping[str, str]) -> Callable[[], Credentials]:
    """Reads a token's file each time; one that cannot be used, as while it is replaced, leaves the old one. BadSetting."""
    known = read_credentials(plugin, parameters, environ)

    def current() -> Credentials:
        nonlocal known
        try:
            known = read_credentials(plugin, parameters, environ)
        except BadSetting as error:
            log.error(line("renewed credentials cannot be used, the old ones stay", reason=error))
        return known

    return current
