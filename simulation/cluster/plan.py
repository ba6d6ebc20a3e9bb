"""ClusterPlan: what a seed of the cluster scenario stands for: machines, settings, topics with their clients, and the faults.

Draws, runs nothing. Any number of machines may be down at once, since no disk loses what it has synced: the budget is only that
all of it ends, after which everything must work again.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from broker.topic.contract import SubscriptionType
from simulation.clients.consumer import ConsumerShape
from simulation.clients.producer import ProducerShape
from simulation.drawn_settings import BOOKIE, BROKER, CLUSTER, draw, draw_some, fitting
from simulation.world.rng import stream

WORK_SECONDS = 4.0
"""Time in which producers work and faults begin."""
QUIET_SETTINGS: Mapping[str, str] = {
    "clusterName": "sim",
    "keepAliveIntervalSeconds": "2",
    "connectionLivenessCheckTimeoutMillis": "500",
    "managedLedgerMinLedgerRolloverTimeMinutes": "0",
    "brokerDeleteInactiveTopicsEnabled": "false",
    "bookkeeperClientTimeoutInSeconds": "1",
}
QUORUMS = ((2, 2, 2), (3, 3, 2), (3, 3, 2), (3, 2, 2), (2, 2, 1))


class ClusterFaultKind(Enum):
    """Kinds of faults, and of an operator's requests."""

    KILL_BROKER = "kill broker"
    PAUSE_BROKER = "pause broker"
    STOP_BROKER = "stop broker"
    KILL_BOOKIE = "kill bookie"
    CUT_POWER = "cut power"
    STOP_BOOKIE = "stop bookie"
    PARTITION = "partition"
    PART_FROM_METADATA = "part from metadata"
    METADATA_DOWN = "metadata down"
    EXPIRE = "expire"
    EXPIRE_UNTOLD = "expire untold"
    VISIT = "visit"
    UNLOAD = "unload"
    SPLIT = "split"
    SLOW_DISK = "slow disk"
    STALL_DISK = "stall disk"
    FAIL_SYNC = "fail sync"
    SLOW_LINK = "slow link"
    RESET = "reset"
    HALF_RESET = "half reset"
    LEAVE_ONE_COPY = "leave one copy"
    """An owner reaches one bookie alone, and then both end: a receipt that went out too early has nothing behind it."""
    FULL_DISK = "full disk"
    """Others take nearly all that a bookie's disk has left, and give it back: in `full_bookie_scenario`."""


Kind = ClusterFaultKind
WEIGHTS: Mapping[Kind, int] = {
    Kind.KILL_BROKER: 5,
    Kind.PAUSE_BROKER: 5,
    Kind.STOP_BROKER: 4,
    Kind.KILL_BOOKIE: 3,
    Kind.CUT_POWER: 3,
    Kind.STOP_BOOKIE: 1,
    Kind.PARTITION: 5,
    Kind.PART_FROM_METADATA: 6,
    Kind.METADATA_DOWN: 2,
    Kind.EXPIRE: 3,
    Kind.EXPIRE_UNTOLD: 8,
    Kind.VISIT: 2,
    Kind.UNLOAD: 6,
    Kind.SPLIT: 4,
    Kind.SLOW_DISK: 2,
    Kind.STALL_DISK: 2,
    Kind.FAIL_SYNC: 1,
    Kind.SLOW_LINK: 2,
    Kind.RESET: 2,
    Kind.HALF_RESET: 3,
}
ONE_COPY_CHANCE = 0.1
"""Chance of `LEAVE_ONE_COPY`, which is not among those."""


@dataclass(frozen=True, slots=True)
class ClusterFault:
    """One fault: time, kind, length."""

    at: float
    kind: Kind
    seconds: float


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """Plan of one topic. `producers` and `consumers` say which client (host) each belongs to."""

    name: str
    producers: tuple[tuple[int, ProducerShape], ...]
    consumers: tuple[tuple[int, ConsumerShape], ...]

    @property
    def subscriptions(self) -> dict[str, SubscriptionType]:
        return {shape.subscription: shape.type for _, shape in self.consumers}


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """All that a seed decides beforehand."""

    seed: int
    brokers: int
    bookies: int
    clients: int
    broker_settings: Mapping[str, str]
    bookie_settings: Mapping[str, str]
    topics: tuple[TopicPlan, ...]
    has_audit: bool
    """Each topic has a subscription without consumers until the end: nothing is trimmed then."""
    faults: tuple[ClusterFault, ...]
    ends: tuple[str, ...]
    """End of each broker before the last look: "kill", "stop" or "stay"."""


def draw_cluster_plan(seed: int) -> ClusterPlan:
    rng = stream(seed, "cluster plan")
    quorum = rng.choice(QUORUMS)
    brokers, clients = rng.choice((2, 3, 3)), rng.choice((1, 2))
    drawn = draw(stream(seed, "settings"))
    return ClusterPlan(
        seed,
        brokers,
        max(3, quorum[0] + rng.choice((0, 1))),
        clients,
        {
            **_broker_settings(rng, quorum),
            **{key: drawn[key] for key in drawn if key in BROKER},
            **draw_some(CLUSTER, stream(seed, "more settings")),
        },
        {**_bookie_settings(rng), **{key: drawn[key] for key in drawn if key in BOOKIE}},
        tuple(_topic(rng, number, clients, drawn) for number in range(rng.choice((1, 1, 2)))),
        rng.random() < 0.7,
        tuple(sorted((*_faults(rng), *_copies_left(stream(seed, "one copy"))), key=lambda fault: fault.at)),
        tuple(rng.choice(("kill", "stop", "stay")) for _ in range(brokers)),
    )


def _broker_settings(rng: random.Random, quorum: tuple[int, int, int]) -> dict[str, str]:
    ensemble, write, ack = quorum
    return {
        **QUIET_SETTINGS,
        "managedLedgerDefaultEnsembleSize": str(ensemble),
        "managedLedgerDefaultWriteQuorum": str(write),
        "managedLedgerDefaultAckQuorum": str(ack),
        "defaultNumberOfNamespaceBundles": str(rng.choice((1, 2, 4))),
        "managedLedgerMaxEntriesPerLedger": str(rng.choice((5, 20, 50_000))),
        "managedLedgerCursorMaxEntriesPerLedger": str(rng.choice((3, 50_000))),
        "managedLedgerMaxUnackedRangesToPersistInMetadataStore": str(rng.choice((0, 1000))),
        "managedLedgerDefaultMarkDeleteRateLimit": str(rng.choice((1, 100))),
        "managedLedgerCacheSizeMB": str(rng.choice((0, 64))),
        "loadBalancerEnabled": rng.choice(("true", "true", "false")),
    }


def _bookie_settings(rng: random.Random) -> dict[str, str]:
    return {"autoRecoveryDaemonEnabled": "false", "flushInterval": str(rng.choice((500, 2000))), "journalAlignmentSize": "512"}


def _topic(rng: random.Random, number: int, clients: int, drawn: Mapping[str, str]) -> TopicPlan:
    producers = tuple((rng.randrange(clients), _producer(rng, index)) for index in range(rng.choice((1, 2))))
    consumers: list[tuple[int, ConsumerShape]] = []
    for index in range(rng.choice((1, 1, 2))):
        kind = rng.choice(tuple(SubscriptionType))
        count = 1 if kind is SubscriptionType.EXCLUSIVE else rng.choice((1, 2))
        consumers += [
            (rng.randrange(clients), fitting(_consumer(rng, f"s{index}", kind, each), drawn)) for each in range(count)
        ]
    return TopicPlan(f"persistent://public/default/sim-{number}", producers, tuple(consumers))


def _producer(rng: random.Random, number: int) -> ProducerShape:
    entries = rng.choice((10, 25))
    return ProducerShape(
        name=f"p{number}",
        entries=entries,
        batch_messages_max=rng.choice((1, 1, 3)),
        payload_bytes_max=rng.choice((10, 200)),
        window_entries=rng.choice((1, 5, 20)),
        pause_seconds=rng.choice((1.0, 3.0, 4.0)) / entries,
        keys=rng.choice((1, 3)),
    )


def _consumer(rng: random.Random, subscription: str, kind: SubscriptionType, index: int) -> ConsumerShape:
    return ConsumerShape(
        subscription=subscription,
        type=kind,
        name=f"c{9 - index}",
        receiver_queue=rng.choice((5, 100)),
        ack_chance=rng.choice((0.3, 0.6, 1.0)),
        cumulative_chance=rng.choice((0.0, 0.0, 0.3)),
        part_chance=rng.choice((0.0, 0.3)),
        receipt_chance=rng.choice((0.3, 1.0)),
        nack_chance=rng.choice((0.0, 0.05)),
        close_chance=rng.choice((0.0, 0.0, 0.05)),
        seek_chance=0.0,
        idle_seconds=rng.choice((0.1, 0.4)),
        tricks_max=5,
        start_seconds=rng.choice((0.0, rng.uniform(0.0, 2.0))) if index else 0.0,
    )


def _copies_left(rng: random.Random) -> tuple[ClusterFault, ...]:
    """Drawn apart, so that seeds keep the faults that they had before there was this one. Early: another broker must have
    opened the topic while the bookie is still away, and all come back when work ends."""
    if rng.random() >= ONE_COPY_CHANCE:
        return ()
    return (ClusterFault(rng.uniform(0.0, WORK_SECONDS / 4), Kind.LEAVE_ONE_COPY, 3.5),)


def _faults(rng: random.Random) -> tuple[ClusterFault, ...]:
    count = rng.choice((0, 1, 2, 2, 3, 4, 6))
    kinds = rng.choices(list(WEIGHTS), list(WEIGHTS.values()), k=count)
    found = [ClusterFault(rng.uniform(0.0, WORK_SECONDS), kind, rng.choice((0.05, 0.5, 2.5, 3.5))) for kind in kinds]
    if count > 1 and rng.random() < 0.3:  # all at about the same time
        found = [replace(each, at=found[0].at + rng.uniform(0.0, 0.2)) for each in found]
    return tuple(sorted(found, key=lambda fault: fault.at))
