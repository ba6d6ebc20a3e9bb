"""A cluster whose bundles are split while clients lose their connections: others are asked at once who owns the halves.

The plan is that of a cluster; its faults are splits, and after each of them lookups by another broker and connections that end.
No topic is owned by two, and all that a cluster promises holds.
"""

import random
from dataclasses import replace
from typing import TextIO

from simulation.cluster.plan import WORK_SECONDS, ClusterFault, ClusterFaultKind, ClusterPlan, draw_cluster_plan
from simulation.cluster.scenario import ClusterScenario
from simulation.world.bounded import bounded
from simulation.world.outcome import Outcome
from simulation.world.rng import stream

Kind = ClusterFaultKind
SPLITS = (1, 2, 3)
AFTER_SECONDS = 0.6
"""A broker is asked, or connections end, so long after a split at most."""


def draw_split_plan(seed: int) -> ClusterPlan:
    plan, rng = draw_cluster_plan(seed), stream(seed, "splits")
    faults = [fault for _ in range(rng.choice(SPLITS)) for fault in _split(rng)]
    return replace(
        plan,
        faults=tuple(sorted(faults, key=lambda fault: fault.at)),
        broker_settings={**plan.broker_settings, "loadBalancerEnabled": "false"},
        ends=("stay",) * plan.brokers,
    )


def _split(rng: random.Random) -> list[ClusterFault]:
    at = rng.uniform(0.0, WORK_SECONDS * 0.8)
    after = [rng.choice((Kind.VISIT, Kind.RESET, Kind.RESET)) for _ in range(rng.choice((1, 3, 5)))]
    return [
        ClusterFault(at, Kind.SPLIT, 0.05),
        *(ClusterFault(at + rng.uniform(0.0, AFTER_SECONDS), kind, 0.05) for kind in after),
    ]


@bounded
def run_split_seed(seed: int, sink: TextIO | None = None) -> Outcome:
    """The life of a cluster with splits that this seed stands for."""
    return ClusterScenario(draw_split_plan(seed), sink).run()
