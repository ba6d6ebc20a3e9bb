"""Configuration of a client tool: Apache's conf/client.conf, options of the command line over it, credentials for HTTP.

Standard library alone, and little of it: `pulsar-admin` starts with this. Java keystores are refused, with the remedy.
"""

import base64
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import ssl

FILE = Path(__file__).resolve().parent.parent / "conf" / "client.conf"
TOKEN = "token"
BASIC = "basic"
TLS = "tls"
_PLUGINS = {
    "org.apache.pulsar.client.impl.auth.AuthenticationToken": TOKEN,
    "org.apache.pulsar.client.impl.auth.AuthenticationBasic": BASIC,
    "org.apache.pulsar.client.impl.auth.AuthenticationTls": TLS,
    TOKEN: TOKEN,
    BASIC: BASIC,
    TLS: TLS,
}


class ConfigurationError(Exception):
    """The configuration cannot be used; the message names the key and the remedy."""


class ClientConfiguration(NamedTuple):
    """Apache's keys of client.conf."""

    web_service_url: str = "http://localhost:8080/"
    broker_service_url: str = "pulsar://localhost:6650/"
    auth_plugin: str = ""
    auth_params: str = ""
    tls_allow_insecure: bool = False
    tls_hostname_verification: bool = False
    tls_trust_certs: str = ""
    tls_certificate: str = ""
    tls_key: str = ""
    listener_name: str = ""

    def web_service_urls(self) -> list[str]:
        """Each with its scheme: of `http://a:8080,b:8080` the second has the first's."""
        scheme, has_scheme, rest = self.web_service_url.strip().rstrip("/").partition("://")
        if not has_scheme:
            raise ConfigurationError(f"webServiceUrl: {self.web_service_url!r} has no http:// or https:// before it")
        return [f"{scheme}://{each.strip()}" for each in rest.split(",")]


_TEXTS = {
    "webServiceUrl": "web_service_url",
    "brokerServiceUrl": "broker_service_url",
    "authPlugin": "auth_plugin",
    "authParams": "auth_params",
    "tlsTrustCertsFilePath": "tls_trust_certs",
    "tlsCertificateFilePath": "tls_certificate",
    "tlsKeyFilePath": "tls_key",
}
_FLAGS = {"tlsAllowInsecureConnection": "tls_allow_insecure", "tlsEnableHostnameVerification": "tls_hostname_verification"}
_REFUSED = {"useKeyStoreTls": "Java keystores cannot be read here; set tlsTrustCertsFilePath to a file in PEM form"}


def load_client_configuration(environment: Mapping[str, str] = os.environ) -> ClientConfiguration:
    """Reads the file that PULSAR_CLIENT_CONF names, or conf/client.conf, if it exists. ConfigurationError, OSError."""
    named = environment.get("PULSAR_CLIENT_CONF")
    if not named and not FILE.exists():
        return ClientConfiguration()
    return parse_client_configuration(Path(named or FILE).read_text())


def parse_client_configuration(text: str) -> ClientConfiguration:
    """Keys that are not known are other tools' business; an empty value is none."""
    found: dict[str, str | bool] = {}
    for key, value in _pairs(text):
        if key in _REFUSED and value.lower() == "true":
            raise ConfigurationError(f"{key}: {_REFUSED[key]}")
        if key in _TEXTS and value:
            found[_TEXTS[key]] = value
        elif key in _FLAGS and value:
            found[_FLAGS[key]] = value.lower() == "true"
    return ClientConfiguration()._replace(**found)  # type: ignore[arg-type]


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals and not key.lstrip().startswith("#"):
            yield key.strip(), value.strip()


def auth_method(configuration: ClientConfiguration) -> str:
    """ "token", "basic", "tls", or "" for none. ConfigurationError for a plugin that is not there."""
    plugin = configuration.auth_plugin
    if not plugin:
        return ""
    if plugin not in _PLUGINS:
        raise ConfigurationError(f"authPlugin: {plugin} is not offered here; expected one of {', '.join(_PLUGINS)}")
    return _PLUGINS[plugin]


def auth_data(configuration: ClientConfiguration) -> str:
    """Proof of identity that is sent: the token, or user:password."""
    method, params = auth_method(configuration), configuration.auth_params
    if method == TOKEN:
        return _token(params)
    if method == BASIC:
        fields = _fields(params)
        return f"{fields.get('userId', '')}:{fields.get('password', '')}"
    return ""


def credentials(configuration: ClientConfiguration) -> Mapping[str, str]:
    """The headers of a request."""
    method = auth_method(configuration)
    if method == TOKEN:
        return {"Authorization": f"Bearer {auth_data(configuration)}", "X-Pulsar-Auth-Method-Name": TOKEN}
    if method == BASIC:
        encoded = base64.b64encode(auth_data(configuration).encode()).decode()
        return {"Authorization": f"Basic {encoded}", "X-Pulsar-Auth-Method-Name": BASIC}
    return {}


def _token(params: str) -> str:
    if params.startswith("{"):
        params = "token:" + _fields(params).get("token", "")
    if params.startswith("token:"):
        return params.removeprefix("token:")
    if params.startswith("file:"):
        return _read_token(Path("/" + params.removeprefix("file:").lstrip("/")))
    if params.startswith("env:"):
        return os.environ.get(params.removeprefix("env:"), "")
    return params


def _read_token(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"authParams: the token in {path} cannot be read: {error}") from None


def _fields(params: str) -> Mapping[str, str]:
    """Fields of {"key":"value"} or key:value,key:value. ConfigurationError for any other form."""
    if params.startswith("{"):
        try:
            return {str(key): str(value) for key, value in json.loads(params).items()}
        except ValueError as error:
            raise ConfigurationError(f"authParams: not JSON: {error}") from None
    return {key: value for key, _, value in (part.partition(":") for part in params.split(","))}


def tls_context(configuration: ClientConfiguration) -> "ssl.SSLContext":
    """TLS context of a client: trusted certificates, and its own certificate where there is one. ConfigurationError."""
    import ssl

    context = ssl.create_default_context()
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # set since Python 3.13; Java accepts what it refuses
    context.check_hostname = configuration.tls_hostname_verification and not configuration.tls_allow_insecure
    try:
        if configuration.tls_allow_insecure:
            context.verify_mode = ssl.CERT_NONE
        elif configuration.tls_trust_certs:
            context.load_verify_locations(configuration.tls_trust_certs)
        certificate, key = _own_certificate(configuration)
        if certificate:
            context.load_cert_chain(certificate, key or None)
    except OSError as error:
        raise ConfigurationError(f"TLS: {error}; see tlsTrustCertsFilePath, tlsCertificateFilePath, tlsKeyFilePath") from None
    return context


def _own_certificate(configuration: ClientConfiguration) -> tuple[str, str]:
    if auth_method(configuration) == TLS:
        fields = _fields(configuration.auth_params)
        return fields.get("tlsCertFile", ""), fields.get("tlsKeyFile", "")
    return configuration.tls_certificate, configuration.tls_key
