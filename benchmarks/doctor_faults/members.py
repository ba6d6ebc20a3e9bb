"""Members: the processes of the cluster that faults are injected into, and what each fault may start beside them."""

from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import pulsar
from kazoo.client import KazooClient

from benchmarks.doctor_faults.fault import Injected
from bookkeeper.ledger_metadata.codec import decode_ledger_metadata
from bookkeeper.ledger_metadata.paths import ledger_path
from tests.clients.bookie_process import BookieProcess
from tests.clients.broker_process import BrokerProcess
from tests.metadata.zookeeper.zookeeper_server import ZooKeeperProcess

SESSION_MS = 6_000
GONE_SECONDS_MAX = 30.0
MESSAGES = 50
QUORUMS = ("managedLedgerDefaultEnsembleSize=2", "managedLedgerDefaultWriteQuorum=2", "managedLedgerDefaultAckQuorum=2")
TOPIC = "persistent://public/default/orders"


@dataclass(slots=True)
class Members:
    """The processes, and a session with ZooKeeper to look in and to damage it."""

    directory: Path
    zookeeper: ZooKeeperProcess
    bookies: list[BookieProcess]
    brokers: list[BrokerProcess]
    kazoo: KazooClient
    ending: ExitStack

    @property
    def uri(self) -> str:
        return f"zk+hierarchical://{self.zookeeper.servers}/ledgers"

    @property
    def admin(self) -> tuple[str, ...]:
        return ("--admin-url", self.brokers[0].ready.web_url)

    def asked(self, *things: str, words: Sequence[str | Path] = ()) -> Injected:
        return Injected((*self.admin, "--data-dir", self.directory / "nothing", *words), things)

    def configured(self, name: str, text: str, *things: str) -> Injected:
        """Examination with a configuration file of this text."""
        file = self.directory / name
        file.write_text(text)
        return self.asked(*things, words=("--config", file))

    def broker(self, name: str, *settings: str) -> BrokerProcess:
        """Another one, started and stopped with the fault."""
        process = BrokerProcess(self.directory / name, self.zookeeper.servers, *QUORUMS, *settings)
        self.ending.enter_context(process).start()
        self.ending.callback(process.stop)
        return process

    def bookie(self, name: str, *settings: str) -> BookieProcess:
        process = BookieProcess(self.directory / name, self.uri, f"zkTimeout={SESSION_MS}", *settings)
        self.ending.enter_context(process).start()
        self.ending.callback(process.stop)
        return process

    def until_gone(self, path: str) -> None:
        """Waits until an ephemeral node is gone, whose session ends."""
        waiting = self.kazoo.handler.event_object()
        if self.kazoo.exists(path, watch=lambda event: waiting.set()):
            waiting.wait(GONE_SECONDS_MAX)

    def until_there(self, path: str) -> None:
        """Waits for the ephemeral node of a member that comes back."""
        waiting = self.kazoo.handler.event_object()
        if not self.kazoo.exists(path, watch=lambda event: waiting.set()):
            waiting.wait(GONE_SECONDS_MAX)

    def until_auditor(self) -> None:
        """Waits for autorecovery, which takes its place after it has told that it is ready."""
        path, waiting = "/ledgers/underreplication/auditorelection", self.kazoo.handler.event_object()
        self.kazoo.ensure_path(path)
        if not self.kazoo.get_children(path, watch=lambda event: waiting.set()):
            waiting.wait(GONE_SECONDS_MAX)

    def bookies_of(self, ledger_id: int) -> tuple[str, ...]:
        """Bookies that the ledger's metadata names first."""
        value, _ = self.kazoo.get(ledger_path(ledger_id))
        return decode_ledger_metadata(value).segments[0].bookies

    def publish(self) -> None:
        """Publishes to a topic of its own, by a client that looks it up."""
        client = pulsar.Client(
            self.brokers[0].ready.broker_url, logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, "/dev/null")
        )
        with closing(client):
            producer = client.create_producer(TOPIC)
            for _ in range(MESSAGES):
                producer.send(b"an order")
