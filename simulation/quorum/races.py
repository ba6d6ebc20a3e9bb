"""Races: plans of the quorum scenario that give bookies the parts in which incidents of BookKeeper happened.

Two plans of three are races. They leave the timing to chance, which alone would deal those parts once in many thousands. Pure.

- fence (#2614): while a client recovers, one bookie has the writer's last entries and answers late; one hears of its fence at
  the second attempt only, and gets the writer's adds late; one gets none of them.
- change (#1591, #3005, #4194): a bookie ends while adds wait for an ack quorum that it is a part of; the others get them late,
  and the metadata store the change; sometimes a second one ends meanwhile.
- rot (#2908): of the bookies that have the last entries one is damaged and one answers late.
- lie: the power is cut of one whose disk says that it has synced and has not; another has not all entries.
- loss (#2612, BP-46): a disk is replaced by an empty one, or its journal is, and the bookie comes back in limbo.
- late: a bookie gets no adds from a run on, and ends when the others have confirmed that run and parts after it.
- repair: a bookie is gone for good; an auditor and a replication worker, which may die too, put its copies elsewhere.
"""

import random
from collections.abc import Callable, Mapping

from bookkeeper.write.quorum_tracker import Quorum
from simulation.quorum.plan import (
    JOURNAL,
    LEDGERS,
    NEAR,
    RECOVERERS,
    WRITER,
    Draft,
    Moment,
    QuorumPlan,
    Recovering,
    chance,
)


def _fence_race(rng: random.Random) -> QuorumPlan:
    draft = Draft(rng, Quorum(3, 3, 2), flush_ms=rng.choice((20, 1000)))
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
    draft = Draft(rng, Quorum(*rng.choice(((3, 3, 2), (3, 3, 2), (4, 3, 2), (2, 2, 2)))), rng.choice((1, 2)))
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
    draft = Draft(rng, Quorum(*rng.choice(((3, 3, 2), (3, 3, 2), (3, 3, 3), (2, 2, 2)))))
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


def _loss_draft(rng: random.Random) -> Draft:
    quorum = Quorum(*rng.choice(((3, 3, 2), (3, 3, 2), (3, 3, 3), (2, 2, 2), (4, 3, 2))))
    draft = Draft(rng, quorum, rng.choice((0, 1)), rng.choice((20, 1000)))
    draft.draw_distances((NEAR, 0.001, 0.005))
    return draft


def _keep_apart(draft: Draft, witness: int, deaf: int) -> None:
    """One does not get the writer's adds for long; the one that has them is slow to say so."""
    draft.set_there(WRITER, deaf, draft.rng.choice((NEAR, 0.05, 0.3)))
    for recoverer in RECOVERERS:
        draft.set_back(witness, recoverer, draft.rng.choice((NEAR, 0.02)))


def _recovering_soon(rng: random.Random, moment: Moment) -> tuple[Recovering, ...]:
    return tuple(Recovering(Moment(moment.appends, moment.seconds + rng.uniform(-0.02, 0.5))) for _ in RECOVERERS)


def _repair_race(rng: random.Random) -> QuorumPlan:
    quorum = Quorum(*rng.choice(((3, 3, 2), (3, 2, 2), (2, 2, 2), (4, 3, 2))))
    draft = Draft(rng, quorum, 2 if quorum.ensemble_size == 3 else 1, 1000)
    draft.draw_distances((NEAR, 0.001, 0.005))
    loser, witness, deaf = draft.cast()
    entries = rng.randint(1, 8)
    _keep_apart(draft, witness, deaf)
    leaves = Moment(rng.randint(1, entries), rng.uniform(0.0, 0.1))
    dies = Moment(leaves.appends, leaves.seconds + rng.uniform(0.0, 1.0))
    return QuorumPlan(
        draft.quorum, draft.bookies, draft.settings, (), None, entries, rng.choice((0.001, 0.01)),
        rng.choice(("close", "hang", "sleep")), _recovering_soon(rng, leaves), draft.distances, (),
        loser=loser, leaves=leaves, repairer_dies=rng.choice((None, dies)),
        faults=rng.choice((0, 0, 1, 2)), faults_seconds=0.2,
    )  # fmt: skip


def late_race(rng: random.Random) -> QuorumPlan:
    """Plan for a writer of parts: dealt to seeds of its own (`scenario`). Pauses are long enough for the others' answers."""
    draft = Draft(rng, Quorum(3, 3, 2), rng.choice((1, 1, 2)))
    draft.draw_distances((NEAR, 0.000_3))
    laggard = draft.cast()[0]
    run_at = rng.randint(1, 12)
    entries = run_at + rng.randint(3, 20)
    ends = ((Moment(run_at, rng.choice((0.02, 0.1, 0.3)) * rng.random()), laggard),)
    recovering = tuple(Recovering(Moment(entries, rng.uniform(0.1, 0.5))) for _ in RECOVERERS)
    return QuorumPlan(
        draft.quorum, draft.bookies, draft.settings, (), None, entries, rng.choice((0.005, 0.02)),
        rng.choice(("close", "hang", "sleep")), recovering, draft.distances, ends, run_at=run_at, laggard=laggard,
        metadata_seconds=rng.choice((0.001, 0.005, 0.02)), faults=rng.choice((0, 0, 0, 1)),
    )  # fmt: skip


DRAWN: Mapping[str, Callable[[random.Random], QuorumPlan]] = {
    "": chance,
    "fence": _fence_race,
    "change": _change_race,
    "rot": _rot_race,
    "lie": _lie_race,
    "loss": _loss_race,
    "repair": _repair_race,
}
RACES = ("", "", "", "", "fence", "fence", "change", "change", "rot", "lie", "loss", "repair")


def draw_plan(rng: random.Random) -> QuorumPlan:
    """The plan of a seed's stream."""
    return DRAWN[rng.choice(RACES)](rng)
