"""Each planted bug is found within a bounded number of seeds. That there is silence without it is shown by test_seeds.py."""

import pytest

from simulation.planted import PLANTED

SEEDS_MAX = {"ack-before-fsync": 120, "torn-frame-accepted": 600, "deletion-forgotten": 150}
"""Where it takes a crash at the right moment. Elsewhere 40."""


@pytest.mark.parametrize("name", sorted(PLANTED))
def test_a_planted_bug_is_found(name: str) -> None:
    plant = PLANTED[name]
    with plant.planted():
        failure = next(filter(None, (plant.run(seed, None).failure for seed in range(SEEDS_MAX.get(name, 40)))), None)
    assert failure is not None, plant.what
