"""Two brokers that ask one another with a token over TLS, on a real ZooKeeper and bookies: each gets its answers."""

from collections.abc import Iterator

import pytest

from tests.broker.security.token_maker import token
from tests.certificates import Authority, need_openssl
from tests.clients.cluster_admin import started_brokers
from tests.clients.python_client import until
from tests.clients.secured_brokers import SecuredCluster, cluster_settings, token_file

pytestmark = [pytest.mark.clients, need_openssl, pytest.mark.timeout(240)]

NAMESPACE = "/admin/v2/namespaces/public/default"
TOPICS = "/admin/v2/persistent/public/default"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, storage: str) -> Iterator[SecuredCluster]:
    directory = tmp_path_factory.mktemp("secured")
    authority = Authority(directory / "authority")
    settings = (*cluster_settings(authority, token_file(directory, "broker")), "loadBalancerSheddingEnabled=false")
    with started_brokers(directory, storage, *settings) as brokers:
        yield SecuredCluster(authority, brokers)


@pytest.fixture
def partitions(cluster: SecuredCluster) -> list[int]:
    """Broker of each partition of `t`: either broker serves some."""
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
def test_stats_of_all_partitions_come_whoever_serves_them(cluster: SecuredCluster, partitions: list[int], asked: int) -> None:
    assert set(partitions) == {0, 1}
    found = cluster.ask(asked, "GET", f"{TOPICS}/t/partitioned-stats?perPartition=true")
    assert len(found["partitions"]) == 8


@pytest.mark.parametrize("asked", [0, 1])
def test_backlogs_are_cleared_and_bundles_unloaded_at_the_other_broker(
    cluster: SecuredCluster, partitions: list[int], asked: int
) -> None:
    for path in ("clearBacklog", "clearBacklog/s"):
        cluster.ask(asked, "POST", f"{NAMESPACE}/{path}")
    cluster.ask(asked, "PUT", f"{TOPICS}/t/unload")
    cluster.ask(asked, "PUT", f"{NAMESPACE}/unload")


def test_topic_policies_are_written_and_read_at_the_broker_that_serves_them(
    cluster: SecuredCluster, partitions: list[int]
) -> None:
    for number, limit in enumerate((3, 4)):
        cluster.ask(number, "POST", f"{TOPICS}/t/maxProducers", limit)
        for reader in (0, 1):
            until(lambda reader=reader, limit=limit: cluster.ask(reader, "GET", f"{TOPICS}/t/maxProducers") == limit)  # type: ignore[misc]
    for log in cluster.logs:
        text = log.read_text()
        assert "not authenticated" not in text
        assert token("broker") not in text
