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

from tests.clients.broker_process import storage_of_a_cluster
from tests.clients.python_client import quiet_client
from tests.clients.server_process import Ready, ServerProcess


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ready]:
    """One standalone for all tests that only use it."""
    url = os.environ.get("PULSAR_TEST_URL")
    if url:
        yield Ready(url, os.environ["PULSAR_TEST_WEB_URL"], 0)
        return
    with ServerProcess(tmp_path_factory.mktemp("standalone")) as process:
        yield process.start()
        assert process.stop() == 0, process.log.read_text()


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


@pytest.fixture(scope="module")
def client(server: Ready) -> Iterator[pulsar.Client]:
    connected = quiet_client(server.broker_url)
    yield connected
    connected.close()


@pytest.fixture
def topic() -> str:
    return f"persistent://public/default/py-{uuid.uuid4().hex[:12]}"
