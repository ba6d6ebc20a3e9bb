"""Full bookies: twenty lives of a cluster whose bookies' disks are full for a time keep every promise."""

from collections import Counter

import pytest

from simulation.cluster.full_bookie_scenario import draw_full_bookie_plan, run_full_bookie_seed
from simulation.cluster.plan import ClusterFaultKind

SEEDS, CHUNK = 20, 5


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_a_cluster_whose_bookies_are_full_for_a_time_keeps_its_promises(first: int) -> None:
    found = [run_full_bookie_seed(seed) for seed in range(first, first + CHUNK)]
    again = "bin/simulate --scenario full-bookie --seeds 1 --from SEED --trace FILE shows one again"
    assert not [f"seed {each.seed}: {each.failure}" for each in found if each.failure is not None], again
    events: Counter[str] = Counter()
    for outcome in found:
        events.update(outcome.events)
    assert events["fault full disk"] >= CHUNK
    assert events["Acknowledged"] >= 30


def test_one_bookie_is_full_alone_and_all_of_them_are_at_once() -> None:
    counts = {
        sum(fault.kind is ClusterFaultKind.FULL_DISK for fault in draw_full_bookie_plan(seed).faults) for seed in range(SEEDS)
    }
    assert counts == {1, 2, 6}
