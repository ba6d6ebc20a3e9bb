"""A cluster: its brokers, its metadata, who leads, who owns. Pure; its bookies and ledgers are `bookie_checks`."""

from collections.abc import Mapping
from typing import NamedTuple

from cli.doctor.check import FAIL, OK, WARN, Check, Verdict, named

EXTENSIBLE = "ExtensibleLoadManagerImpl"


class Answering(NamedTuple):
    """The answer of the server of `--admin-url`. `problem` is empty when there is one; `remedy` is what to do about it."""

    url: str
    problem: str = ""
    remedy: str = ""


class BrokerState(NamedTuple):
    """A broker that is registered, or that the cluster's addresses name; `problem` says why it does not serve."""

    name: str
    problem: str = ""
    service_url: str = ""
    is_registered: bool = True


class Process(NamedTuple):
    """One of several behind the port that was asked."""

    number: int
    phase: str
    starts: int


class MetadataServers(NamedTuple):
    """ZooKeeper's servers, and the reason of each that does not answer; `problem`: none can be asked."""

    servers: tuple[str, ...]
    down: Mapping[str, str]
    problem: str = ""


class Owner(NamedTuple):
    """The node of a bundle, and the broker that it names, by its web address."""

    bundle: str
    broker: str


def server_answers(answering: Answering) -> Verdict:
    if not answering.problem:
        return Verdict(OK, f"{answering.url} answers")
    return Verdict(FAIL, f"{answering.url}: {answering.problem}", answering.remedy)


def broker_health(health: str) -> Verdict:
    return Verdict(OK if health == "ok" else FAIL, f"the health check says {health[:200]}")


def brokers_answer(brokers: tuple[BrokerState, ...]) -> Verdict:
    wrong = [each for each in brokers if each.problem]
    if not wrong:
        return Verdict(OK, f"{len(brokers)} brokers answer")
    first = wrong[0]
    others = next((each.name for each in brokers if not each.problem and each.is_registered), "")
    known = "it is registered still" if first.is_registered else "it is in the serviceUrl of the cluster, and not registered"
    remedy = (
        f"start the broker {first.name} again (interpulse broker), or see why it does not answer: its log, its process, "
        "the network, "
        "its advertisedAddress and bindAddress. Nothing is lost meanwhile"
    )
    if others:
        remedy += f": {others} takes its topics. If it is gone for good: pulsar-admin clusters update --url without it"
    evidence = "; ".join(f"{each.name} {each.problem}" for each in wrong[:3]) + ", seen from this machine"
    return Verdict(FAIL, f"{evidence} ({known})", remedy)


def brokers_distinct(brokers: tuple[BrokerState, ...]) -> Verdict:
    by_url: dict[str, list[str]] = {}
    for each in brokers:
        if each.service_url and each.is_registered:
            by_url.setdefault(each.service_url, []).append(each.name)
    twice = next((item for item in by_url.items() if len(item[1]) > 1), None)
    if twice is None:
        return Verdict(OK, "every broker advertises an address of its own")
    remedy = (
        f"set advertisedAddress of {' and '.join(twice[1])} to the name of the machine of each, and restart them: "
        "clients of one go to the other"
    )
    return Verdict(FAIL, f"brokers {named(twice[1])} all advertise {twice[0]}", remedy)


def leader(leader_url: str, brokers: tuple[BrokerState, ...]) -> Verdict:
    """A leader that is not registered has just died, or its node was left behind."""
    if not leader_url:
        return Verdict(WARN, "no broker is the leader")
    registered = {each.name for each in brokers if each.is_registered}
    host = leader_url.partition("://")[2] or leader_url
    if registered and host not in registered:
        remedy = (
            "restart a broker if this lasts for longer than a session (metadataStoreSessionTimeoutMillis): the node "
            "/loadbalance/leader "
            f"names {host}, which is not registered; one that no session holds is to be deleted"
        )
        return Verdict(WARN, f"the leader {host} is none of the registered brokers {named(sorted(registered))}", remedy)
    return Verdict(OK, f"the leader is {leader_url}")


def load_managers(brokers: tuple[tuple[str, str], ...]) -> Verdict:
    """Brokers with Apache's extensible load manager and brokers with another one do not know each other's bundles."""
    foreign = [name for name, manager in brokers if manager.endswith(EXTENSIBLE)]
    if not foreign or len(foreign) == len(brokers):
        return Verdict(OK, f"{len(brokers)} brokers, one kind of load manager")
    return Verdict(FAIL, f"{len(foreign)} of {len(brokers)} brokers place bundles by {EXTENSIBLE}: {named(foreign)}")


def processes_serve(processes: tuple[Process, ...]) -> Verdict:
    """Processes of `interpulse broker --processes N`, behind one port."""
    if not processes:
        return Verdict(OK, "one process has the port that was asked")
    away = [each for each in processes if each.phase != "serving"]
    if not away:
        again = sum(each.starts - 1 for each in processes)
        return Verdict(OK, f"{len(processes)} processes serve, which were started again {again} times")
    shown = "; ".join(f"process {each.number} is {each.phase} (started {each.starts} times)" for each in away[:3])
    is_given_up = any(each.phase == "given up" for each in away)
    return Verdict(FAIL if is_given_up else WARN, f"{len(away)} of {len(processes)} do not serve: {shown}")


def metadata_answers(metadata: MetadataServers) -> Verdict:
    down = [f"{server} {problem}" for server, problem in metadata.down.items()]
    first = next(iter(metadata.down), metadata.servers[0] if metadata.servers else "")
    remedy = (
        f"start ZooKeeper at {first} again with the data directory that it had (interpulse zookeeper), or correct "
        "metadataStoreUrl and "
        "metadataServiceUri. Never start it empty: without its data nobody knows which messages are whose"
    )
    if metadata.problem:
        return Verdict(FAIL, "; ".join(down) or metadata.problem, remedy)
    if down:
        return Verdict(WARN, f"{len(down)} of {len(metadata.servers)} servers: {'; '.join(down)}", remedy)
    return Verdict(OK, f"{named(metadata.servers)} answers")


def cluster_name(configured: str, clusters: tuple[str, ...]) -> Verdict:
    if configured in clusters:
        return Verdict(OK, f"clusterName={configured} is known to the metadata")
    remedy = (
        f"set clusterName to {' or '.join(clusters) or 'the name given to interpulse initialize-cluster-metadata'}, or correct "
        "metadataStoreUrl: with another name a broker serves none of the namespaces that are there"
    )
    return Verdict(FAIL, f"clusterName={configured}, and the metadata has {named(clusters) or 'no cluster'}", remedy)


def bundle_owners(owners: tuple[Owner, ...], brokers: tuple[BrokerState, ...]) -> Verdict:
    registered = {each.name for each in brokers if each.is_registered}
    lost = [each for each in owners if each.broker not in registered]
    if not lost:
        return Verdict(OK, f"{len(owners)} bundles are owned by brokers that are registered")
    path = f"/namespace/{lost[0].bundle}"
    remedy = (
        f"start the broker {lost[0].broker}, or wait for its session to end (metadataStoreSessionTimeoutMillis); a node "
        f"{path} that no "
        "session holds is to be deleted, and the bundle finds an owner at the next lookup. No message is in it"
    )
    return Verdict(
        FAIL, f"{len(lost)} bundles are owned by brokers that are not registered: {lost[0].bundle} by {lost[0].broker}", remedy
    )


def ledger_layout(problem: str) -> Verdict:
    if not problem:
        return Verdict(OK, "ledgers are in a layout that this software knows")
    return Verdict(FAIL, f"/ledgers/LAYOUT: {problem}")


CHECKS = (
    Check(
        "server-answers",
        ("answering",),
        server_answers,
        "the server of --admin-url does not answer",
        "start it, or correct the address",
    ),
    Check(
        "broker-health",
        ("health",),
        broker_health,
        "a broker answers, and cannot publish to itself",
        "read the broker's log: it cannot publish to itself and read that; bookies and metadata come first",
    ),
    Check("brokers-answer", ("brokers",), brokers_answer, "a broker of the cluster does not answer", "start that broker again"),
    Check(
        "brokers-distinct", ("brokers",), brokers_distinct, "two brokers advertise one address", "set advertisedAddress of each"
    ),
    Check(
        "leader",
        ("leader_url", "brokers"),
        leader,
        "no broker leads, or one that is gone",
        "without a leader no load is moved: restart a broker, and look at the brokers' metadata sessions in their logs",
    ),
    Check(
        "load-managers",
        ("load_managers",),
        load_managers,
        "brokers with two kinds of load manager",
        "set loadManagerClassName=org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl in their broker.conf: "
        "a topic would have two owners",
    ),
    Check(
        "processes-serve",
        ("several",),
        processes_serve,
        "one of several processes ends again and again, or is given up",
        "look for that process in the supervisor's log (process=NUMBER), correct what its last lines name, and send SIGHUP to "
        "the supervisor, which starts it again; the others serve its topics meanwhile",
    ),
    Check("metadata-answers", ("metadata",), metadata_answers, "ZooKeeper does not answer", "start it again on its data"),
    Check(
        "cluster-name",
        ("configured_cluster", "clusters"),
        cluster_name,
        "clusterName is not the metadata's",
        "correct clusterName",
    ),
    Check(
        "bundle-owners",
        ("owners", "brokers"),
        bundle_owners,
        "a bundle is owned by a broker that is gone",
        "start it, or delete the node",
    ),
    Check(
        "ledger-layout",
        ("ledger_layout",),
        ledger_layout,
        "the layout of ledgers is of another version",
        "run the version of the software that wrote /ledgers/LAYOUT, or put a backup of this node back: every ledger is "
        "found by it. Do not "
        "format the metadata, which loses everything",
    ),
)
