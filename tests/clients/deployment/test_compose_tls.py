"""docker-compose.yml with docker-compose.tls.yml, run as processes: only clients with a token are served, and over TLS."""

import json
import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pulsar
import pytest

from tests.certificates import need_openssl
from tests.clients.deployment.compose_cluster import ComposeCluster, compose_cluster, free_network
from tests.clients.deployment.compose_file import COMPOSE, SECURED, Places
from tests.started_process import ROOT
from tests.toolchain import run_tool

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600), need_openssl]
TOPIC = "persistent://public/default/secured"


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("compose-tls") / "secrets"


@pytest.fixture(scope="module")
def cluster(secrets: Path) -> Iterator[ComposeCluster]:
    places = Places(free_network(), secrets.parent, COMPOSE, SECURED, secrets=secrets)
    hosts = ",".join(f"IP:{address}" for address in places.addresses.values())
    environment = {**os.environ, "SECRETS": str(secrets), "HOSTS": hosts}
    run_tool([str(ROOT / "deploy" / "make-secrets"), "alice"], ROOT, 120, environment)
    with compose_cluster(secrets.parent, places) as running:
        yield running
        codes = running.stop()
        assert set(codes.values()) == {0}, codes


def client_of(cluster: ComposeCluster, secrets: Path, role: str = "") -> pulsar.Client:
    authentication = pulsar.AuthenticationToken((secrets / f"{role}.token").read_text().strip()) if role else None
    return pulsar.Client(
        f"pulsar+ssl://{cluster.places.addresses['proxy']}:6651",
        authentication=authentication,
        tls_trust_certs_file_path=str(secrets / "ca.pem"),
        tls_validate_hostname=True,
        operation_timeout_seconds=10,
        logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
    )


def ask(cluster: ComposeCluster, secrets: Path, path: str, role: str = "") -> int:
    """The status of GET over HTTPS, through the proxy."""
    headers = {"Authorization": f"Bearer {(secrets / f'{role}.token').read_text().strip()}"} if role else {}
    request = urllib.request.Request(f"https://{cluster.places.addresses['proxy']}:8443{path}", headers=headers)
    try:
        context = ssl.create_default_context(cafile=secrets / "ca.pem")
        with urllib.request.urlopen(request, timeout=30, context=context) as answer:
            answer.read()
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        refused.close()
        return refused.code


def test_every_health_check_of_both_files_says_healthy(cluster: ComposeCluster) -> None:
    assert [name for name, service in cluster.services.items() if name != "metadata" and not service.is_healthy()] == []


def test_a_client_with_a_token_publishes_and_receives_through_the_proxy(cluster: ComposeCluster, secrets: Path) -> None:
    client = client_of(cluster, secrets, "admin")
    consumer = client.subscribe(TOPIC, "s")
    client.create_producer(TOPIC).send(b"over TLS")
    assert consumer.receive(30_000).data() == b"over TLS"
    client.close()


def test_without_a_token_or_a_permission_nothing_is_done(cluster: ComposeCluster, secrets: Path) -> None:
    for role in ("", "alice"):
        client = client_of(cluster, secrets, role)
        with pytest.raises(pulsar.PulsarException):
            client.create_producer(f"{TOPIC}-{role}")
        client.close()


def test_the_admin_rest_asks_for_a_token_too(cluster: ComposeCluster, secrets: Path) -> None:
    found = {role: ask(cluster, secrets, "/admin/v2/tenants", role) for role in ("admin", "", "alice")}
    assert (found["admin"], found[""]) == (200, 401)
    assert found["alice"] in (401, 403), "known, and may not"


def test_brokers_listen_over_tls_alone(cluster: ComposeCluster) -> None:
    log = json.dumps([service.log.read_text() for name, service in cluster.services.items() if name.startswith("broker-")])
    assert "pulsar+ssl://" in log
    assert "pulsar://" not in log
