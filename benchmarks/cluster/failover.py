"""Waits of publishers when a broker or a bookie goes: `python -m benchmarks.cluster.failover [--faults kill,stop,bookie]`.

A ZooKeeper, four bookies and two brokers (E3 Qw3 Qa2), each a process. A client publishes at a paced rate to topics in all
bundles; all are moved to the second broker before that is hit, and the client knows the first one's address (or, with `--both`,
both: then it tries the dead one as often). Printed for each fault: the longest time that a publish took around each, counted
from when it was due, at p50 and worst; percentiles of all publishes; how many failed, and how many of those that were
acknowledged no message has at the end. `--through-proxy`: the client knows a `bin/pulsar proxy` alone.
"""

import argparse
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cluster.failover_publishers import GoPublisher, JavaPublisher, Kept, Publisher, PythonPublisher
from benchmarks.cluster.members import Command, sets
from tests.clients.bookie_process import BookieProcess
from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster_admin import NAMESPACE, owner_of, put, ranges
from tests.clients.python_client import until
from tests.metadata.zookeeper.zookeeper_server import ZooKeeperProcess

BOOKIES = 4
AROUND_SECONDS = 2.0
"""Time for which publishing goes on before and after each fault."""
BOOKIE_AWAY_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster: members and publishers."""

    brokers: Sequence[BrokerProcess]
    bookies: Sequence[BookieProcess]
    publisher: Publisher

    def gather(self) -> BrokerProcess:
        """All bundles on the second broker, which is to be hit."""
        contact, victim = self.brokers
        for bundle in ranges(contact):
            put(contact, f"{NAMESPACE}/{bundle}/unload?destinationBroker={victim.ready.web_url.removeprefix('http://')}")
        until(lambda: all(owner_of(topic, contact) == victim.ready.broker_url for topic in self.publisher.topics))
        self.publisher.until_answered(time.monotonic())
        return victim


Fault = Callable[[Cluster], Callable[[], object]]
"""Does the harm, and returns how it is mended."""


def kill(cluster: Cluster) -> Callable[[], object]:
    broker = cluster.brokers[1]
    broker.kill()
    return broker.start


def stop(cluster: Cluster) -> Callable[[], object]:
    broker = cluster.brokers[1]
    code = broker.stop()
    assert code == 0, broker.log.read_text()
    return broker.start


def kill_bookie(cluster: Cluster) -> Callable[[], object]:
    bookie = random.SystemRandom().choice(cluster.bookies)
    bookie.kill()
    time.sleep(BOOKIE_AWAY_SECONDS)
    return bookie.start


CLIENTS: dict[str, type[Publisher]] = {"python": PythonPublisher, "java": JavaPublisher, "go": GoPublisher}
FAULTS: dict[str, Fault] = {"kill": kill, "stop": stop, "bookie": kill_bookie}


def around(cluster: Cluster, fault: Fault) -> float:
    """One fault: the longest publish from it on, until all that was due has been answered again. Seconds."""
    cluster.gather()
    publisher = cluster.publisher
    publisher.begin()
    time.sleep(AROUND_SECONDS)
    begin = time.monotonic()
    mend = fault(cluster)
    publisher.until_answered(time.monotonic())
    time.sleep(AROUND_SECONDS)
    worst = publisher.longest(begin)
    publisher.rest()
    mend()
    return worst


def milliseconds(seconds: Sequence[float]) -> str:
    return ", ".join(
        f"{name} {sorted(seconds)[min(len(seconds) - 1, int(share * len(seconds)))] * 1000:.0f} ms"
        for name, share in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999), ("worst", 1.0))
    )


def run(cluster: Cluster, name: str, times: int) -> None:
    spikes, took = [], []
    for _ in range(times):
        spikes.append(around(cluster, FAULTS[name]))
        took += cluster.publisher.took()
        print(f"  {name}: {spikes[-1] * 1000:.0f} ms, load average {os.getloadavg()[0]:.1f}", flush=True)
    middle = statistics.median(spikes) * 1000
    print(f"{name}, {times} times: longest publish of each: p50 {middle:.0f} ms, worst {max(spikes) * 1000:.0f} ms")
    print(f"  all {len(took)} publishes: {milliseconds(took)}; failed: {len(cluster.publisher.failures)}", flush=True)


@contextmanager
def cluster_of(scratch: Path, options: argparse.Namespace) -> Iterator[Cluster]:
    with ExitStack() as running:
        zookeeper = running.enter_context(ZooKeeperProcess(scratch / "zookeeper", "tickTime=2000")).start()
        uri = f"zk+hierarchical://{zookeeper.servers}/ledgers"
        bookies = [running.enter_context(BookieProcess(scratch / f"bookie-{number}", uri)).start() for number in range(BOOKIES)]
        session = f"metadataStoreSessionTimeoutMillis={options.session * 1000}"
        brokers = [
            running.enter_context(BrokerProcess(scratch / f"broker-{number}", zookeeper.servers, session)).start()
            for number in range(2)
        ]
        known = brokers if options.both else brokers[:1]
        url = "pulsar://" + ",".join(broker.ready.broker_url.removeprefix("pulsar://") for broker in known)
        if options.through_proxy:
            where = (f"metadataStoreUrl=zk:{zookeeper.servers}", "bindAddress=127.0.0.1", "servicePort=0", "webServicePort=0")
            url = running.enter_context(Command(scratch / "proxy")).start("proxy", *sets(*where))["serviceUrl"]
        topics = [f"persistent://public/default/failover-{number}" for number in range(options.topics)]
        kept = Kept(brokers[0].ready.broker_url, topics)
        with CLIENTS[options.client](url, topics, options.rate, scratch) as publisher:
            yield Cluster(brokers, bookies, publisher)
        missing, count = kept.missing(publisher.acknowledged), sum(map(len, publisher.acknowledged))
        print(f"{count} acknowledged publishes, of which no message has: {missing or 'none'}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", default="stop,bookie,kill")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--rate", type=float, default=200, help="messages of 1 KB a second, of all topics together")
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--session", type=int, default=10, help="seconds; of brokers with ZooKeeper")
    parser.add_argument("--both", action="store_true", help="the client knows the addresses of both brokers")
    parser.add_argument("--through-proxy", action="store_true", help="the client knows the address of a proxy")
    parser.add_argument("--client", choices=tuple(CLIENTS), default="python")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="interpulse-failover-") as scratch, cluster_of(Path(scratch), options) as cluster:
        for name in options.faults.split(","):
            run(cluster, name, options.times)


if __name__ == "__main__":
    main()
