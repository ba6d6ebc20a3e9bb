"""The kernels of turns take most of what seeds publish, and the ways that they stand for keep every promise too."""

from collections import Counter
from typing import Any

import pytest

from bookkeeper.write import together
from broker.connection.consumers import consumers
from broker.connection.producers import producers
from broker.topic.subscription import subscriptions
from simulation.standalone.scenario import run_seed
from tests.simulation.declining import decline


@pytest.mark.parametrize("first", [0, 150])
def test_a_standalone_keeps_its_promises_where_the_kernels_leave_all_to_others(
    monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    decline(monkeypatch)
    failures = [f"seed {seed}: {run_seed(seed, None).failure}" for seed in range(first, first + 150, 15)]
    assert [each for each in failures if not each.endswith(": None")] == []


def test_the_kernels_take_what_seeds_publish_and_acknowledge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the seeds would say nothing of them."""
    taken: Counter[str] = Counter()

    def watch(module: Any, name: str, place: int | None) -> None:
        original = getattr(module, name)

        def watched(*given: Any) -> int:
            answer: int = original(*given)
            taken[name] += max(0, answer) if place is None else answer - given[place]
            return answer

        monkeypatch.setattr(module, name, watched)

    watch(producers, "take_parts", 2)
    watch(together, "store_parts", 1)
    watch(subscriptions, "hand_out", None)
    watch(consumers, "acknowledge_each", 2)
    for seed in range(12):
        assert run_seed(seed, None).failure is None
    assert min(taken[name] for name in ("take_parts", "store_parts", "hand_out", "acknowledge_each")) > 100, taken
