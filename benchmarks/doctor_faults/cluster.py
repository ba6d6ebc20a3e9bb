"""Faults of a cluster of Apache's ZooKeeper, three bookies and two brokers: its processes are killed, paused and moved.

The faults follow each other on one cluster, and each leaves it as it was; the last ones end it.
"""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kazoo.client import KazooClient

from benchmarks.cluster.members import Command, sets
from benchmarks.doctor_faults.fault import FAIL, PULSAR, WARN, Fault, Injected
from benchmarks.doctor_faults.members import QUORUMS, SESSION_MS, TOPIC, Members
from benchmarks.doctor_faults.metadata_faults import METADATA_FAULTS, Row, ledger_of, ledgers_of, marked_as_lacking
from tests.clients.bookie_process import BookieProcess
from tests.clients.broker_process import BrokerProcess
from tests.metadata.zookeeper.zookeeper_server import ZooKeeperProcess
from tests.started_process import free_port

TICK_MS = 1_000
RETENTION = ("defaultRetentionTimeInMinutes=60", "defaultRetentionSizeInMB=100")
"""The topic has no subscription, and stays."""


Arrange = Callable[[Members], Injected]


@contextmanager
def started(directory: Path) -> Iterator[list[Fault]]:
    """The faults, on a cluster that runs as long."""
    with ExitStack() as running:
        zookeeper = running.enter_context(ZooKeeperProcess(directory / "zookeeper", f"tickTime={TICK_MS}")).start()
        uri = f"zk+hierarchical://{zookeeper.servers}/ledgers"
        bookies = []
        for number in range(3):
            bookie = BookieProcess(directory / f"bookie-{number}", uri, f"zkTimeout={SESSION_MS}")
            bookies.append(running.enter_context(bookie).start())
        settings = (*QUORUMS, *RETENTION, f"metadataStoreSessionTimeoutMillis={SESSION_MS}")
        brokers = [
            running.enter_context(BrokerProcess(directory / f"broker-{number}", zookeeper.servers, *settings)).start()
            for number in range(2)
        ]
        kazoo = KazooClient(zookeeper.servers)
        kazoo.start()
        running.callback(kazoo.close)
        running.callback(kazoo.stop)
        members = Members(directory, zookeeper, bookies, brokers, kazoo, running)
        members.publish()
        yield _faults(members)


def _faults(members: Members) -> list[Fault]:
    def fault(name: str, arrange: Arrange, check: str = "", level: str = FAIL, remedy: tuple[str, ...] = ()) -> Fault:
        @contextmanager
        def inject(own: Path) -> Iterator[Injected]:
            with ExitStack() as ending:
                members.directory, members.ending = own, ending
                yield arrange(members)

        return Fault(name, inject, check, level, remedy)

    return [
        fault("control: a cluster", lambda each: each.asked()),
        *(fault(*row) for row in (*_ROWS, *METADATA_FAULTS, *_LAST)),
    ]


# ---- Settings


def _read_only(members: Members) -> Injected:
    bookie = members.bookie("read-only", "forceReadOnlyBookie=true")
    _forgotten(members, bookie)
    return members.asked(bookie.bookie_id)


def _forgotten(members: Members, bookie: BookieProcess) -> None:
    """Deletes a bookie's data together with its cookie."""
    members.ending.callback(members.kazoo.delete, f"/ledgers/cookies/{bookie.bookie_id}")


def _racks(members: Members) -> Injected:
    """A broker with these settings does not start; neither does the next."""
    text = f"{_settings(members)}bookkeeperClientEnforceMinNumRacksPerWriteQuorum=true\n"
    return members.configured("broker.conf", text, "/default-rack")


def _four_copies(members: Members) -> Injected:
    four = "".join(f"managedLedgerDefault{each}=4\n" for each in ("EnsembleSize", "WriteQuorum"))
    return members.configured("broker.conf", _settings(members) + four, "3 writable bookies")


def _settings(members: Members, cluster: str = "test", *more: str) -> str:
    servers = ",".join((members.zookeeper.servers, *more))
    return f"metadataStoreUrl=zk:{servers}\nclusterName={cluster}\n"


def _unreachable(members: Members) -> Injected:
    members.broker("far", "advertisedAddress=127.0.0.99")
    return members.asked("127.0.0.99:")


def _twins(members: Members) -> Injected:
    port = free_port()
    for number in (1, 2):
        members.broker(
            f"twin-{number}", f"brokerServicePort={port}", f"bindAddress=127.0.0.{number}", "advertisedAddress=localhost"
        )
    return members.asked(f"localhost:{port}")


def _other_cluster(members: Members) -> Injected:
    return members.configured("broker.conf", _settings(members, "other"), "clusterName=other")


def _moved_bookie(members: Members) -> Injected:
    bookie, place = members.bookies[0], members.directory
    for name in ("journal", "ledgers"):
        (place / name).mkdir()
    directories = f"journalDirectories={place}/journal\nledgerDirectories={place}/ledgers\n"
    where = f"bookiePort={bookie.port}\nadvertisedAddress=127.0.0.1\nmetadataServiceUri={members.uri}\n"
    return members.configured("bookkeeper.conf", directories + where, bookie.bookie_id, str(place))


def _half_zookeeper(members: Members) -> Injected:
    down = f"127.0.0.1:{free_port()}"
    return members.configured(
        "broker.conf", f"metadataStoreUrl=zk:{members.zookeeper.servers},{down}\nclusterName=test\n", down
    )


# ---- Replication


def _lacking(members: Members) -> str:
    missing = members.bookies[2].bookie_id
    marked_as_lacking(members, ledger_of(members), missing)
    return missing


def _lacking_disabled(members: Members) -> Injected:
    missing = _lacking(members)
    members.kazoo.ensure_path("/ledgers/underreplication/disable")
    members.ending.callback(members.kazoo.delete, "/ledgers/underreplication/disable")
    return members.asked(missing)


def _lacking_alone(members: Members) -> Injected:
    return members.asked(_lacking(members))


def _lacking_repaired(members: Members) -> Injected:
    """Somebody holds the ledger's lock: else it would be repaired before the doctor looks."""
    missing = _lacking(members)
    name = f"/ledgers/underreplication/locks/urL{ledger_of(members):010d}"
    members.kazoo.create(name, b'bookieId: "another"\n', ephemeral=True, makepath=True)
    members.ending.callback(members.kazoo.delete, name)
    recovery = members.ending.enter_context(Command(members.directory / "autorecovery"))
    recovery.start("autorecovery", *sets(f"metadataServiceUri={members.uri}"))
    members.until_auditor()
    return members.asked(missing)


# ---- Brokers


def _hanging_broker(members: Members) -> Injected:
    second = members.brokers[1]
    os.kill(second.ready.pid, signal.SIGSTOP)
    members.ending.callback(members.until_there, f"/loadbalance/brokers/{_id(second)}")
    members.ending.callback(os.kill, second.ready.pid, signal.SIGCONT)
    return members.asked(_id(second))


def _id(broker: BrokerProcess) -> str:
    return broker.ready.web_url.partition("://")[2]


def _killed_broker(members: Members) -> Injected:
    """Kills a broker, whose session goes on for a while."""
    second = members.brokers[1]
    second.kill()
    members.ending.callback(second.start)
    return members.asked(_id(second))


def _gone_broker(members: Members) -> Injected:
    """Kills a broker that is in the addresses that the cluster gives its clients."""
    second = members.brokers[1]
    urls = f"http://{_id(members.brokers[0])},{_id(second)}"
    _admin(members, "clusters", "update", "test", "--url", urls)
    second.kill()
    members.ending.callback(second.start)
    members.until_gone(f"/loadbalance/brokers/{_id(second)}")
    return members.asked(_id(second))


def _admin(members: Members, *words: str) -> None:
    command = [f"{PULSAR}-admin", "--admin-url", members.brokers[0].ready.web_url, *words]
    subprocess.run(command, check=True, capture_output=True, timeout=60)


# ---- Bookies


def _killed_bookie(members: Members) -> Injected:
    third = members.bookies[2]
    third.kill()
    members.ending.callback(third.start)
    return members.asked(third.bookie_id)


def _gone_bookie(members: Members) -> Injected:
    third = members.bookies[2]
    third.kill()
    members.ending.callback(third.start)
    members.until_gone(f"/ledgers/available/{third.bookie_id}")
    return members.asked(third.bookie_id)


def _without_two(members: Members, ledger: int) -> None:
    """Those that hold this ledger."""
    holding = members.bookies_of(ledger)
    for bookie in members.bookies:
        if bookie.bookie_id in holding:
            bookie.kill()
            members.ending.callback(bookie.start)
            members.until_gone(f"/ledgers/available/{bookie.bookie_id}")


def _lost_ledgers(members: Members) -> Injected:
    ledger = ledger_of(members)
    _without_two(members, ledger)
    return members.asked(str(ledger), words=("--topics-max", "0"))


def _closed_topic(members: Members) -> Injected:
    """Kills a broker while it writes, then both bookies of that ledger: the next owner cannot recover it."""
    members.publish()
    owner, other = _owner_and_other(members)
    ledger = ledgers_of(members)[-1]
    owner.kill()
    members.ending.callback(owner.start)
    _without_two(members, ledger)
    members.until_gone(f"/loadbalance/brokers/{_id(owner)}")
    return Injected(("--admin-url", other.ready.web_url, "--data-dir", members.directory), (TOPIC,))


def _owner_and_other(members: Members) -> tuple[BrokerProcess, BrokerProcess]:
    """The owner of the topic's bundle."""
    command = [f"{PULSAR}-admin", "--admin-url", members.brokers[0].ready.web_url, "topics", "lookup", TOPIC]
    told = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    first, second = members.brokers
    return (first, second) if first.ready.broker_url in told else (second, first)


def _few_bookies(members: Members) -> Injected:
    _without_two(members, ledger_of(members))
    return members.asked("1 writable bookies", words=("--topics-max", "0"))


# ---- ZooKeeper


def _dead_zookeeper(members: Members) -> Injected:
    servers = members.zookeeper.servers
    members.kazoo.stop()
    members.zookeeper.kill()
    return members.configured("broker.conf", _settings(members), servers)


_AGAIN = ("start the bookie", "decommissionbookie")
_BROKER = "start the broker"
_ROWS: tuple[Row, ...] = (
    ("bookie that is read-only", _read_only, "bookies-read-only", WARN, ("free the disk", "do not decommission")),
    ("racks that cannot be kept", _racks, "racks-enough", FAIL, ("set-bookie-rack",)),
    ("more copies wanted than there are bookies", _four_copies, "bookies-enough", FAIL, ("start 1 more bookie",)),
    ("advertised address that nobody reaches", _unreachable, "brokers-answer", FAIL, ("advertisedAddress", _BROKER)),
    ("two brokers that advertise one address", _twins, "brokers-distinct", FAIL, ("set advertisedAddress of",)),
    ("clusterName that the metadata does not have", _other_cluster, "cluster-name", FAIL, ("set clusterName to test",)),
    ("bookie configured with other directories", _moved_bookie, "cookie-registered", FAIL, ("do not delete the cookie",)),
    ("one ZooKeeper server of two is down", _half_zookeeper, "metadata-answers", WARN, ("start ZooKeeper at",)),
    ("under-replicated, autorecovery disabled", _lacking_disabled, "under-replication", WARN, ("autorecovery -enable",)),
    ("under-replicated, no autorecovery runs", _lacking_alone, "under-replication", WARN, ("run bin/pulsar autorecovery",)),
    ("under-replicated, autorecovery runs", _lacking_repaired, "under-replication", WARN, ("wait: autorecovery runs",)),
)
_LAST: tuple[Row, ...] = (
    ("broker that hangs: SIGSTOP", _hanging_broker, "brokers-answer", FAIL, (_BROKER,)),
    ("broker killed just now", _killed_broker, "brokers-answer", FAIL, (_BROKER, "takes its topics")),
    ("broker gone, clients are still told of it", _gone_broker, "brokers-answer", FAIL, (_BROKER, "clusters update")),
    ("bookie killed just now", _killed_bookie, "bookies-present", FAIL, _AGAIN),
    ("bookie gone, its session over", _gone_bookie, "bookies-present", FAIL, _AGAIN),
    ("ledgers all of whose bookies are gone", _lost_ledgers, "ledgers-readable", FAIL, ("Do not delete", "start the bookies")),
    ("topic that cannot be opened", _closed_topic, "topics-answer", FAIL, ("topics unload", "start the bookies")),
    ("fewer bookies than a ledger wants", _few_bookies, "bookies-enough", FAIL, ("start 1 more bookie",)),
    ("dead ZooKeeper", _dead_zookeeper, "metadata-answers", FAIL, ("start ZooKeeper at", "Never start it empty")),
)
