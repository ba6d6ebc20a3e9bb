"""Seeds: three hundred lives each of a standalone, a ledger and a log with its cursors, with faults, keep every promise."""

import functools
import io
from collections import Counter

import pytest

from simulation.ledgers.ledger_scenario import run_ledger_seed
from simulation.ledgers.log_scenario import failures_of_every_crash, run_log_seed
from simulation.planted import Run
from simulation.standalone.scenario import run_seed
from simulation.world.outcome import Outcome

SEEDS = 300
CHUNK = 10


@functools.cache
def outcomes(run: Run, first: int, count: int) -> list[Outcome]:
    """Outcomes of these seeds; several tests look at the same."""
    return [run(seed, None) for seed in range(first, first + count)]


def failures(run: Run, first: int, count: int) -> list[str]:
    found = outcomes(run, first, count)
    return [f"seed {outcome.seed}: {outcome.failure}" for outcome in found if outcome.failure is not None]


def events_of(run: Run, seeds: int, chunk: int) -> Counter[str]:
    events: Counter[str] = Counter()
    for first in range(0, seeds, chunk):
        for outcome in outcomes(run, first, chunk):
            events.update(outcome.events)
    return events


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_a_standalone_keeps_its_promises(first: int) -> None:
    assert not failures(run_seed, first, CHUNK), "bin/simulate --seeds 1 --from SEED --trace FILE shows one again"


@pytest.mark.parametrize("first", range(0, SEEDS, 100))
def test_a_ledger_keeps_its_promises(first: int) -> None:
    assert not failures(run_ledger_seed, first, 100)


@pytest.mark.parametrize("first", range(0, SEEDS, 100))
def test_a_log_and_its_cursors_keep_their_promises(first: int) -> None:
    assert not failures(run_log_seed, first, 100)


@pytest.mark.parametrize("seed", range(1001, 1004))
def test_a_crash_after_any_one_write_breaks_no_promise_of_a_log(seed: int) -> None:
    """Writes of the nodes and ledgers of log and cursors, trimming included; two of them with holes in segments."""
    assert not failures_of_every_crash(seed)


@pytest.mark.parametrize(("run", "seed"), [(run_seed, 5), (run_seed, 22), (run_ledger_seed, 3), (run_log_seed, 3)])
def test_a_seed_replays_byte_for_byte(run: Run, seed: int) -> None:
    first, second = io.StringIO(), io.StringIO()
    outcome = run(seed, first)
    assert run(seed, second) == outcome
    assert first.getvalue() == second.getvalue()
    assert len(first.getvalue().splitlines()) > 100
    assert run(seed + 1, None).trace_hash != outcome.trace_hash


def test_the_seeds_do_what_they_are_for() -> None:
    """A generator that stopped drawing something would make everything pass."""
    events = events_of(run_seed, 40, CHUNK)
    rare = {
        "SeekDone": 5,
        "ServerStopped": 40,
        "Nacked": 100,
        "LastMessageReported": 1000,
        "Delivered": 5000,
        "Acknowledged": 1000,
    }
    assert {kind: events[kind] for kind in rare if events[kind] < rare[kind]} == {}


def test_the_crashes_of_a_log_come_in_the_middle_of_work() -> None:
    events = events_of(run_log_seed, 100, 100)
    rare = {"crashed": 150, "acknowledged": 200, "confirmed": 400, "flushed": 100, "consumed": 40, "opened": 200}
    assert {kind: events[kind] for kind in rare if events[kind] < rare[kind]} == {}
