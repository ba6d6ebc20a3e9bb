"""Seeds of a replicated ledger on three to five bookies: no promise is broken; and what the scenario draws is drawn."""

import io
from collections import Counter

import pytest

from simulation.outcome import Outcome
from simulation.quorum_scenario import run_quorum_seed

SEEDS = 300
"""A thousand were wanted, for 40 s at most: at about 60 ms of CPU each some 600 would fit. Raise it after a run of more."""
CHUNK = 25


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_a_replicated_ledger_keeps_its_promises(first: int) -> None:
    found: list[Outcome] = [run_quorum_seed(seed) for seed in range(first, first + CHUNK)]
    broken = [f"seed {outcome.seed}: {outcome.failure}" for outcome in found if outcome.failure is not None]
    assert not broken, "bin/simulate --scenario quorum --seeds 1 --from SEED --trace FILE shows one again"
    events: Counter[str] = Counter()
    for outcome in found:
        events.update(outcome.events)
    least = {"acknowledged": 25, "opened": 25, "fault crash": 3}
    assert {kind: events[kind] for kind in least if events[kind] < least[kind]} == {}


def test_a_seed_replays_byte_for_byte() -> None:
    first, second = io.StringIO(), io.StringIO()
    assert run_quorum_seed(29, first) == run_quorum_seed(29, second)
    assert first.getvalue() == second.getvalue()
    assert len(first.getvalue().splitlines()) > 100
