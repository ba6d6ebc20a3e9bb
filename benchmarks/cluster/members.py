"""A cluster of three bookies, a ZooKeeper and one broker in front, E3 Qw3 Qa2: ours, and Apache's of the same shape.

Both have Apache's ZooKeeper and one disk. Apache's processes have the settings that its distribution gives them, but for the
heaps, and a Java that compiles as it likes.
"""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.bookies.servers import ApacheBookie, OurBookie
from tests.clients.apache_broker_process import ApacheBrokerProcess, apache_classpath
from tests.clients.broker_process import BrokerProcess
from tests.metadata.zookeeper.zookeeper_server import ZooKeeperProcess
from tests.started_process import ROOT, StartedProcess, free_port

BOOKIES = 3
BROKER_HEAP = ("-Xms512m", "-Xmx1g", "-XX:MaxDirectMemorySize=2g")
PULSAR = str(ROOT / "bin" / "pulsar")


@dataclass(frozen=True, slots=True)
class Members:
    """One cluster that runs. `processes`: id of each, by what it is."""

    name: str
    broker_url: str
    processes: dict[str, int]
    others: dict[str, int] = field(default_factory=dict)
    """Processes that take no part in the work: their memory is of interest."""

    @property
    def pids(self) -> str:
        return ",".join(map(str, self.processes.values()))


class WarmApacheBroker(ApacheBrokerProcess):
    """Apache's broker as in tests, without the flags that keep it small there."""

    def launch_command(self, command: Sequence[str]) -> None:
        java, *words = command
        super().launch_command([java, *BROKER_HEAP, *(word for word in words if not word.startswith(("-Xm", "-XX:")))])


class Command(StartedProcess):
    """Any other process of ours, until its ready file is there."""

    def start(self, *words: str) -> dict[str, Any]:
        """Starts the members and returns the contents of the ready file."""
        self.launch_command([PULSAR, words[0], "--json-ready", str(self.ready_file), *words[1:]])
        return self.until_ready_file()


class ApachesAutorecovery(StartedProcess):
    """`AutoRecoveryMain` of its own; it is ready once it has connected, which it does not tell."""

    def start(self, uri: str, classpath: str) -> int:
        self.directory.mkdir(parents=True, exist_ok=True)
        conf = self.directory / "bookie.conf"
        conf.write_text(
            f"metadataServiceUri={uri}\nallowLoopback=true\nadvertisedAddress=127.0.0.1\nbookiePort={free_port()}\n"
        )
        main = ["org.apache.bookkeeper.replication.AutoRecoveryMain", "--conf", str(conf)]
        self.launch_command(["java", "-Xms64m", "-Xmx256m", "-cp", classpath, *main])
        return self.process_id


def sets(*settings: str) -> list[str]:
    return [word for each in settings for word in ("--set", each)]


@contextmanager
def our_cluster(scratch: Path, **more: str) -> Iterator[Members]:
    """`more`: settings of the broker."""
    lines = [f"{name}={value}" for name, value in more.items()]
    with ExitStack() as running:
        zookeeper = running.enter_context(ZooKeeperProcess(scratch / "zookeeper", "tickTime=2000")).start()
        uri = f"zk+hierarchical://{zookeeper.servers}/ledgers"
        processes = {"ZooKeeper": zookeeper.pid}
        for number in range(BOOKIES):
            bookie = running.enter_context(OurBookie(scratch / f"bookie-{number}", uri))
            bookie.start()
            processes[f"bookie {number}"] = bookie.pid
        broker = running.enter_context(BrokerProcess(scratch / "broker", zookeeper.servers, *lines)).start()
        processes["broker"] = broker.process_id
        settings = (f"metadataStoreUrl=zk:{zookeeper.servers}", "bindAddress=127.0.0.1", "servicePort=0", "webServicePort=0")
        proxy = running.enter_context(Command(scratch / "proxy"))
        recovery = running.enter_context(Command(scratch / "autorecovery"))
        others = {
            "proxy": proxy.start("proxy", *sets(*settings))["pid"],
            "autorecovery": recovery.start("autorecovery", *sets(f"metadataServiceUri={uri}"))["pid"],
        }
        yield Members("ours", broker.ready.broker_url, processes, others)


@contextmanager
def apaches_cluster(scratch: Path, **more: str) -> Iterator[Members]:
    """Apache's cluster, in the shape of `our_cluster`."""
    classpath = apache_classpath(scratch)
    with ExitStack() as running:
        zookeeper = running.enter_context(ZooKeeperProcess(scratch / "zookeeper", "tickTime=2000")).start()
        broker = running.enter_context(WarmApacheBroker(scratch / "broker", zookeeper.servers, classpath, **more))
        initialise(zookeeper.servers, broker)
        uri = f"zk+hierarchical://{zookeeper.servers}/ledgers"
        processes = {"ZooKeeper": zookeeper.pid}
        for number in range(BOOKIES):
            bookie = running.enter_context(ApacheBookie(scratch / f"bookie-{number}", uri, classpath))
            bookie.start()
            processes[f"bookie {number}"] = bookie.pid
        broker.start()
        processes["broker"] = broker.process_id
        recovery = running.enter_context(ApachesAutorecovery(scratch / "autorecovery"))
        others = {"autorecovery": recovery.start(uri, classpath)}
        yield Members("Apache", broker.ready.broker_url, processes, others)


def initialise(servers: str, broker: ApacheBrokerProcess) -> None:
    """Initialises the cluster with our command; a test shows that Apache's broker starts on that."""
    urls = ["-uw", broker.ready.web_url, "-ub", broker.ready.broker_url]
    subprocess.run([PULSAR, "initialize-cluster-metadata", "-c", "test", "-md", f"zk:{servers}", *urls], check=True)
