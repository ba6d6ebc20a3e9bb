"""Costs that virtual time cannot show: steps of each callback, and memory of a server at the end of a seed."""

import asyncio
import importlib
from collections.abc import Callable
from typing import Any, TextIO

import pytest

from broker.topic.publish.publishers import Publishers
from simulation.checks.memory import KNOWN, watched
from simulation.ledgers.ledger_scenario import run_ledger_seed
from simulation.ledgers.log_scenario import run_log_seed
from simulation.planted import Run
from simulation.quorum.scenario import run_quorum_seed
from simulation.standalone.deduplication_scenario import run_deduplication_seed
from simulation.standalone.plan import FaultKind, Plan, draw_plan
from simulation.standalone.scenario import lives_through, run_seed
from simulation.transfers.scenario import run_transfer_seed
from simulation.world.bounded import bounded, suspicious_s
from simulation.world.loop import SimLoop
from simulation.world.outcome import Outcome, play
from simulation.world.rng import stream
from simulation.world.steps import counted, meter_in_force
from tests.simulation.declining import decline

LIVED_CHUNKS = 5
EVERY = 30
"""One of so many of the seeds that `test_seeds` runs: to count makes a run three times as long. In others only what takes as
long as a server's start and half of it again is counted."""


def outcome_of(work: Any) -> str | None:
    loop = SimLoop(stream(1, "loop"))
    return play(1, loop, work(), {}).failure


def plant(monkeypatch: pytest.MonkeyPatch, owner: type, bug: Callable[..., Any]) -> None:
    """On both ways that a publish goes: in runs, and as a part of what one read brought. The kernel leaves all to them."""
    decline(monkeypatch)
    for way in ("count_published", "take_part"):
        original = getattr(owner, way)
        monkeypatch.setattr(owner, way, lambda self, *published, original=original: bug(original, self, *published))


def quadratic(things: list[int]) -> int:
    return sum(1 for one in things for other in things if one < other)


# ---- steps


def test_a_callback_that_costs_too_much_ends_the_run_by_its_name_and_place() -> None:
    async def good_and_bad() -> None:
        await asyncio.sleep(1)
        quadratic(list(range(20)))
        await asyncio.sleep(1)
        quadratic(list(range(400)))

    with counted():
        failure = outcome_of(good_and_bad)
    assert failure is not None
    assert "good_and_bad" in failure
    assert "steps in one turn of the loop" in failure
    assert "quadratic" in failure


def test_without_counting_nothing_is_said_of_it() -> None:
    async def bad() -> None:
        quadratic(list(range(400)))

    assert outcome_of(bad) is None


@pytest.mark.parametrize("run", [run_ledger_seed, run_log_seed])
def test_a_seed_counts_the_same_each_time_and_goes_the_same_way_counted_or_not(run: Run) -> None:
    run(7, None)  # what is made once in a process is made
    worst = []
    for _ in range(2):
        with counted() as meter:
            assert run(7, None) == run(7, None)
        worst.append(meter.worst)
    assert worst[0] == worst[1]
    assert worst[0].steps > 100
    with counted():
        found = run(7, None)
    assert found == run(7, None)


COUNTED: dict[Run, range] = {
    run_seed: range(0, 300, EVERY),
    run_ledger_seed: range(0, 300, 5),
    run_log_seed: range(0, 300, 5),
    run_quorum_seed: range(0, 100, EVERY),
    run_deduplication_seed: range(1),
    run_transfer_seed: range(1),
}


@pytest.mark.parametrize("run", COUNTED)
def test_no_callback_of_a_seed_costs_more_steps_than_allowed(run: Run) -> None:
    with counted():
        failures = [f"seed {seed}: {failure}" for seed in COUNTED[run] if (failure := run(seed, None).failure) is not None]
    assert not failures


def test_a_planted_quadratic_callback_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each publish looks at every pair of ten numbers for each publish before it."""
    seen: list[int] = []

    def slower(original: Callable[..., Any], self: Publishers, *published: Any) -> Any:
        seen.extend(range(10))
        quadratic(seen[-1000:])
        return original(self, *published)

    plant(monkeypatch, Publishers, slower)
    failure = run_seed(3, None).failure
    assert failure is not None, "every seed has the bound"
    assert "steps in one turn of the loop" in failure
    assert "quadratic" in failure


def test_a_seed_is_run_again_and_counted_only_where_a_callback_took_long() -> None:
    ran: list[bool] = []

    def run(seed: int, sink: TextIO | None = None) -> Outcome:
        ran.append(meter_in_force() is not None)
        return Outcome(seed, "", "too many steps" if ran[-1] else None, 0.0, 0, {}, busiest_s=seed * suspicious_s())

    assert bounded(run)(0).failure is None
    assert ran == [False]
    assert bounded(run)(2).failure == "too many steps"
    assert ran == [False, False, True]


# ---- memory


SMALL_LEDGERS = {"managedLedgerMaxEntriesPerLedger": 5, "managedLedgerCursorMaxEntriesPerLedger": 1}
"""Both together leave more ledgers than a leak may: of unacknowledged entries, and deleted ones of cursors, which a bookie
knows until it looks for garbage."""


def few_ledgers(seed: int) -> bool:
    """Whether the plan leaves few ledgers behind, so that what is left in memory is a leak."""
    drawn = draw_plan(seed).settings
    return any(int(drawn.get(key, entries + 1)) > entries for key, entries in SMALL_LEDGERS.items())


LIVED = [seed for seed in range(300) if lives_through(draw_plan(seed)) and few_ledgers(seed)]
"""Seeds whose server lives from the start to the end: a leak of theirs is still there."""
PLANTED_SEEDS, PLANTED_ENTRIES_MIN = 12, 40


def test_every_class_that_memory_may_keep_exists_under_its_name() -> None:
    for name in KNOWN:
        module, _, kind = name.rpartition(".")
        if not kind[0].isupper():
            module, _, kind = module.rpartition(".")
        assert hasattr(importlib.import_module(module), kind), name


def test_a_fifth_of_the_seeds_has_a_server_that_lives_through() -> None:
    assert len(LIVED) >= 50


@pytest.mark.parametrize("nth", range(LIVED_CHUNKS))
def test_a_server_holds_no_more_at_the_end_of_a_seed_than_at_its_start(nth: int) -> None:
    seeds = sorted({*LIVED, *range(0, 300, EVERY)})[nth::LIVED_CHUNKS]
    with watched():
        failures = {seed: failure for seed in seeds if (failure := run_seed(seed, None).failure) is not None}
    assert not failures


def test_a_planted_leak_is_found_by_each_seed_that_publishes_enough_on_one_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each topic remembers every run that its publishers were handed."""

    def remembering(original: Callable[..., Any], self: Publishers, *published: Any) -> Any:
        self._host.__dict__.setdefault("_remembered", []).append(object())
        return original(self, *published)

    plant(monkeypatch, Publishers, remembering)
    seeds = [seed for seed in LIVED if _keeps_its_topic(draw_plan(seed))][:PLANTED_SEEDS]
    assert run_seed(seeds[0], None).failure is None, "nothing else finds it"
    with watched():
        failures = {seed: run_seed(seed, None).failure or "" for seed in seeds}
    assert not {seed: failure for seed, failure in failures.items() if "PersistentTopic._remembered" not in failure}


def _keeps_its_topic(plan: Plan) -> bool:
    """Whether a topic lives through, and more is published than may be left."""
    entries = sum(shape.entries for _, shape in plan.producers)
    return entries >= PLANTED_ENTRIES_MIN and FaultKind.UNLOAD not in {fault.kind for fault in plan.faults}
