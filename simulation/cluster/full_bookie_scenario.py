"""A cluster in which the disks of bookies are full for a time: of one, of several one after the other, of all at once.

The plan is that of a cluster, with its other faults; beside them others take nearly all of a bookie's disk, now and then each
block that becomes free, and give it back. Where enough bookies have room they take the place of those that have none; where
not, producers are refused until there is room. Nothing acknowledged is lost; when all is healed everything goes on by itself.
"""

import random
from dataclasses import replace
from typing import TextIO

from simulation.cluster.plan import WORK_SECONDS, ClusterFault, ClusterFaultKind, ClusterPlan, draw_cluster_plan
from simulation.cluster.scenario import ClusterScenario
from simulation.world.bounded import bounded
from simulation.world.outcome import Outcome
from simulation.world.rng import stream

FULL_SECONDS = (0.5, 2.5, 3.5)
LOOK_MS = ("1000", "10000")
"""Intervals at which bookies look at their disks; a failed write tells them earlier."""


def draw_full_bookie_plan(seed: int) -> ClusterPlan:
    plan, rng = draw_cluster_plan(seed), stream(seed, "full bookies")
    return replace(
        plan,
        faults=tuple(sorted((*plan.faults, *_filled(rng)), key=lambda fault: fault.at)),
        bookie_settings={**plan.bookie_settings, "diskCheckInterval": rng.choice(LOOK_MS)},
    )


def _filled(rng: random.Random) -> list[ClusterFault]:
    """Early: the others work on meanwhile."""
    return [
        ClusterFault(rng.uniform(0.0, WORK_SECONDS / 2), ClusterFaultKind.FULL_DISK, rng.choice(FULL_SECONDS))
        for _ in range(rng.choice((1, 1, 2, 6)))
    ]


@bounded
def run_full_bookie_seed(seed: int, sink: TextIO | None = None) -> Outcome:
    """The life of a cluster with full disks that this seed stands for."""
    return ClusterScenario(draw_full_bookie_plan(seed), sink).run()
