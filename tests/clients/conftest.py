"""The server that client suites talk to.

With PULSAR_TEST_URL and PULSAR_TEST_WEB_URL set, the suites run against that server instead (a real Apache Pulsar, to test
the tests); those that kill the server are skipped then.
"""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pulsar
import pytest
from kazoo.client import KazooClient

from tests.clients.broker_process import storage_of_a_cluster
from tests.clients.python_client import quiet_client
from tests.clients.server_process import Ready, ServerProcess, given_or_started
from tests.metadata.zookeeper.zookeeper_server import ZooKeeperProcess, need_zookeeper


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ready]:
    """One standalone for all tests that only use it."""
    with given_or_started(tmp_path_factory.mktemp("standalone")) as ready:
        yield ready


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A standalone that the test may kill."""
    if os.environ.get("PULSAR_TEST_URL"):
        pytest.skip("runs against a server that is not ours to kill")
    with ServerProcess(tmp_path) as process:
        process.start()
        yield process


@pytest.fixture(scope="session")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A ZooKeeper and three bookies for all tests of brokers in a cluster; ZooKeeper's servers."""
    with storage_of_a_cluster(tmp_path_factory.mktemp("storage")) as servers:
        yield servers


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a ZooKeeper for the tests that run bookies of their own."""
    need_zookeeper()
    with ZooKeeperProcess(tmp_path_factory.mktemp("zookeeper")) as process:
        yield process.start().servers


@pytest.fixture
def servers(zookeeper: str) -> Iterator[str]:
    """Nothing of the ledgers of the test before is left."""
    yield zookeeper
    client = KazooClient(zookeeper)
    client.start()
    try:
        if client.exists("/ledgers"):
            client.delete("/ledgers", recursive=True)
    finally:
        client.stop()
        client.close()


@pytest.fixture(scope="module")
def client(server: Ready) -> Iterator[pulsar.Client]:
    connected = quiet_client(server.broker_url)
    yield connected
    connected.close()


@pytest.fixture
def topic() -> str:
    return f"persistent://public/default/py-{uuid.uuid4().hex[:12]}"
