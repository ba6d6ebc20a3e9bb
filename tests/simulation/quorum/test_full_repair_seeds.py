"""Repairs among bookies without room: a hundred ledgers lose a bookie and no copy, and planted bugs are found."""

from collections import Counter

import pytest

from simulation.planted import PLANTED
from simulation.quorum.full_repair import run_full_repair_seed
from simulation.quorum.full_repair_plants import FULL_REPAIR_PLANTS

SEEDS, CHUNK = 100, 50
SEARCHED = 40


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_a_ledger_that_lost_a_bookie_is_repaired_when_there_is_room_and_is_marked_until_then(first: int) -> None:
    found = [run_full_repair_seed(seed) for seed in range(first, first + CHUNK)]
    again = "bin/simulate --scenario full-repair --seeds 1 --from SEED --trace FILE shows one again"
    assert not [f"seed {each.seed}: {each.failure}" for each in found if each.failure is not None], again
    events: Counter[str] = Counter()
    for outcome in found:
        events.update(outcome.events)
    assert events["not repaired while disks are full"] >= 5
    assert events["repaired while disks are full"] >= 5
    assert events["tries in vain"] >= 20
    assert events["restarted without room"] >= 5


@pytest.mark.parametrize("name", sorted(FULL_REPAIR_PLANTS))
def test_a_planted_bug_of_auto_recovery_without_room_is_found(name: str) -> None:
    plant = PLANTED[name]
    with plant.planted():
        failure = next(filter(None, (plant.run(seed, None).failure for seed in range(SEARCHED))), None)
    assert failure is not None, plant.what
    assert failure.startswith("Violation: "), "found by what it breaks, not because it does not fit any more"
