"""Members of a devcluster: names, addresses, commands. Pure; the processes are `cli.devcluster.member`'s.

Every member has an address of its own and the standard ports, so that one sees in any log who is meant.
"""

import ipaddress
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

CLUSTER = "devcluster"
ADDED = "bookies-added"
"""A file of the data directory: how many bookies there are since one was added."""
ZOOKEEPER = "zookeeper"
BOOKIE = "bookie-"
MEMBERS_MAX = 90
"""Members of one kind: their addresses are next to each other."""
SESSION_MS = 5000
"""Time after which others take over from a killed member; ZooKeeper grants sessions from 2 ticks on."""
_BOOKIES_FROM, _ZOOKEEPER, _PROXY = 100, 201, 211


class DevclusterFailed(Exception):
    """A devcluster that cannot start or go on; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One member. `ends` by itself when what it does is done; the others serve until they are stopped."""

    name: str
    command: tuple[str, ...]
    urls: tuple[str, ...] = ()
    ends: bool = False


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """`stages` start one after the other, the members of one together; they stop in the opposite order."""

    stages: tuple[tuple[Plan, ...], ...]
    service_url: str
    web_service_url: str
    metadata_store_url: str
    next_bookie: Callable[[int], Plan]
    """The bookie of this number, which was not there at the start."""


def added_bookies(data: Path) -> int:
    """The number of bookies that a cluster on this data has since one was added; 0: none was."""
    try:
        return int((data / ADDED).read_text())
    except (FileNotFoundError, ValueError):
        return 0


def quorums(bookies: int) -> tuple[int, int, int]:
    """Ensemble, write quorum, ack quorum: three copies of which two acknowledge, where there are so many bookies."""
    copies = min(3, bookies)
    return copies, copies, min(2, bookies)


def cluster_plan(
    data: Path,
    brokers: int,
    bookies: int,
    network: str,
    broker_sets: Sequence[str] = (),
    bookie_sets: Sequence[str] = (),
    *,
    has_proxy: bool = False,
    bookies_now: int = 0,
) -> ClusterPlan:
    """DevclusterFailed for numbers and addresses that cannot be. `bookies_now`: with those that were added to `bookies`, by
    which the quorums go."""
    bookies_now = max(bookies, bookies_now)
    _check(brokers, bookies_now, network)
    hosts = [f"{network}.{number}" for number in range(1, brokers + 1)]
    zookeeper = f"{network}.{_ZOOKEEPER}"
    pulsar, web = ",".join(f"{host}:6650" for host in hosts), ",".join(f"{host}:8080" for host in hosts)
    quorum = dict(zip(("EnsembleSize", "WriteQuorum", "AckQuorum"), quorums(bookies), strict=True))
    shared = [*(f"managedLedgerDefault{name}={size}" for name, size in quorum.items()), *broker_sets]
    urls = (f"http://{web}", f"pulsar://{pulsar}", f"zk:{zookeeper}:2181")
    return ClusterPlan(
        (
            (_zookeeper(data, zookeeper),),
            (_metadata(*urls),),
            tuple(_bookie(data, number, network, zookeeper, bookie_sets) for number in range(1, bookies_now + 1)),
            tuple(_broker(number, host, zookeeper, shared) for number, host in enumerate(hosts, 1)),
            (_proxy(f"{network}.{_PROXY}", zookeeper),) if has_proxy else (),
        ),
        urls[1],
        urls[0],
        urls[2],
        lambda number: _bookie(data, _checked_bookie(number), network, zookeeper, bookie_sets),
    )


def _checked_bookie(number: int) -> int:
    if number > MEMBERS_MAX:
        raise DevclusterFailed(f"there are {MEMBERS_MAX} bookies: no address is left for one more")
    return number


def _check(brokers: int, bookies: int, network: str) -> None:
    for name, count in (("--brokers", brokers), ("--bookies", bookies)):
        if not 1 <= count <= MEMBERS_MAX:
            raise DevclusterFailed(f"{name} {count}: expected 1 to {MEMBERS_MAX}")
    try:
        is_loopback = ipaddress.IPv4Address(f"{network}.1").is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        raise DevclusterFailed(f"--network {network}: expected the first three numbers of loopback addresses, such as 127.0.0")


def _command(name: str, *words: str) -> tuple[str, ...]:
    return (sys.executable, "-P", "-m", "cli", name, *words)


def _sets(*settings: str) -> list[str]:
    return [word for each in settings for word in ("--set", each)]


def _zookeeper(data: Path, host: str) -> Plan:
    settings = _sets(f"clientPortAddress={host}", "clientPort=2181", "tickTime=1000")
    command = _command("zookeeper", "--data-dir", str(data / "zookeeper"), *settings)
    return Plan(ZOOKEEPER, command, (f"zk:{host}:2181",))


def _metadata(web: str, pulsar: str, store: str) -> Plan:
    options = ("--cluster", CLUSTER, "--metadata-store", store, "--web-service-url", web, "--broker-service-url", pulsar)
    return Plan("metadata", _command("initialize-cluster-metadata", *options), ends=True)


def _bookie(data: Path, number: int, network: str, zookeeper: str, more: Sequence[str]) -> Plan:
    host, own = f"{network}.{_BOOKIES_FROM + number}", data / f"bookie-{number}"
    settings = _sets(
        "bookiePort=3181",
        f"advertisedAddress={host}",
        f"metadataServiceUri=zk+hierarchical://{zookeeper}:2181/ledgers",
        f"zkTimeout={SESSION_MS}",
        f"journalDirectories={own}/journal",
        f"ledgerDirectories={own}/ledgers",
        "httpServerEnabled=true",
        f"httpServerHost={host}",
        "httpServerPort=8000",
        *more,
    )
    return Plan(f"{BOOKIE}{number}", _command("bookie", *settings), (f"{host}:3181", f"http://{host}:8000"))


def _broker(number: int, host: str, zookeeper: str, more: Sequence[str]) -> Plan:
    settings = _sets(
        f"clusterName={CLUSTER}",
        f"metadataStoreUrl=zk:{zookeeper}:2181",
        f"metadataStoreSessionTimeoutMillis={SESSION_MS}",
        f"bindAddress={host}",
        "brokerServicePort=6650",
        "webServicePort=8080",
        *more,
    )
    return Plan(f"broker-{number}", _command("broker", *settings), (f"pulsar://{host}:6650", f"http://{host}:8080"))


def _proxy(host: str, zookeeper: str) -> Plan:
    settings = _sets(f"metadataStoreUrl=zk:{zookeeper}:2181", f"bindAddress={host}", "servicePort=6650", "webServicePort=8080")
    return Plan("proxy", _command("proxy", *settings), (f"pulsar://{host}:6650", f"http://{host}:8080"))
