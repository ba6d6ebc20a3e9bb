"""A broker of a cluster as its users start it: `bin/pulsar broker` in a process of its own, killed and started at will."""

import contextlib
import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.clients.bookie_process import BookieProcess
from tests.clients.server_process import ROOT, Ready
from tests.metadata.zookeeper_server import SESSION_SECONDS, ZooKeeperProcess, need_zookeeper

READY_SECONDS_MAX = 60.0
QUORUMS = (
    "managedLedgerDefaultEnsembleSize=3",
    "managedLedgerDefaultWriteQuorum=3",
    "managedLedgerDefaultAckQuorum=2",
)


class BrokerDidNotStart(Exception):
    """The process ended, or was not ready in time; the message holds its log."""


class BrokerProcess:
    """The process that serves. A second start takes the ports of the first."""

    def __init__(self, directory: Path, servers: str, *settings: str) -> None:
        self.directory = directory
        self.ports = ("0", "0")
        self.ready: Ready
        self._settings = (
            f"metadataStoreUrl=zk:{servers}",
            f"metadataStoreSessionTimeoutMillis={int(SESSION_SECONDS * 1000)}",
            "clusterName=test",
            "bindAddress=127.0.0.1",
            *QUORUMS,
            *settings,
        )
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        return self.directory / "log"

    def start(self) -> "BrokerProcess":
        self.directory.mkdir(parents=True, exist_ok=True)
        ready_file = self.directory / "ready.json"
        ready_file.unlink(missing_ok=True)
        ports = (f"brokerServicePort={self.ports[0]}", f"webServicePort={self.ports[1]}")
        command = [str(ROOT / "bin" / "pulsar"), "broker", "--json-ready", str(ready_file)]
        command += [word for each in (*ports, *self._settings) for word in ("--set", each)]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.ready = self._wait_until_ready(ready_file)
        self.ports = (self.ready.broker_url.rsplit(":", 1)[1], self.ready.web_url.rsplit(":", 1)[1])
        return self

    def _wait_until_ready(self, ready_file: Path) -> Ready:
        assert self._process is not None
        deadline = time.monotonic() + READY_SECONDS_MAX
        while time.monotonic() < deadline:
            with contextlib.suppress(FileNotFoundError):
                written = json.loads(ready_file.read_text())
                return Ready(written["brokerServiceUrl"], written["webServiceUrl"], written["pid"])
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self._process.wait(timeout=0.02)
                raise BrokerDidNotStart(f"exit code {code}\n{self.log.read_text()}")
        self.kill()
        raise BrokerDidNotStart(f"not ready after {READY_SECONDS_MAX} s\n{self.log.read_text()}")

    def kill(self) -> None:
        """kill -9, and wait for the end."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """SIGTERM, and wait; the exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> int:
        if self._process is None:
            return 0
        self._process.send_signal(how)
        try:
            return self._process.wait(timeout=60)
        finally:
            self._process = None


@contextmanager
def storage_of_a_cluster(directory: Path) -> Iterator[str]:
    """A ZooKeeper and three bookies; ZooKeeper's servers."""
    need_zookeeper()
    with contextlib.ExitStack() as running:
        zookeeper = ZooKeeperProcess(directory / "zookeeper").start()
        running.callback(zookeeper.stop)
        uri = f"zk+hierarchical://{zookeeper.servers}/ledgers"
        for number in range(3):
            bookie = BookieProcess(directory / f"bookie-{number}", uri, "zkTimeout=2000").start()
            running.callback(bookie.stop)
        yield zookeeper.servers
