"""The ZooKeeper that the bookies of disk proofs register with; it is not on their disks."""

from collections.abc import Iterator

import pytest

from tests.metadata.zookeeper.zookeeper_server import ZooKeeperProcess, need_zookeeper


@pytest.fixture(scope="session")
def metadata_service_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    need_zookeeper()
    with ZooKeeperProcess(tmp_path_factory.mktemp("zookeeper")) as server:
        server.start()
        yield f"zk+hierarchical://{server.servers}/ledgers"
        assert server.stop() == 0, server.log.read_text()
