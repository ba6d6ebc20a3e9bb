"""Every seed has a bound on what one callback costs: where one took long, the seed is run again and its steps are counted.

To count steps makes a run three times as long; to read the processor's clock around each callback costs a hundredth. The clock
only says which runs are counted (it is held against a loop of known length, and on a slower machine it chooses more of them);
whether a callback costs too much is decided by its steps, which are the same on every machine. All seeds of the tests were
counted once: none has more than `steps` allows, whichever are chosen.
"""

import functools
from collections.abc import Callable
from dataclasses import replace
from time import thread_time
from typing import TextIO, TypeVar, cast

from simulation.world.outcome import Outcome
from simulation.world.steps import counted, meter_in_force

R = TypeVar("R", bound=Callable[..., Outcome])

LOOPS = 100_000
SUSPICIOUS_LOOPS = 200_000
"""A callback that takes as long as so many turns of an empty loop has its seed counted. To start a server takes 150,000."""


@functools.cache
def suspicious_s() -> float:
    """Suspicious time of a callback, in seconds of this machine's processor."""
    return min(_seconds_of_loops() for _ in range(5)) * SUSPICIOUS_LOOPS / LOOPS


def _seconds_of_loops() -> float:
    began = thread_time()
    for _ in range(LOOPS):
        pass
    return thread_time() - began


def bounded(run: R) -> R:
    """The same run, which fails too where nothing does but a callback that costs more steps than allowed."""

    @functools.wraps(run)
    def run_and_look(seed: int, sink: TextIO | None = None) -> Outcome:
        outcome = run(seed, sink)
        if outcome.failure is not None or meter_in_force() is not None or outcome.busiest_s < suspicious_s():
            return outcome
        with counted():
            return replace(outcome, failure=run(seed, None).failure)

    return cast(R, run_and_look)
