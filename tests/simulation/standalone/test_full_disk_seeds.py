"""Full disks: forty lives of a standalone on a small disk that is filled again and again keep every promise."""

import pytest

from simulation.planted import PLANTED
from simulation.standalone.full_disk_plants import FULL_DISK_PLANTS
from simulation.standalone.full_disk_scenario import draw_full_disk_plan, draw_fullness, run_full_disk_seed
from simulation.standalone.plan import FaultKind

SEEDS, CHUNK = 40, 10
SEARCH_FROM = {"answered-without-room": 70, "metadata-answered-without-room": 20, "full-for-good": 2}
"""First seed tried for each planted bug: a crash has to come while something that did not fit is not stored anyway."""
SEARCH_SEEDS = 120


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_a_standalone_on_a_full_disk_keeps_its_promises(first: int) -> None:
    """Nothing acknowledged is lost, everything acknowledged is read while nothing is free, and publishing ends well."""
    found = [run_full_disk_seed(seed, None) for seed in range(first, first + CHUNK)]
    again = "bin/simulate --scenario full-disk --seeds 1 --from SEED --trace FILE shows one again"
    assert not [f"seed {each.seed}: {each.failure}" for each in found if each.failure is not None], again


@pytest.mark.parametrize("name", sorted(FULL_DISK_PLANTS))
def test_a_planted_bug_of_a_full_disk_is_found(name: str) -> None:
    plant, first = PLANTED[name], SEARCH_FROM[name]
    seeds = ((first + number) % SEARCH_SEEDS for number in range(SEARCH_SEEDS))
    with plant.planted():
        failure = next(filter(None, (plant.run(seed, None).failure for seed in seeds)), None)
    assert failure is not None, plant.what
    assert failure.startswith("Violation: ")


def test_disks_are_filled_to_the_last_byte_and_servers_die_in_it() -> None:
    drawn = [draw_fullness(seed)[1] for seed in range(SEEDS)]
    assert {each.left_bytes for times in drawn for each in times} >= {0, 4096}
    kinds = {fault.kind for seed in range(SEEDS) for fault in draw_full_disk_plan(seed).faults}
    assert {FaultKind.KILL, FaultKind.POWER_CUT} <= kinds
    assert FaultKind.DISK_ERROR not in kinds
