"""Outcome: how a run ended, and the one way to run a scenario on a loop to its end. Owns no scenario."""

from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from simulation.world.loop import SimLoop
from simulation.world.trace import logged_to


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a run. `failure` is None when every promise was kept; `events` counts events by kind."""

    seed: int
    trace_hash: str
    failure: str | None
    seconds: float
    callbacks: int
    events: dict[str, int]
    busiest_s: float = field(default=0.0, compare=False)
    """Processor time of the longest callback."""


def play(seed: int, loop: SimLoop, scenario: Coroutine[Any, Any, None], events: dict[str, int]) -> Outcome:
    """Never raises for a failure of the run."""
    failure = None
    try:
        with logged_to(loop.trace):
            loop.run_until_complete(scenario)
    except Exception as error:  # noqa: BLE001  # whatever it is, it is this seed's outcome
        failure = _why(error)
    finally:
        loop.finish()
    return Outcome(seed, loop.trace.hash, failure, loop.time(), loop.callbacks, dict(sorted(events.items())), loop.busiest_s)


def _why(error: BaseException) -> str:
    """The innermost cause says most."""
    while error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, BaseExceptionGroup):
        return _why(error.exceptions[0])
    return f"{type(error).__name__}: {error}"
