"""Servers that random topics are on: a standalone with its bookie inside, or a cluster with bookies of its own."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from tests.clients.bookie_process import BookieProcess
from tests.clients.broker_process import BrokerProcess
from tests.clients.server_process import Ready, ServerProcess
from tests.metadata.zookeeper.zookeeper_server import ZooKeeperProcess

from .admin import ask
from .queries import Way

_SETTINGS = (
    "transactionCoordinatorEnabled=true",
    "brokerEntryMetadataInterceptors=org.apache.pulsar.common.intercept.AppendIndexMetadataInterceptor",
    "exposingBrokerEntryMetadataToClientEnabled=true",
    "brokerDeleteInactiveTopicsEnabled=false",
    "defaultRetentionTimeInMinutes=-1",
    "defaultRetentionSizeInMB=-1",
)
_FILES = ("flushInterval=300",)
"""Setting of a bookie, in milliseconds: entries are in files soon."""
NAMESPACES = ("public/kept", "public/let-go")


class Servers(Protocol):
    @property
    def ways(self) -> tuple[Way, ...]: ...

    def begin(self) -> Ready: ...

    def crash(self) -> Ready:
        """The broker is killed, and there again; ledgers that it wrote are recovered."""


def make_namespaces(ready: Ready, names: tuple[str, str]) -> None:
    """Makes two namespaces; the second retains no message that every subscription has acknowledged."""
    for name in names:
        ask(ready, f"namespaces/{name}", method="PUT")
    ask(ready, f"namespaces/{names[1]}/retention", {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0}, "POST")


class Standalone:
    """Standalone with its bookie inside, which listens on no port."""

    ways: tuple[Way, ...] = (Way.BROKER, Way.AUTO)

    def __init__(self, process: ServerProcess) -> None:
        self._process = process

    def begin(self) -> Ready:
        return self._process.start()

    def crash(self) -> Ready:
        self._process.kill()
        return self._process.start()


class Cluster:
    """Three bookies, entries of which each is on two; the broker is killed, and then one of the bookies too."""

    ways: tuple[Way, ...] = (Way.BROKER, Way.PORTS, Way.AUTO)

    def __init__(self, broker: BrokerProcess, bookies: list[BookieProcess]) -> None:
        self._broker, self._bookies = broker, bookies

    def begin(self) -> Ready:
        return self._broker.start().ready

    def crash(self) -> Ready:
        self._broker.kill()
        victim = self._bookies[0]
        victim.kill()
        victim.start()
        self._bookies.append(self._bookies.pop(0))
        return self._broker.start().ready


@contextmanager
def standalone(directory: Path) -> Iterator[Servers]:
    with ServerProcess(directory, (*_SETTINGS, *_FILES)) as process:
        yield Standalone(process)


@contextmanager
def cluster(directory: Path) -> Iterator[Servers]:
    with ExitStack() as running:
        zookeeper = running.enter_context(ZooKeeperProcess(directory / "zookeeper")).start().servers
        uri = f"zk+hierarchical://{zookeeper}/ledgers"
        bookies = [
            running.enter_context(BookieProcess(directory / f"bookie-{number}", uri, "zkTimeout=2000", *_FILES)).start()
            for number in range(3)
        ]
        quorums = ("managedLedgerDefaultWriteQuorum=2", "managedLedgerDefaultAckQuorum=2")
        broker = BrokerProcess(directory / "broker", zookeeper, *_SETTINGS, *quorums)
        yield Cluster(running.enter_context(broker), bookies)
