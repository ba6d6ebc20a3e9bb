"""The entry of a cluster: from options, or from a JSON file with the same names (`--cluster-config-file`)."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cli.admin.context import CommandFailed, Context
from cli.admin.request import post, put

_FIELDS = {
    "serviceUrl": "url",
    "serviceUrlTls": "url-secure",
    "brokerServiceUrl": "broker-url",
    "brokerServiceUrlTls": "broker-url-secure",
    "proxyServiceUrl": "proxy-url",
    "authenticationPlugin": "auth-plugin",
    "authenticationParameters": "auth-parameters",
    "proxyProtocol": "proxy-protocol",
    "brokerClientTlsTrustStoreType": "tls-trust-store-type",
    "brokerClientTlsTrustStore": "tls-trust-store",
    "brokerClientTlsTrustStorePassword": "tls-trust-store-pwd",
    "brokerClientTlsKeyStoreType": "tls-key-store-type",
    "brokerClientTlsKeyStore": "tls-key-store",
    "brokerClientTlsKeyStorePassword": "tls-key-store-pwd",
    "brokerClientTrustCertsFilePath": "tls-trust-certs-filepath",
    "brokerClientKeyFilePath": "tls-key-filepath",
    "brokerClientCertificateFilePath": "tls-certs-filepath",
    "brokerClientSslFactoryPlugin": "tls-factory-plugin",
    "brokerClientSslFactoryPluginParams": "tls-factory-plugin-params",
    "listenerName": "listener-name",
}
_FLAGS = {
    "brokerClientTlsEnabled": "tls-enable",
    "tlsAllowInsecureConnection": "tls-allow-insecure",
    "brokerClientTlsEnabledWithKeyStore": "tls-enable-keystore",
}


def create(context: Context) -> None:
    context.ask(put(_path(context), _data(context)))


def update(context: Context) -> None:
    context.ask(post(_path(context), _data(context)))


def _path(context: Context) -> str:
    return f"clusters/{quote(context.values['cluster'], safe='')}"


def _data(context: Context) -> dict[str, Any]:
    """The file's, with the options that were given over it."""
    values = context.values
    data: dict[str, Any] = _from_file(values.get("cluster-config-file"))
    data |= {field: bool(values.get(key)) for field, key in _FLAGS.items() if values.get(key) or field not in data}
    given = {field: values.get(key) for field, key in _FIELDS.items()}
    return data | {field: value for field, value in given.items() if value is not None}


def _from_file(name: str | None) -> dict[str, Any]:
    if not name:
        return {}
    try:
        data = json.loads(Path(name).read_text())
    except (OSError, ValueError) as error:
        raise CommandFailed(f"{name}: {error}; expected a JSON object") from None
    if not isinstance(data, dict):
        raise CommandFailed(f"{name}: expected a JSON object")
    return data
