"""The time until producers on many topics go on when one of two brokers of a cluster is killed."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.real_loads.tools import Row, Tool, Tools, last_row
from tests.clients.bookie_process import BookieProcess
from tests.clients.broker_process import BrokerProcess
from tests.clients.cluster_admin import NAMESPACE, id_of, owner_of, put, ranges
from tests.clients.python_client import until
from tests.metadata.zookeeper.zookeeper_server import ZooKeeperProcess
from tests.toolchain import ROOT

STAGE = "failover between two brokers of a cluster"
PREFIX = "persistent://public/default/failover"
LOOKED_UP = 40
ONE_COPY = tuple(f"managedLedgerDefault{name}=1" for name in ("EnsembleSize", "WriteQuorum", "AckQuorum"))


@contextmanager
def two_brokers(scratch: Path) -> Iterator[list[BrokerProcess]]:
    """A ZooKeeper, a bookie and two brokers, one copy of everything, sessions long enough for a busy machine."""
    with ExitStack() as running:
        zookeeper = running.enter_context(ZooKeeperProcess(scratch / "zookeeper", "tickTime=2000")).start()
        running.enter_context(BookieProcess(scratch / "bookie", f"zk+hierarchical://{zookeeper.servers}/ledgers")).start()
        settings = (*ONE_COPY, "metadataStoreSessionTimeoutMillis=10000")
        brokers = (BrokerProcess(scratch / f"broker-{number}", zookeeper.servers, *settings) for number in range(2))
        yield [running.enter_context(broker).start() for broker in brokers]


def gather(contact: BrokerProcess, victim: BrokerProcess) -> None:
    """Move every bundle to the broker that is to be killed: some topics' names, looked up, stand for all of them."""
    names = [f"{PREFIX}-{number}" for number in range(LOOKED_UP)]
    for name in names:
        owner_of(name, contact)
    for bundle in ranges(contact):
        put(contact, f"{NAMESPACE}/{bundle}/unload?destinationBroker={id_of(victim)}")
    until(lambda: all(owner_of(name, contact) == victim.ready.broker_url for name in names))


def failed_over(scratch: Path, tools: Tools, topics: int) -> Row:
    """All topics are on the broker that is killed; the clients know the other one."""
    with two_brokers(scratch) as (contact, victim):
        gather(contact, victim)
        words = ["failover", "-url", contact.ready.broker_url, "-pid", str(contact.ready.pid)]
        words += ["-n", str(topics), "-topic", PREFIX, "-size", "100"]
        command = tools.command(Tool.CLIENT, words)
        with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
            assert client.stdin is not None
            assert client.stdout is not None
            opened = last_row(client.stdout.readline(), "the client ended without a row")
            if "error" in opened:
                return {"stage": STAGE, **opened}
            victim.kill()
            client.stdin.write("killed\n")
            client.stdin.close()
            row: Row = json.loads(client.stdout.readline() or '{"error": "the client ended without a row"}')
    return {"stage": STAGE, **row}
