"""QuorumPlan: what a seed of the quorum scenario has been dealt before it begins: the cluster, who works when, what will rot.

Two plans of three are races: they give bookies the parts in which incidents of BookKeeper happened, and leave the timing to
chance, because chance alone deals those parts once in many thousands. The rest is chance alone. Pure.

- fence (#2614): while a client recovers, one bookie has the writer's last entries and answers late; one hears of its fence at
  the second attempt only, and gets the writer's adds late; one gets none of them.
- change (#1591, #3005, #4194): a bookie ends while adds wait for an ack quorum that it is a part of; the others get them late,
  and the metadata store the change; sometimes a second one ends meanwhile.
- rot (#2908): of the bookies that have the last entries one is damaged and one answers late.
- lie: the power is cut of one whose disk says that it has synced and has not; another has not all entries.
- loss (#2612, BP-46): a disk is replaced by an empty one, or its journal is, and the bookie comes back in limbo.
"""

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from bookie.settings import BookieSettings
from bookkeeper.ensemble import Quorum

QUORUMS = ((3, 3, 2), (3, 3, 2), (3, 3, 2), (3, 2, 2), (4, 3, 2), (5, 3, 2), (3, 3, 3), (2, 2, 1))
RACES = ("", "", "", "", "fence", "fence", "change", "change", "rot", "lie", "loss")
WRITER, RECOVERERS = "writer", ("recoverer-0", "recoverer-1")
JOURNAL, LEDGERS = "/j", "/l"
BOOKIES_MIN, BOOKIES_MAX = 3, 5
NEAR = 0.000_1
DISTANCES = (0.000_05, 0.000_3, 0.000_3, 0.003, 0.02)
"""Seconds for a packet in one direction, at least: what one client has done another may not see for long."""
FAULTS_SECONDS = (0.05, 0.2, 1.3)
"""In which all faults begin."""


class KilobytesForMegabytes(int):
    """A setting in MiB that means KiB: journals that roll over within a run, and that a start reads in no time."""

    def __mul__(self, megabyte: int) -> int:
        return int(self) * (megabyte // 1024)


@dataclass(frozen=True, slots=True)
class Moment:
    """So long after the writer's so-manieth append; 0: after the clients' start."""

    appends: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Recovering:
    """When a client begins to recover; the bookie whose fence is lost, and for how long that is not noticed."""

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
    """Where bits may rot; with the liar fewer than an ack quorum."""
    liar: int | None
    """A bookie whose disk says that it has synced and has not."""
    entries: int
    pause_seconds: float
    """Between two appends, if any."""
    ending: str
    """Of the writer: "close", "hang", or "sleep" and then append again."""
    recovering: tuple[Recovering, ...]
    distances: Mapping[tuple[str, str], float]
    ends: tuple[tuple[Moment, int], ...]
    """When bookies end, besides the faults."""
    rots: Moment | None = None
    """When the last entries of the rotting ones do."""
    loses: Moment | None = None
    """When a bookie loses what is in `lost_directories`; of the budget too."""
    loser: int = 0
    lost_directories: tuple[str, ...] = ()
    metadata_seconds: float = 0.001
    """That the writer's metadata store takes."""
    faults: int = 0
    faults_seconds: float = FAULTS_SECONDS[-1]


def host_of(bookie: int) -> str:
    return f"bookie-{bookie}"


@dataclass(slots=True)
class _Draft:
    """What the plans have in common."""

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


def draw_plan(rng: random.Random) -> QuorumPlan:
    """The plan of a seed's stream."""
    return DRAWN[rng.choice(RACES)](rng)


def _chance(rng: random.Random) -> QuorumPlan:
    draft = _Draft(rng, Quorum(*rng.choice(QUORUMS)), rng.choice((0, 1, 1, 2)), rng.choice((20, 100, 1000)))
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


def _fence_race(rng: random.Random) -> QuorumPlan:
    draft = _Draft(rng, Quorum(3, 3, 2), flush_ms=rng.choice((20, 1000)))
    draft.draw_distances((NEAR, 0.001))
    late, witness, deaf = draft.cast()
    entries = rng.randint(1, 6)
    draft.set_there(WRITER, late, rng.choice((0.02, 0.04, 0.08)))
    draft.set_there(WRITER, deaf, rng.choice((0.1, 0.3)))
    draft.set_back(witness, WRITER, rng.choice((NEAR, 0.05)))
    for recoverer in RECOVERERS:
        draft.set_back(witness, recoverer, rng.choice((0.005, 0.02)))
    begins = Moment(rng.randint(1, entries), rng.uniform(0.0, 0.02))
    later = rng.choice((0.0, 0.05, 0.5))
    recovering = (
        Recovering(begins, late, rng.choice((0.003, 0.01, 0.02))),
        Recovering(Moment(entries, later), rng.choice((None, late, witness)), 0.01),
    )
    ends = [(Moment(begins.appends, begins.seconds + rng.uniform(0.003, 0.05)), bookie) for bookie in (late, witness, deaf)]
    return QuorumPlan(
        draft.quorum, draft.bookies, draft.settings, (), None, entries, rng.choice((0.001, 0.005)),
        rng.choice(("hang", "sleep")), recovering, draft.distances, tuple(rng.sample(ends, rng.choice((0, 0, 1, 2)))),
        faults=rng.choice((0, 0, 0, 1)),
    )  # fmt: skip


def _change_race(rng: random.Random) -> QuorumPlan:
    draft = _Draft(rng, Quorum(*rng.choice(((3, 3, 2), (3, 3, 2), (4, 3, 2), (2, 2, 2)))), rng.choice((1, 2)))
    draft.draw_distances((NEAR, 0.02, 0.05, 0.1))
    leaver, witness, laggard = draft.cast()
    entries = rng.randint(2, 10)
    draft.set_there(WRITER, leaver, NEAR)
    draft.set_back(leaver, WRITER, NEAR)
    draft.set_there(WRITER, witness, rng.choice((NEAR, 0.005, 0.01)))
    draft.set_back(witness, WRITER, rng.choice((0.005, 0.01)))
    draft.set_there(WRITER, laggard, rng.choice((0.05, 0.1)))
    ends = [(Moment(rng.randint(1, entries), rng.uniform(0.001, 0.01)), leaver)]
    if rng.random() < 0.4:
        ends.append((Moment(rng.randint(1, entries), rng.uniform(0.005, 0.05)), rng.choice((witness, laggard))))
    recovering = tuple(
        Recovering(Moment(entries, rng.choice((rng.uniform(0.0, 0.05), rng.uniform(0.1, 0.6))))) for _ in RECOVERERS
    )
    return QuorumPlan(
        draft.quorum, draft.bookies, draft.settings, (), None, entries, rng.choice((0.001, 0.005)),
        rng.choice(("close", "hang", "sleep")), recovering, draft.distances, tuple(ends),
        metadata_seconds=rng.choice((0.001, 0.005, 0.02)), faults=rng.choice((0, 0, 0, 1)),
    )  # fmt: skip


def _rot_race(rng: random.Random) -> QuorumPlan:
    draft = _Draft(rng, Quorum(*rng.choice(((3, 3, 2), (3, 3, 2), (3, 3, 3), (2, 2, 2)))))
    draft.draw_distances((NEAR, 0.001))
    rotting, witness, deaf = draft.cast()
    entries = rng.randint(1, 4)
    if draft.quorum.ack_quorum < draft.quorum.write_quorum:
        draft.set_there(WRITER, deaf, rng.choice((0.3, 1.0)))
    for recoverer in RECOVERERS:
        draft.set_back(witness, recoverer, rng.choice((NEAR, 0.005, 0.02)))
    rots = rng.uniform(0.03, 0.12)
    recovering = tuple(Recovering(Moment(entries, rots + rng.uniform(-0.01, 0.1))) for _ in RECOVERERS)
    return QuorumPlan(
        draft.quorum, draft.bookies, draft.settings, (rotting,), None, entries, 0.001, "hang", recovering, draft.distances, (),
        rots=Moment(entries, rots), faults=rng.choice((0, 0, 0, 1)),
    )  # fmt: skip


def _lie_race(rng: random.Random) -> QuorumPlan:
    draft = _loss_draft(rng)
    liar, witness, deaf = draft.cast()
    entries = rng.randint(1, 8)
    _keep_apart(draft, witness, deaf)
    cut = Moment(rng.randint(1, entries), rng.uniform(0.0, 0.1))
    return QuorumPlan(
        draft.quorum, draft.bookies, draft.settings, (), liar, entries, rng.choice((0.001, 0.01)),
        rng.choice(("close", "hang", "sleep")), _recovering_soon(rng, cut), draft.distances, ((cut, liar),),
        faults=rng.choice((0, 0, 1, 2)), faults_seconds=0.2,
    )  # fmt: skip


def _loss_race(rng: random.Random) -> QuorumPlan:
    draft = _loss_draft(rng)
    draft.allows_limbo = True
    loser, witness, deaf = draft.cast()
    entries = rng.randint(1, 8)
    _keep_apart(draft, witness, deaf)
    loses = Moment(rng.randint(1, entries), rng.uniform(0.0, 0.1))
    return QuorumPlan(
        draft.quorum, draft.bookies, draft.settings, (), None, entries, rng.choice((0.001, 0.01)),
        rng.choice(("close", "hang", "sleep")), _recovering_soon(rng, loses), draft.distances, (),
        loses=loses, loser=loser, lost_directories=rng.choice(((JOURNAL,), (JOURNAL, LEDGERS))),
        faults=rng.choice((0, 0, 1, 2)), faults_seconds=0.2,
    )  # fmt: skip


def _loss_draft(rng: random.Random) -> _Draft:
    quorum = Quorum(*rng.choice(((3, 3, 2), (3, 3, 2), (3, 3, 3), (2, 2, 2), (4, 3, 2))))
    draft = _Draft(rng, quorum, rng.choice((0, 1)), rng.choice((20, 1000)))
    draft.draw_distances((NEAR, 0.001, 0.005))
    return draft


def _keep_apart(draft: _Draft, witness: int, deaf: int) -> None:
    """One does not get the writer's adds for long; the one that has them is slow to say so."""
    draft.set_there(WRITER, deaf, draft.rng.choice((NEAR, 0.05, 0.3)))
    for recoverer in RECOVERERS:
        draft.set_back(witness, recoverer, draft.rng.choice((NEAR, 0.02)))


def _recovering_soon(rng: random.Random, moment: Moment) -> tuple[Recovering, ...]:
    return tuple(Recovering(Moment(moment.appends, moment.seconds + rng.uniform(-0.02, 0.5))) for _ in RECOVERERS)


DRAWN: Mapping[str, Callable[[random.Random], QuorumPlan]] = {
    "": _chance,
    "fence": _fence_race,
    "change": _change_race,
    "rot": _rot_race,
    "lie": _lie_race,
    "loss": _loss_race,
}
