"""Apache's Python client, unmodified, and a standalone with TLS, tokens and certificates; a proxy in front of it."""

import base64
import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pulsar
import pytest

from tests.broker.security.token_maker import CANARY, SECRET, in_setting, token
from tests.certificates import Authority, Identity, need_openssl, trusting
from tests.clients.secured_brokers import tls_settings
from tests.clients.server_process import Ready, ServerProcess
from tests.started_process import ROOT, StartedProcess

pytestmark = [pytest.mark.clients, need_openssl]

PROVIDERS = ",".join(
    f"org.apache.pulsar.broker.authentication.AuthenticationProvider{name}" for name in ("Token", "Tls", "Basic")
)
TOPIC = "persistent://public/default/secured"
NOT_LET_IN = (pulsar.AuthenticationError, pulsar.ConnectError, pulsar.Timeout)
PASSWORDS = f"dave:$apr1$8sgqALXY$a6UCaLF2Ldt42DQc4JvD9/\n{CANARY}:$apr1$8sgqALXY$a6UCaLF2Ldt42DQc4JvD9/\n"


class Site:
    """A server, its certificates, and its ports for TLS."""

    def __init__(self, directory: Path) -> None:
        self.authority = Authority(directory / "authority")
        self.server_identity = self.authority.sign("server")
        self.carol = self.authority.sign("carol")
        passwords = base64.b64encode(PASSWORDS.encode()).decode()
        settings = (
            *tls_settings(self.server_identity, self.authority),
            "brokerServicePortTls=0",
            "webServicePortTls=0",
            "tlsCertRefreshCheckDurationSec=1",
            "authenticationEnabled=true",
            "authorizationEnabled=true",
            f"authenticationProviders={PROVIDERS}",
            f"tokenSecretKey={in_setting(SECRET)}",
            f"basicAuthConf=data:;base64,{passwords}",
            "tokenAudienceClaim=aud",
            "tokenAudience=here",
            "superUserRoles=admin,carol,dave",
            "proxyRoles=proxy",
            "authenticationRefreshCheckSeconds=1",
        )
        self.process = ServerProcess(directory / "server", settings)

    def start(self) -> Ready:
        ready = self.process.start()
        urls = json.loads(self.process.ready_file.read_text())
        self.tls_url, self.web_tls_url = urls["brokerServiceUrlTls"], urls["webServiceUrlTls"]
        return ready

    def client(self, authentication: Any = None, url: str | None = None, seconds: int = 30) -> pulsar.Client:
        return pulsar.Client(
            url or self.tls_url,
            authentication=authentication,
            tls_trust_certs_file_path=str(self.authority.certificate),
            tls_validate_hostname=True,
            operation_timeout_seconds=seconds,
            logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
        )

    def get(self, path: str, bearer: str | None = None, identity: Identity | None = None) -> bytes:
        context = trusting(self.authority.certificate)
        if identity is not None:
            context.load_cert_chain(identity.certificate, identity.key)
        request = urllib.request.Request(self.web_tls_url + path)
        if bearer is not None:
            request.add_header("Authorization", f"Bearer {bearer}")
        with urllib.request.urlopen(request, timeout=30, context=context) as answer:
            found: bytes = answer.read()
            return found

    @property
    def log(self) -> str:
        return self.process.log.read_text()


def ours(role: str, **claims: Any) -> str:
    return token(role, aud="here", **claims)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    found = Site(tmp_path_factory.mktemp("secured"))
    with found.process:
        found.start()
        yield found


def exchange(client: pulsar.Client, topic: str) -> None:
    """A message there and back."""
    with closing(client):
        consumer = client.subscribe(topic, "s")
        client.create_producer(topic).send(b"x" * 300_000)
        assert len(consumer.receive(20_000).data()) == 300_000


@pytest.mark.parametrize("kind", ["token", "basic", "certificate", "https lookup"])
def test_messages_go_over_tls_for_whoever_is_known(site: Site, kind: str) -> None:
    certificate = pulsar.AuthenticationTLS(str(site.carol.certificate), str(site.carol.key))
    shown, url = {
        "token": (pulsar.AuthenticationToken(ours("admin")), site.tls_url),
        "basic": (pulsar.AuthenticationBasic("dave", "wonderland"), site.tls_url),
        "certificate": (certificate, site.tls_url),
        "https lookup": (certificate, site.web_tls_url),
    }[kind]
    exchange(site.client(shown, url), f"{TOPIC}-{kind.replace(' ', '-')}")


@pytest.mark.parametrize(
    "given",
    [
        CANARY,
        ours("admin", secret=b"y" * 32),
        ours("admin", alg="none"),
        token("admin", aud="there"),
        ours("admin", exp=1),
    ],
    ids=["no token", "forged", "alg none", "another audience", "expired"],
)
def test_an_unauthenticated_client_is_refused(site: Site, given: str) -> None:
    """This client takes the refusal of its CONNECT for a lost connection, and tries again until its own time is up."""
    before = site.log.count("not authenticated")
    with closing(site.client(pulsar.AuthenticationToken(given), seconds=2)) as client, pytest.raises(NOT_LET_IN):
        client.create_producer(TOPIC)
    assert site.log.count("not authenticated") > before
    with pytest.raises(urllib.error.HTTPError, match="401"):
        site.get("/admin/v2/tenants", given)


def test_an_unauthorized_role_gets_the_authorization_error_of_the_client(site: Site) -> None:
    with closing(site.client(pulsar.AuthenticationToken(ours("mallory")))) as client:
        with pytest.raises(pulsar.AuthorizationError):
            client.create_producer(TOPIC)
        with pytest.raises(pulsar.AuthorizationError):
            client.subscribe(TOPIC, "s")


def test_a_token_that_expires_is_renewed_by_the_clients_supplier(site: Site) -> None:
    supplied = []

    def supply() -> str:
        supplied.append(ours("admin", exp=int(time.time()) + 2))
        return supplied[-1]

    with closing(site.client(pulsar.AuthenticationToken(supply))) as client:
        producer = client.create_producer(f"{TOPIC}-renewed")
        before, give_up_at = site.log.count("credentials renewed"), time.monotonic() + 60
        while site.log.count("credentials renewed") < before + 2:
            producer.send(b"x")
            assert time.monotonic() < give_up_at
    assert len(supplied) >= 3


def test_renewed_certificates_are_shown_without_a_restart(site: Site) -> None:
    newer = site.authority.sign("newer")
    host, port = "127.0.0.1", int(site.tls_url.rpartition(":")[2])
    before, give_up_at = ssl.get_server_certificate((host, port)), time.monotonic() + 60
    site.server_identity.key.write_bytes(newer.key.read_bytes())
    site.server_identity.certificate.write_bytes(newer.certificate.read_bytes())
    while ssl.get_server_certificate((host, port)) == before:
        assert time.monotonic() < give_up_at
    exchange(site.client(pulsar.AuthenticationToken(ours("admin"))), f"{TOPIC}-newer")


def test_a_proxy_speaks_for_its_clients_over_tls(site: Site, tmp_path: Path) -> None:
    settings = (
        *tls_settings(site.authority.sign("proxy"), site.authority),
        *("servicePort=0", "webServicePort=0", "servicePortTls=0", "webServicePortTls=0", "bindAddress=127.0.0.1"),
        *(f"brokerServiceURL={site.tls_url}", f"brokerWebServiceURL={site.web_tls_url}", "brokerProxyAllowedTargetPorts=*"),
        *("tlsEnabledWithBroker=true", f"brokerClientTrustCertsFilePath={site.authority.certificate}"),
        *("authenticationEnabled=true", f"authenticationProviders={PROVIDERS.split(',')[0]}"),
        f"tokenSecretKey={in_setting(SECRET)}",
        "brokerClientAuthenticationPlugin=org.apache.pulsar.client.impl.auth.AuthenticationToken",
        f"brokerClientAuthenticationParameters=token:{ours('proxy')}",
    )
    for role in ("proxy", "alice"):
        grant(site, role)
    with StartedProcess(tmp_path) as proxy:
        words = [word for value in settings for word in ("--set", value)]
        proxy.launch_command([str(ROOT / "bin" / "pulsar"), "proxy", "--json-ready", str(proxy.ready_file), *words])
        url = proxy.until_ready_file()["serviceUrlTls"]
        exchange(site.client(pulsar.AuthenticationToken(ours("alice")), url), f"{TOPIC}-proxied")
        for given, error in ((ours("mallory"), pulsar.AuthorizationError), (CANARY, NOT_LET_IN)):
            with closing(site.client(pulsar.AuthenticationToken(given), url, 3)) as client, pytest.raises(error):
                client.create_producer(TOPIC)
        assert ours("proxy") not in proxy.log.read_text()


def grant(site: Site, role: str) -> None:
    request = urllib.request.Request(
        f"{site.web_tls_url}/admin/v2/namespaces/public/default/permissions/{role}", b'["produce","consume"]', method="POST"
    )
    request.add_header("Authorization", f"Bearer {ours('admin')}")
    request.add_header("Content-Type", "application/json")
    context = trusting(site.authority.certificate)
    with urllib.request.urlopen(request, timeout=30, context=context) as answer:
        assert answer.status == 204


def test_no_secret_is_in_a_log_line_or_an_answer(site: Site) -> None:
    with pytest.raises(urllib.error.HTTPError):
        site.get("/admin/v2/tenants", CANARY)
    secrets = (CANARY, base64.b64encode(SECRET).decode()[:40], "$apr1$", "wonderland", ours("admin"))
    paths = ("/metrics", *(f"/admin/v2/brokers/configuration{each}" for each in ("", "/values", "/runtime")))
    shown = [site.log, *(site.get(path, ours("admin")).decode() for path in paths)]
    assert [(secret, text[:40]) for secret in secrets for text in shown if secret in text] == []
