"""Plan: what a seed stands for. Draws the shape of the work, the server's settings and the faults; runs nothing."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from broker.topic.contract import SubscriptionType
from simulation.clients.consumer import ConsumerShape
from simulation.clients.producer import ProducerShape
from simulation.drawn_settings import SINGLE, draw, draw_some, fitting
from simulation.world.rng import stream

WORK_SECONDS = 8.0
"""Time in which producers work and faults happen."""
SLOW_CHANCE = 0.5
QUIET_SETTINGS: Mapping[str, str] = {
    "keepAliveIntervalSeconds": "4",
    "managedLedgerMinLedgerRolloverTimeMinutes": "0",
    "journalPreAllocSizeMB": "1",
    "journalMaxSizeMB": "16",
    "journalBufferedWritesThreshold": "600",
    "brokerDeleteInactiveTopicsEnabled": "false",
}


class FaultKind(Enum):
    """Kinds of faults."""

    KILL = "kill"
    POWER_CUT = "power cut"
    RESTART = "restart"
    RESET = "reset"
    PARTITION = "partition"
    ONE_WAY_PARTITION = "one-way partition"
    SLOW_LINK = "slow link"
    SLOW_DISK = "slow disk"
    STALLED_DISK = "stalled disk"
    DISK_ERROR = "disk error"
    FULL_DISK = "full disk"
    DEAF_CLIENT = "deaf client"
    CLOCK_JUMP = "clock jump"
    UNLOAD = "unload"


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: time, length (down, cut, slow), and the client that it concerns."""

    at: float
    kind: FaultKind
    seconds: float
    client: int


@dataclass(frozen=True, slots=True)
class Plan:
    """All that a seed decides beforehand. `producers` and `consumers` say which client (host) each belongs to."""

    seed: int
    settings: Mapping[str, str]
    clients: int
    producers: tuple[tuple[int, ProducerShape], ...]
    consumers: tuple[tuple[int, ConsumerShape], ...]
    faults: tuple[Fault, ...]
    sync_seconds: float
    is_slow: bool = False
    """Whether the machine is slow, so that several events are handled in one turn of the loop."""

    @property
    def subscriptions(self) -> dict[str, SubscriptionType]:
        return {shape.subscription: shape.type for _, shape in self.consumers if shape.durable}


def draw_plan(seed: int) -> Plan:
    rng = stream(seed, "plan")
    clients = rng.randint(1, 3)
    settings = _without_contradiction(
        {**_draw_settings(rng), **draw(stream(seed, "settings")), **draw_some(SINGLE, stream(seed, "more settings"))}
    )
    return Plan(
        seed,
        settings,
        clients,
        tuple((rng.randrange(clients), _draw_producer(rng, number)) for number in range(rng.randint(1, 3))),
        tuple((client, fitting(shape, settings)) for client, shape in _draw_consumers(rng, clients)),
        tuple(_draw_faults(rng, clients)),
        rng.choice((0.000_5, 0.002, 0.01)),
        stream(seed, "pace").random() < SLOW_CHANCE,
    )


def _without_contradiction(settings: Mapping[str, str]) -> Mapping[str, str]:
    """The settings without the one by which a topic with subscriptions is deleted, where inactive topics are, and with the
    system topics that transactions need."""
    left_out = set()
    if settings["brokerDeleteInactiveTopicsEnabled"] == "true":
        left_out.add("brokerDeleteInactiveTopicsMode")
    if settings.get("transactionCoordinatorEnabled") == "true":
        left_out.add("systemTopicEnabled")
    return {key: value for key, value in settings.items() if key not in left_out}


def _draw_settings(rng: random.Random) -> dict[str, str]:
    return {
        **QUIET_SETTINGS,
        "managedLedgerMaxEntriesPerLedger": str(rng.choice((5, 20, 100, 50_000))),
        "managedLedgerCacheSizeMB": str(rng.choice((0, 1, 64))),
        "flushInterval": str(rng.choice((200, 1000, 60_000))),
        "journalMaxGroupWaitMSec": str(rng.choice((0, 1, 5))),
        "dbStorage_writeCacheMaxSizeMb": str(rng.choice((1, 32))),
        "logSizeLimit": str(rng.choice((1 << 17, 1 << 27))),
        "maxPendingPublishRequestsPerConnection": str(rng.choice((2, 20, 1000))),
    }


def _draw_producer(rng: random.Random, number: int) -> ProducerShape:
    entries = rng.choice((5, 20, 60))
    return ProducerShape(
        name=f"p{number}",
        entries=entries,
        batch_messages_max=rng.choice((1, 1, 3, 10)),
        payload_bytes_max=rng.choice((10, 200, 2000)),
        window_entries=rng.choice((1, 5, 50)),
        pause_seconds=rng.choice((0.0, 3.0, 6.0, 8.0)) / entries,
        keys=rng.choice((1, 3, 10)),
    )


def _draw_consumers(rng: random.Random, clients: int) -> list[tuple[int, ConsumerShape]]:
    shapes = []
    for number in range(rng.randint(1, 3)):
        kind = rng.choice(tuple(SubscriptionType))
        count = 1 if kind is SubscriptionType.EXCLUSIVE else rng.randint(1, 3)
        may_seek = rng.random() < 0.2
        shapes += [
            (rng.randrange(clients), _draw_consumer(rng, f"s{number}", kind, index, may_seek and index == 0))
            for index in range(count)
        ]
    if rng.random() < 0.3:
        reader = _draw_consumer(rng, "reader", SubscriptionType.EXCLUSIVE, 0, may_seek=False, durable=False)
        shapes.append((rng.randrange(clients), reader))
    return shapes


def _draw_consumer(
    rng: random.Random, subscription: str, kind: SubscriptionType, index: int, may_seek: bool, *, durable: bool = True
) -> ConsumerShape:
    return ConsumerShape(
        subscription=subscription,
        type=kind,
        name=f"c{9 - index}",
        receiver_queue=rng.choice((1, 10, 1000)),
        ack_chance=rng.choice((0.0, 0.5, 0.9, 1.0)),
        cumulative_chance=rng.choice((0.0, 0.0, 0.3, 1.0)),
        part_chance=rng.choice((0.0, 0.3)),
        receipt_chance=rng.choice((0.0, 0.5)),
        nack_chance=rng.choice((0.0, 0.05, 0.3)),
        close_chance=rng.choice((0.0, 0.1, 0.3)) if index else rng.choice((0.0, 0.0, 0.1)),
        seek_chance=0.1 if may_seek else 0.0,
        idle_seconds=rng.choice((0.02, 0.2)),
        start_seconds=rng.choice((0.0, rng.uniform(0.0, 5.0))) if index else 0.0,
        priority_level=rng.choice((0, 0, 1, 2)),
        durable=durable,
    )


def _draw_faults(rng: random.Random, clients: int) -> list[Fault]:
    count = rng.choice((0, 1, 2, 3, 5))
    kinds = [*FaultKind, *[FaultKind.KILL, FaultKind.POWER_CUT] * 3]
    return sorted(
        (
            Fault(rng.uniform(0.2, WORK_SECONDS), rng.choice(kinds), rng.choice((0.01, 0.3, 2.0)), rng.randrange(clients))
            for _ in range(count)
        ),
        key=lambda fault: fault.at,
    )
