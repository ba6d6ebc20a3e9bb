"""A broker of a cluster as its users start it: `bin/pulsar broker` in a process of its own, killed and started at will."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

from tests.clients.bookie_process import BookieProcess
from tests.clients.server_process import Ready
from tests.metadata.zookeeper.zookeeper_server import SESSION_SECONDS, ZooKeeperProcess, need_zookeeper
from tests.started_process import ROOT, StartedProcess, free_port

QUORUMS = (
    "managedLedgerDefaultEnsembleSize=3",
    "managedLedgerDefaultWriteQuorum=3",
    "managedLedgerDefaultAckQuorum=2",
)


class BrokerProcess(StartedProcess):
    """The process that serves, on the same ports each time."""

    def __init__(self, directory: Path, servers: str, *settings: str) -> None:
        super().__init__(directory)
        self.ready: Ready
        self._settings = (
            f"brokerServicePort={free_port()}",
            f"webServicePort={free_port()}",
            f"metadataStoreUrl=zk:{servers}",
            f"metadataStoreSessionTimeoutMillis={int(SESSION_SECONDS * 1000)}",
            "clusterName=test",
            "bindAddress=127.0.0.1",
            *QUORUMS,
            *settings,
        )

    def start(self) -> Self:
        command = [str(ROOT / "bin" / "pulsar"), "broker", "--json-ready", str(self.ready_file)]
        self.launch_command([*command, *(word for each in self._settings for word in ("--set", each))])
        written = self.until_ready_file()
        self.ready = Ready(written["brokerServiceUrl"], written["webServiceUrl"], written["pid"])
        return self


@contextmanager
def storage_of_a_cluster(directory: Path) -> Iterator[str]:
    """A ZooKeeper and three bookies; ZooKeeper's servers."""
    need_zookeeper()
    with ExitStack() as running:
        zookeeper = running.enter_context(ZooKeeperProcess(directory / "zookeeper")).start()
        uri = f"zk+hierarchical://{zookeeper.servers}/ledgers"
        for number in range(3):
            running.enter_context(BookieProcess(directory / f"bookie-{number}", uri, "zkTimeout=2000")).start()
        yield zookeeper.servers
