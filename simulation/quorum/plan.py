"""QuorumPlan: what a seed of the quorum scenario has been dealt before it begins: the cluster, who works when, what will rot.

Pure. `draw_plan` (`simulation.quorum.races`) deals; here is what all plans have in common, and those that are chance alone.
"""

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bookie.settings import BookieSettings
from bookkeeper.write.quorum_tracker import Quorum

QUORUMS = ((3, 3, 2), (3, 3, 2), (3, 3, 2), (3, 2, 2), (4, 3, 2), (5, 3, 2), (3, 3, 3), (2, 2, 1))
WRITER, RECOVERERS = "writer", ("recoverer-0", "recoverer-1")
JOURNAL, LEDGERS = "/j", "/l"
BOOKIES_MIN, BOOKIES_MAX = 3, 5
NEAR, NEVER = 0.000_1, 10.0
DISTANCES = (0.000_05, 0.000_3, 0.000_3, 0.003, 0.02)
"""Seconds for a packet in one direction, at least: what one client has done another may not see for long."""
FAULTS_SECONDS = (0.05, 0.2, 1.3)
"""Times in which all faults begin; one of them is drawn."""


class KilobytesForMegabytes(int):
    """A setting in MiB that means KiB: journals that roll over within a run, and that a start reads in no time."""

    def __mul__(self, megabyte: int) -> int:
        return int(self) * (megabyte // 1024)


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment so long after the writer's so-manieth append; 0: after the clients' start."""

    appends: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Recovering:
    """Start of a client's recovery; the bookie whose fence is lost, and for how long that is not noticed."""

    begins: Moment
    fence_lost_at: int | None = None
    fence_lost_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class QuorumPlan:
    """Bookies are numbers, and in `distances` hosts."""

    quorum: Quorum
    bookies: int
    settings: BookieSettings
    rotting: tuple[int, ...]
    """Bookies on which bits may rot; together with the liar fewer than an ack quorum."""
    liar: int | None
    """A bookie whose disk says that it has synced and has not."""
    entries: int
    pause_seconds: float
    """Between two appends, if any."""
    ending: str
    """End of the writer: "close", "hang", or "sleep" and then append again."""
    recovering: tuple[Recovering, ...]
    distances: Mapping[tuple[str, str], float]
    ends: tuple[tuple[Moment, int], ...]
    """Ends of bookies, besides the faults."""
    rots: Moment | None = None
    """Moment at which the last entries of the rotting bookies rot."""
    loses: Moment | None = None
    """Moment at which the loser, a bookie of the budget too, loses the contents of `lost_directories`."""
    loser: int | None = None
    lost_directories: tuple[str, ...] = ()
    leaves: Moment | None = None
    """Moment at which the loser is gone for good, and a client repairs."""
    repairer_dies: Moment | None = None
    """Moment at which the repairer dies and is started again."""
    run_at: int = 0
    """Append of a writer of parts that is a run in any case; all after it are parts, and the laggard gets nothing from it on.
    0: none."""
    laggard: int = 0
    metadata_seconds: float = 0.001
    """Time that an operation of the writer's metadata store takes."""
    faults: int = 0
    faults_seconds: float = FAULTS_SECONDS[-1]


def host_of(bookie: int) -> str:
    return f"bookie-{bookie}"


@dataclass(slots=True)
class Draft:
    """Part that the plans have in common."""

    rng: random.Random
    quorum: Quorum
    spares: int = 0
    flush_ms: int = 20
    allows_limbo: bool = False
    distances: dict[tuple[str, str], float] = field(default_factory=dict)

    @property
    def bookies(self) -> int:
        return min(BOOKIES_MAX, max(BOOKIES_MIN, self.quorum.ensemble_size + self.spares))

    def cast(self) -> list[int]:
        """Three bookies for three parts, of the ledger's first ensemble as long as there are enough."""
        first = self.rng.sample(range(self.quorum.ensemble_size), self.quorum.ensemble_size)
        return [*first, *range(self.quorum.ensemble_size, self.bookies)][:3]

    def draw_distances(self, choices: Iterable[float]) -> None:
        places = tuple(choices)
        for client in (WRITER, *RECOVERERS):
            for bookie in range(self.bookies):
                for way in ((client, host_of(bookie)), (host_of(bookie), client)):
                    self.distances[way] = self.rng.choice(places)

    def set_there(self, client: str, bookie: int, seconds: float) -> None:
        self.distances[client, host_of(bookie)] = seconds

    def set_back(self, bookie: int, client: str, seconds: float) -> None:
        self.distances[host_of(bookie), client] = seconds

    @property
    def settings(self) -> BookieSettings:
        journal_kib = self.rng.choice((16, 64, 256))
        return BookieSettings(
            (JOURNAL,), (LEDGERS,), journal_max_size_mb=KilobytesForMegabytes(journal_kib),
            journal_pre_alloc_size_mb=KilobytesForMegabytes(16), journal_alignment_size=512, flush_interval=self.flush_ms,
            data_integrity_checking=self.allows_limbo, data_integrity_stamp_missing_cookies=self.allows_limbo,
        )  # fmt: skip

    def draw_budget(self) -> tuple[tuple[int, ...], int | None]:
        """The bookies that may lose what they had: fewer than an ack quorum of them."""
        lost = self.rng.sample(range(self.bookies), self.rng.randrange(self.quorum.ack_quorum))
        if lost and self.rng.random() < 0.4:
            return tuple(lost[1:]), lost[0]
        return tuple(lost), None


def chance(rng: random.Random) -> QuorumPlan:
    draft = Draft(rng, Quorum(*rng.choice(QUORUMS)), rng.choice((0, 1, 1, 2)), rng.choice((20, 100, 1000)))
    draft.draw_distances(DISTANCES)
    rotting, liar = draft.draw_budget()
    latest = rng.choice((0.1, 0.4, 0.9))
    together = rng.uniform(0.0, latest)
    recovering = []
    for _ in RECOVERERS:
        after = rng.choice((together, rng.uniform(0.0, latest), rng.uniform(latest / 2, latest)))
        fence_lost_at = rng.randrange(draft.bookies) if rng.random() < 0.3 else None
        recovering.append(Recovering(Moment(0, after), fence_lost_at, rng.choice((0.005, 0.02))))
    ended = rng.sample(range(draft.bookies), rng.choice((0, 0, 1, 2)))
    return QuorumPlan(
        draft.quorum, draft.bookies, draft.settings, rotting, liar,
        entries=rng.randint(1, 20), pause_seconds=rng.choice((0.003, 0.02, 0.05)),
        ending=rng.choice(("close", "hang", "sleep")), recovering=tuple(recovering), distances=draft.distances,
        ends=tuple((Moment(0, rng.uniform(0.0, 0.15)), bookie) for bookie in ended),
        faults=rng.choice((0, 1, 2, 3, 4, 6)), faults_seconds=rng.choice(FAULTS_SECONDS),
    )  # fmt: skip
