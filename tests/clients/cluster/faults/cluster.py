"""A cluster for faults: three ZooKeepers, four bookies on disks of their own, three brokers (E3 Qw3 Qa2), an autorecovery.

Owns the members, their network and their disks; `with` ends and removes all of it.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.bookie.disk_proofs.mounts import LoopMount, need_loop_mounts
from tests.clients.cluster.faults.members import Member, ZooKeeperMember, autorecovery, bookie, broker, zookeeper
from tests.clients.cluster.faults.network import Network, need_network
from tests.clients.cluster.faults.schedule import SHAPE
from tests.metadata.zookeeper.zookeeper_server import need_zookeeper

DISK_MEGABYTES = 400
AUTORECOVERY = "autorecovery"


class FaultCluster:
    """All members by name, and the disks of bookies."""

    def __init__(self, directory: Path, network: Network, running: ExitStack, *broker_settings: str) -> None:
        self.directory, self.network, self.shape = directory, network, SHAPE
        for name in (*SHAPE.all, AUTORECOVERY):
            network.add(name)
        at = network.addresses
        self.servers = ",".join(f"{at[name]}:2181" for name in SHAPE.zookeepers)
        uri = f"zk+hierarchical://{self.servers.replace(',', ';')}/ledgers"
        self.disks = {name: running.enter_context(LoopMount(DISK_MEGABYTES)) for name in SHAPE.bookies}
        self.zookeepers = {name: zookeeper(directory, network, name, SHAPE.zookeepers) for name in SHAPE.zookeepers}
        self.members: dict[str, Member] = {
            **self.zookeepers,
            **{name: bookie(directory, network, name, self.disks[name].path, uri) for name in SHAPE.bookies},
            **{name: broker(directory, network, name, self.servers, *broker_settings) for name in SHAPE.brokers},
            AUTORECOVERY: autorecovery(directory, network, AUTORECOVERY, uri),
        }
        for member in self.members.values():
            running.enter_context(member)
        self.brokers = [self.members[name] for name in SHAPE.brokers]

    @property
    def service_url(self) -> str:
        return "pulsar://" + ",".join(f"{broker.address}:6650" for broker in self.brokers)

    def start(self) -> None:
        """Starts the members, each after those that it needs."""
        for each in self.zookeepers.values():
            each.launch()
        for each in self.zookeepers.values():
            each.wait_until_ready()
        for names in (self.shape.bookies, (*self.shape.brokers, AUTORECOVERY)):
            for name in names:
                self.members[name].launch()
            for name in names:
                self.members[name].wait_until_ready()

    def leader(self) -> ZooKeeperMember | None:
        return next((each for each in self.zookeepers.values() if each.is_leader()), None)

    def ended(self) -> list[str]:
        """A line for each member that does not run: its name, and how it ended."""
        return [f"{name} {end}" for name, member in self.members.items() if (end := member.end())]


@contextmanager
def fault_cluster(directory: Path, *broker_settings: str) -> Iterator[FaultCluster]:
    """Started. Skips the test where it cannot be had."""
    need_zookeeper()
    need_network()
    need_loop_mounts()
    with ExitStack() as running:
        network = running.enter_context(Network())
        cluster = FaultCluster(directory, network, running, *broker_settings)
        cluster.start()
        yield cluster
