"""Faults of a cluster, their times and lengths: data that a seed makes, and that can be printed, read again and replayed.

Pure. `performer` performs a schedule.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

DRAWS_MAX = 40
"""Draws of the time and members of one fault: if it meets another one each time, it is left out."""
FIRST_MS = 500
"""Quiet time at the beginning, so that there is something to lose."""


class Kind(Enum):
    """Kinds of faults; `performer` says what each does."""

    KILL = "kill"
    STOP = "stop"
    PARTITION = "partition"
    RESET = "reset"
    SLOW_DISK = "slow-disk"
    FULL_DISK = "full-disk"
    LEADER_KILL = "zookeeper-leader-kill"
    QUORUM_LOSS = "zookeeper-quorum-loss"
    ROLL_BROKERS = "roll-brokers"
    ROLL_BOOKIES = "roll-bookies"
    UNLOAD = "unload-storm"
    SPLIT = "split-storm"


LASTS_MS = {
    Kind.KILL: (0, 6000),
    Kind.STOP: (500, 8000),
    Kind.PARTITION: (1000, 8000),
    Kind.RESET: (500, 4000),
    Kind.SLOW_DISK: (1000, 6000),
    Kind.FULL_DISK: (2000, 6000),
    Kind.LEADER_KILL: (0, 3000),
    Kind.QUORUM_LOSS: (1000, 7000),
    Kind.ROLL_BROKERS: (0, 500),
    Kind.ROLL_BOOKIES: (0, 500),
    Kind.UNLOAD: (1000, 5000),
    Kind.SPLIT: (500, 2000),
}
"""Shortest and longest duration; some faults are shorter than a session's time-out (4 s), some longer. For a rolling restart:
the pause before each next member."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One, from its beginning until what it broke is mended. `targets` are names of members, or of all of a kind."""

    begin_ms: int
    lasts_ms: int
    kind: Kind
    targets: tuple[str, ...] = ()

    @property
    def end_ms(self) -> int:
        return self.begin_ms + self.lasts_ms

    @property
    def held(self) -> frozenset[str]:
        """Names that no other fault may touch meanwhile: a process that is killed cannot be stopped too."""
        match self.kind:
            case Kind.PARTITION | Kind.RESET:
                return frozenset({f"{self.kind.value} {' '.join(self.targets)}"})
            case Kind.UNLOAD | Kind.SPLIT:
                return frozenset({self.kind.value})
        return frozenset(self.targets)

    def __str__(self) -> str:
        return " ".join((f"{self.begin_ms}+{self.lasts_ms}", self.kind.value, *self.targets))


@dataclass(frozen=True, slots=True)
class Shape:
    """Members' names of the cluster."""

    brokers: tuple[str, ...]
    bookies: tuple[str, ...]
    zookeepers: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.brokers, *self.bookies, *self.zookeepers)


SHAPE = Shape(
    ("broker-1", "broker-2", "broker-3"),
    ("bookie-1", "bookie-2", "bookie-3", "bookie-4"),
    ("zookeeper-1", "zookeeper-2", "zookeeper-3"),
)


@dataclass(frozen=True, slots=True)
class Schedule:
    """Faults by their beginning. `str` and `parsed` are each other's inverse."""

    faults: tuple[Fault, ...]

    def __str__(self) -> str:
        return "; ".join(map(str, self.faults))

    @property
    def lasts_ms(self) -> int:
        return max((fault.end_ms for fault in self.faults), default=0)


def parsed(text: str) -> Schedule:
    """ValueError names the fault that cannot be read."""
    return Schedule(tuple(_parsed_fault(each.strip()) for each in text.split(";") if each.strip()))


def _parsed_fault(text: str) -> Fault:
    try:
        times, kind, *targets = text.split()
        begin, lasts = map(int, times.split("+"))
        return Fault(begin, lasts, Kind(kind), tuple(targets))
    except ValueError as error:
        raise ValueError(f"{text!r}: expected BEGIN_MS+LASTS_MS KIND MEMBER..., {error}") from None


def generated(seed: int, lasts_ms: int, count: int, shape: Shape = SHAPE) -> Schedule:
    """`count` faults at most within so many ms. Every kind comes before any comes again."""
    chance = random.Random(seed)
    faults: list[Fault] = []
    kinds = _kinds(chance)
    for _ in range(count):
        kind = next(kinds)
        for _ in range(DRAWS_MAX):
            fault = _drawn(chance, kind, lasts_ms, shape)
            if not any(_meet(fault, other) for other in faults):
                faults.append(fault)
                break
    return Schedule(tuple(sorted(faults, key=lambda fault: (fault.begin_ms, str(fault)))))


def _kinds(chance: random.Random) -> Iterator[Kind]:
    while True:
        dealt = list(Kind)
        chance.shuffle(dealt)
        yield from dealt


def _drawn(chance: random.Random, kind: Kind, lasts_ms: int, shape: Shape) -> Fault:
    shortest, longest = LASTS_MS[kind]
    lasts = chance.randint(shortest, max(shortest, min(longest, lasts_ms * 3 // 4)))
    begin = chance.randint(FIRST_MS, max(FIRST_MS, lasts_ms - lasts))
    return Fault(begin, lasts, kind, _targets(chance, kind, shape))


def _targets(chance: random.Random, kind: Kind, shape: Shape) -> tuple[str, ...]:
    match kind:
        case Kind.KILL | Kind.STOP:
            # A ZooKeeper that is killed has kinds of its own.
            return (chance.choice(shape.brokers + shape.bookies),)
        case Kind.PARTITION:
            return _parted(chance, shape)
        case Kind.RESET:
            return (chance.choice(shape.all),)
        case Kind.SLOW_DISK | Kind.FULL_DISK:
            return (chance.choice(shape.bookies),)
        case Kind.LEADER_KILL | Kind.QUORUM_LOSS:
            return shape.zookeepers
        case Kind.ROLL_BROKERS:
            return shape.brokers
        case Kind.ROLL_BOOKIES:
            return shape.bookies
    return ()


def _parted(chance: random.Random, shape: Shape) -> tuple[str, ...]:
    """One against one, or one against all of another kind: a broker that ZooKeeper does not hear, and bookies do."""
    one = chance.choice(shape.brokers + shape.bookies)
    others = [each for each in (shape.brokers, shape.bookies, shape.zookeepers) if one not in each]
    group: Sequence[str] = chance.choice(others)
    return (one, chance.choice(group)) if chance.random() < 0.4 else (one, *group)


def _meet(one: Fault, other: Fault) -> bool:
    return bool(one.held & other.held) and one.begin_ms <= other.end_ms and other.begin_ms <= one.end_ms
