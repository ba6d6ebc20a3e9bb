"""Two brokers that ask one another with a token over TLS, on a real ZooKeeper and bookies: what is asked for comes."""

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.broker.security.token_maker import SECRET, in_setting, token
from tests.certificates import Authority, need_openssl
from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster_admin import started_brokers
from tests.clients.python_client import until
from tests.clients.test_secured_server import tls_settings

pytestmark = [pytest.mark.clients, need_openssl, pytest.mark.timeout(240)]

NAMESPACE = "/admin/v2/namespaces/public/default"
TOPICS = "/admin/v2/persistent/public/default"


class Cluster:
    """Both brokers, and what an operator asks of them over HTTPS."""

    def __init__(self, authority: Authority, brokers: list[BrokerProcess]) -> None:
        self._context = ssl.create_default_context(cafile=str(authority.certificate))
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


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, storage: str) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("secured")
    authority = Authority(directory / "authority")
    credentials = directory / "broker.token"
    credentials.write_text(token("broker"))
    settings = (
        *tls_settings(authority.sign("broker"), authority),
        "brokerServicePortTls=0",
        "webServicePortTls=0",
        "authenticationEnabled=true",
        "authorizationEnabled=true",
        "authenticationProviders=org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
        f"tokenSecretKey={in_setting(SECRET)}",
        "superUserRoles=admin,broker",
        "brokerClientAuthenticationPlugin=org.apache.pulsar.client.impl.auth.AuthenticationToken",
        f"brokerClientAuthenticationParameters={credentials.as_uri()}",
        "brokerClientTlsEnabled=true",
        f"brokerClientTrustCertsFilePath={authority.certificate}",
        "loadBalancerSheddingEnabled=false",
    )
    with started_brokers(directory, storage, *settings) as brokers:
        yield Cluster(authority, brokers)


@pytest.fixture
def partitions(cluster: Cluster) -> list[int]:
    """Who serves each partition of `t`: either broker some."""
    if "persistent://public/default/t" not in cluster.ask(0, "GET", f"{TOPICS}/partitioned"):
        cluster.ask(0, "PUT", f"{TOPICS}/t/partitions", 8)
    owners: list[int] = []

    def are_dealt() -> bool:
        cluster.ask(0, "PUT", f"{NAMESPACE}/unload")
        owners[:] = [cluster.owner_of(f"t-partition-{index}") for index in range(8)]
        return set(owners) == {0, 1}

    until(are_dealt)
    return owners


@pytest.mark.parametrize("asked", [0, 1])
def test_stats_of_all_partitions_come_whoever_serves_them(cluster: Cluster, partitions: list[int], asked: int) -> None:
    assert set(partitions) == {0, 1}
    found = cluster.ask(asked, "GET", f"{TOPICS}/t/partitioned-stats?perPartition=true")
    assert len(found["partitions"]) == 8


@pytest.mark.parametrize("asked", [0, 1])
def test_backlogs_are_cleared_and_bundles_unloaded_at_the_other_broker(
    cluster: Cluster, partitions: list[int], asked: int
) -> None:
    for path in ("clearBacklog", "clearBacklog/s"):
        cluster.ask(asked, "POST", f"{NAMESPACE}/{path}")
    cluster.ask(asked, "PUT", f"{TOPICS}/t/unload")
    cluster.ask(asked, "PUT", f"{NAMESPACE}/unload")


def test_topic_policies_are_written_and_read_at_the_broker_that_serves_them(cluster: Cluster, partitions: list[int]) -> None:
    for number, limit in enumerate((3, 4)):
        cluster.ask(number, "POST", f"{TOPICS}/t/maxProducers", limit)
        for reader in (0, 1):
            until(lambda reader=reader, limit=limit: cluster.ask(reader, "GET", f"{TOPICS}/t/maxProducers") == limit)  # type: ignore[misc]
    for log in cluster.logs:
        text = log.read_text()
        assert "not authenticated" not in text
        assert token("broker") not in text
