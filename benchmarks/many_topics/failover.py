"""The time until producers on many topics go on when one of two brokers of a cluster is killed."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.real_loads.tools import Row, Tool, Tools
from tests.clients.bookie_process import BookieProcess
from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster_admin import NAMESPACE, put, ranges
from tests.metadata.zookeeper_server import ZooKeeperProcess
from tests.toolchain import ROOT

PREFIX = "persistent://public/default/failover"
ONE_COPY = tuple(f"managedLedgerDefault{name}=1" for name in ("EnsembleSize", "WriteQuorum", "AckQuorum"))


@contextmanager
def two_brokers(scratch: Path) -> Iterator[list[BrokerProcess]]:
    """A ZooKeeper, a bookie and two brokers, one copy of everything."""
    with ExitStack() as running:
        zookeeper = running.enter_context(ZooKeeperProcess(scratch / "zookeeper")).start()
        uri = f"zk+hierarchical://{zookeeper.servers}/ledgers"
        running.enter_context(BookieProcess(scratch / "bookie", uri, "zkTimeout=2000")).start()
        brokers = (BrokerProcess(scratch / f"broker-{number}", zookeeper.servers, *ONE_COPY) for number in range(2))
        yield [running.enter_context(broker).start() for broker in brokers]


def failed_over(scratch: Path, tools: Tools, topics: int) -> Row:
    """All topics are on the broker that is killed; the clients know the other one."""
    with two_brokers(scratch) as (contact, victim):
        for bundle in ranges(contact):
            put(contact, f"{NAMESPACE}/{bundle}/unload?destinationBroker={victim.ready.web_url.removeprefix('http://')}")
        words = ["failover", "-url", contact.ready.broker_url, "-pid", str(contact.ready.pid)]
        words += ["-n", str(topics), "-topic", PREFIX, "-size", "100"]
        command = tools.command(Tool.CLIENT, words)
        with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
            assert client.stdin is not None
            assert client.stdout is not None
            client.stdout.readline()
            victim.kill()
            client.stdin.write("killed\n")
            client.stdin.close()
            row: Row = json.loads(client.stdout.readline() or '{"error": "the client ended without a row"}')
    return {"stage": "failover between two brokers of a cluster", **row}
