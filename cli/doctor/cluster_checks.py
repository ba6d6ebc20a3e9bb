"""A cluster as its REST shows it: health, bookies, replication, subscriptions. Pure."""

from typing import NamedTuple

from cli.doctor.checks import FAIL, OK, WARN, Check, Verdict, by_limits

NAMED_MAX = 5
HOLES_WARN, HOLES_FAIL = 10_000, 1_000_000
"""Of managedLedgerMaxUnackedRangesToPersist 10,000 are stored; what is beyond comes again after a failover."""
BACKLOG_WARN = 1_000_000


class Bookies(NamedTuple):
    """How many are there, and what the brokers want of them. `are_known`: of those gone and read-only ones are among them,
    because no bookie was asked."""

    number: int
    ensemble: int
    write_quorum: int
    are_known: bool = False


class SubscriptionState(NamedTuple):
    """`holes` are ranges acknowledged beyond the mark-delete position, `permits` None without consumers."""

    topic: str
    name: str
    backlog: int
    consumers: int
    rate_out: float
    unacked: int
    blocked: bool
    permits: int | None
    holes: int


class CompactionState(NamedTuple):
    """Of a topic that is compacted: entries that are not compacted yet, and whether it failed the last time."""

    topic: str
    backlog: int
    has_failed: bool


Subscriptions = tuple[SubscriptionState, ...]
EXTENSIBLE = "ExtensibleLoadManagerImpl"


def _named(found: list[SubscriptionState]) -> str:
    first = ", ".join(f"{each.name} of {each.topic}" for each in found[:NAMED_MAX])
    return f"{len(found)}: {first}{' ...' if len(found) > NAMED_MAX else ''}"


def broker_health(health: str) -> Verdict:
    return Verdict(OK if health == "ok" else FAIL, f"the health check says {health[:200]}")


def leader(leader_url: str) -> Verdict:
    return Verdict(OK if leader_url else WARN, f"the leader is {leader_url or 'nobody'}")


def bookies_enough(bookies: Bookies) -> Verdict:
    kind = "known bookies (--bookie-url tells which are writable)" if bookies.are_known else "writable bookies"
    evidence = f"{bookies.number} {kind}; ledgers want {bookies.ensemble}, entries {bookies.write_quorum} copies"
    if bookies.number < bookies.write_quorum:
        return Verdict(FAIL, evidence)
    return Verdict(WARN if bookies.number <= bookies.ensemble and bookies.ensemble > 1 else OK, evidence)


def bookies_read_only(names: tuple[str, ...]) -> Verdict:
    first = ", ".join(names[:NAMED_MAX])
    return Verdict(WARN, f"{len(names)} take no writes: {first}") if names else Verdict(OK, "none is read-only")


def under_replication(under_replicated: int) -> Verdict:
    return Verdict(WARN if under_replicated else OK, f"{under_replicated} ledgers have too few copies")


def stuck_subscriptions(subscriptions: Subscriptions) -> Verdict:
    """Somebody consumes and asks for more, there is more, and nothing goes out."""
    stuck = [
        each for each in subscriptions if each.backlog and each.consumers and not each.rate_out and (each.permits or 0) > 0
    ]
    stuck = [each for each in stuck if each.backlog > each.unacked]
    return Verdict(FAIL, f"nothing goes out of {_named(stuck)}") if stuck else Verdict(OK, f"none of {len(subscriptions)}")


def blocked_subscriptions(subscriptions: Subscriptions) -> Verdict:
    blocked = [each for each in subscriptions if each.blocked]
    return Verdict(WARN, f"too much is unacknowledged in {_named(blocked)}") if blocked else Verdict(OK, "none is blocked")


def without_permits(subscriptions: Subscriptions) -> Verdict:
    idle = [
        each for each in subscriptions if each.consumers and each.backlog and not each.rate_out and (each.permits or 0) <= 0
    ]
    return Verdict(WARN, f"consumers ask for nothing in {_named(idle)}") if idle else Verdict(OK, "none")


def abandoned_subscriptions(subscriptions: Subscriptions) -> Verdict:
    left = [each for each in subscriptions if each.backlog and not each.consumers]
    return Verdict(WARN, f"a backlog and nobody there: {_named(left)}") if left else Verdict(OK, "every backlog has a consumer")


def cursor_holes(subscriptions: Subscriptions) -> Verdict:
    worst = max(subscriptions, key=lambda each: each.holes, default=None)
    if worst is None or not worst.holes:
        return Verdict(OK, "no holes")
    return by_limits(worst.holes, HOLES_WARN, HOLES_FAIL, f"{worst.holes} holes in {worst.name} of {worst.topic}")


def backlog(subscriptions: Subscriptions) -> Verdict:
    worst = max(subscriptions, key=lambda each: each.backlog, default=None)
    if worst is None:
        return Verdict(OK, "no subscriptions")
    level = WARN if worst.backlog >= BACKLOG_WARN else OK
    return Verdict(level, f"the largest backlog is {worst.backlog} entries, in {worst.name} of {worst.topic}")


def load_managers(brokers: tuple[tuple[str, str], ...]) -> Verdict:
    """Those that are Apache's extensible one know of nobody else's bundles, and nobody else of theirs."""
    foreign = [name for name, manager in brokers if manager.endswith(EXTENSIBLE)]
    if not foreign or len(foreign) == len(brokers):
        return Verdict(OK, f"{len(brokers)} brokers, one kind of load manager")
    named = ", ".join(foreign[:NAMED_MAX])
    return Verdict(FAIL, f"{len(foreign)} of {len(brokers)} brokers place bundles by {EXTENSIBLE}: {named}")


def slow_transactions(ids: tuple[str, ...]) -> Verdict:
    named = ", ".join(ids[:NAMED_MAX])
    return Verdict(WARN, f"{len(ids)} open for ten minutes: {named}") if ids else Verdict(OK, "none is open for ten minutes")


def compactions(topics: tuple[CompactionState, ...]) -> Verdict:
    failed = [each.topic for each in topics if each.has_failed]
    if failed:
        return Verdict(WARN, f"the last compaction failed of {', '.join(failed[:NAMED_MAX])}")
    worst = max(topics, key=lambda each: each.backlog, default=None)
    if worst is None:
        return Verdict(OK, "no topic is compacted")
    level = WARN if worst.backlog >= BACKLOG_WARN else OK
    return Verdict(level, f"{worst.backlog} entries of {worst.topic} are not compacted yet, the most of {len(topics)} topics")


_SUBSCRIPTIONS = ("subscriptions",)
CHECKS = (
    Check("broker-health", ("health",), broker_health, "read the broker's log: it cannot publish to itself and read that"),
    Check("leader", ("leader_url",), leader, "without a leader no load is moved: look at the brokers' metadata sessions"),
    Check("bookies-enough", ("bookies",), bookies_enough, "start more bookies: the next that is lost stops writing"),
    Check(
        "bookies-read-only",
        ("read_only_bookies",),
        bookies_read_only,
        "free their disks; bin/bookkeeper shell listbookies -ro names them all",
    ),
    Check(
        "under-replication",
        ("under_replicated",),
        under_replication,
        "run bin/pulsar autorecovery; bin/bookkeeper shell listunderreplicated",
    ),
    Check(
        "stuck-subscriptions",
        _SUBSCRIPTIONS,
        stuck_subscriptions,
        "pulsar-admin topics unload TOPIC; then look at its consumers",
    ),
    Check(
        "blocked-subscriptions",
        _SUBSCRIPTIONS,
        blocked_subscriptions,
        "let consumers acknowledge, or raise maxUnackedMessagesPerSubscription",
    ),
    Check(
        "consumers-without-permits",
        _SUBSCRIPTIONS,
        without_permits,
        "the consumer program hangs, or its receiver queue is full: look there",
    ),
    Check(
        "abandoned-subscriptions",
        _SUBSCRIPTIONS,
        abandoned_subscriptions,
        "pulsar-admin topics unsubscribe, or set a TTL: it holds the disk",
    ),
    Check(
        "cursor-holes",
        _SUBSCRIPTIONS,
        cursor_holes,
        "find the messages that are never acknowledged; a dead letter topic takes them",
    ),
    Check(
        "load-managers",
        ("load_managers",),
        load_managers,
        "set loadManagerClassName=org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl in their broker.conf: "
        "a topic would have two owners",
    ),
    Check(
        "slow-transactions",
        ("slow_transactions",),
        slow_transactions,
        "their client hangs, and readers wait for them: pulsar-admin transactions slow-transactions, abort-transaction",
    ),
    Check("compaction", ("compactions",), compactions, "pulsar-admin topics compaction-status, then topics compact"),
    Check("backlog", _SUBSCRIPTIONS, backlog, "add consumers, or set a backlog quota"),
)
