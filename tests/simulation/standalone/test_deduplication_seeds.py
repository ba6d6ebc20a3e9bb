"""Seeds of a standalone that deduplicates: each message is stored once, whatever is killed; and what breaks that is found."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest

from broker.topic.publish.deduplication import Deduplication
from broker.topic.publish.deduplication_driver import TopicDeduplication
from simulation.standalone.deduplication_scenario import DeduplicationScenario, run_deduplication_seed

SEEDS = 12
CHUNK = 4
PLANT_SEEDS_MAX = 12


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_a_standalone_that_deduplicates_stores_each_message_once(first: int) -> None:
    scenarios = [DeduplicationScenario(seed) for seed in range(first, first + CHUNK)]
    failures = [f"seed {outcome.seed}: {outcome.failure}" for outcome in (each.run() for each in scenarios) if outcome.failure]
    assert not failures, "bin/simulate --scenario deduplication --seeds 1 --from SEED --trace FILE shows one again"


def _everything_is_new(push_run: Any) -> Any:
    def broken(self: Deduplication, name: str, first: int, last: int, now_ms: int) -> bool:
        self.note(name, last, now_ms)
        return True

    return broken


def _nothing_is_replayed(replay: Any) -> Any:
    async def broken(self: TopicDeduplication, cursor: Any) -> int:
        return 0

    return broken


PLANTS: dict[str, tuple[type, str, Callable[[Any], Any]]] = {
    "everything-is-new": (Deduplication, "push_run", _everything_is_new),
    "nothing-is-replayed": (TopicDeduplication, "_replay", _nothing_is_replayed),
}


@pytest.mark.parametrize("name", sorted(PLANTS))
def test_a_planted_bug_of_deduplication_is_found(name: str) -> None:
    target, attribute, replacement = PLANTS[name]
    with patch.object(target, attribute, replacement(getattr(target, attribute))):
        failures = (run_deduplication_seed(seed).failure for seed in range(PLANT_SEEDS_MAX))
        found = next(filter(None, failures), None)
    assert found is not None
    assert found.startswith("Violation: ")
    assert "is stored twice" in found
