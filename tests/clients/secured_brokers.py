"""Brokers over TLS that know their callers by tokens: their settings, and an operator's requests to two of them over HTTPS."""

import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.broker.security.token_maker import SECRET, in_setting, token
from tests.certificates import Authority, Identity, trusting
from tests.clients.broker_process import BrokerProcess
from tests.started_process import StartedProcess


def tls_settings(identity: Identity, authority: Authority) -> tuple[str, ...]:
    return (
        f"tlsCertificateFilePath={identity.certificate}",
        f"tlsKeyFilePath={identity.key}",
        f"tlsTrustCertsFilePath={authority.certificate}",
    )


def token_settings(authority: Authority, *super_users: str) -> tuple[str, ...]:
    """TLS, and tokens of `token_maker` to be shown."""
    return (
        *tls_settings(authority.sign("broker"), authority),
        "brokerServicePortTls=0",
        "webServicePortTls=0",
        "authenticationEnabled=true",
        "authorizationEnabled=true",
        "authenticationProviders=org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
        f"tokenSecretKey={in_setting(SECRET)}",
        f"superUserRoles={','.join(super_users)}",
    )


def cluster_settings(authority: Authority, credentials: Path) -> tuple[str, ...]:
    """Settings of brokers that ask one another with the token in that file; `admin` may do everything as well."""
    return (
        *token_settings(authority, "admin", "broker"),
        "brokerClientAuthenticationPlugin=org.apache.pulsar.client.impl.auth.AuthenticationToken",
        f"brokerClientAuthenticationParameters={credentials.as_uri()}",
        "brokerClientTlsEnabled=true",
        f"brokerClientTrustCertsFilePath={authority.certificate}",
    )


def token_file(directory: Path, role: str) -> Path:
    written = directory / f"{role}.token"
    written.write_text(token(role))
    return written


def pipeline_options(broker: StartedProcess, authority: Authority, credentials: Path) -> dict[str, str]:
    """With which source and sink of the pipeline are let in, by a broker that runs."""
    urls = json.loads(broker.ready_file.read_text())
    return {
        "service.url": urls["brokerServiceUrlTls"],
        "admin.url": urls["webServiceUrlTls"],
        "pulsar.client.authParams": credentials.as_uri(),
        "pulsar.client.tlsTrustCertsFilePath": str(authority.certificate),
        "pollTimeoutMs": "120000",
    }


class SecuredCluster:
    """Brokers that run, and what `admin` asks of them over HTTPS."""

    def __init__(self, authority: Authority, brokers: Sequence[BrokerProcess]) -> None:
        self._context = trusting(authority.certificate)
        self.urls = [json.loads(broker.ready_file.read_text())["webServiceUrlTls"] for broker in brokers]
        self.logs = [broker.log for broker in brokers]

    def ask(self, broker: int, method: str, path: str, body: Any = None) -> Any:
        """Redirects are followed, to HTTPS only."""
        url, data = self.urls[broker] + path, None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token('admin')}", "Content-Type": "application/json"}
        for _ in range(5):
            assert url.startswith("https://"), url
            request = urllib.request.Request(url, data, headers, method=method)
            try:
                with urllib.request.urlopen(request, timeout=30, context=self._context) as answer:
                    text = answer.read()
                    return json.loads(text) if text else None
            except urllib.error.HTTPError as answer:
                if answer.code != 307:
                    raise AssertionError(f"{method} {url}: {answer.code} {answer.read()!r}") from answer
                url = answer.headers["Location"]
        raise AssertionError(f"{path}: redirected for ever")

    def owner_of(self, topic: str) -> int:
        found = self.ask(0, "GET", f"/lookup/v2/topic/persistent/public/default/{topic}")
        return self.urls.index(found["httpUrlTls"])
