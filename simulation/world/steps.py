"""Steps: what callbacks of a simulated loop cost, which virtual time cannot say. A line of Python that is run is a step.

The same seed counts the same, whatever the machine does meanwhile; what is compiled (kernels, libraries in C) counts as one
step. Counting makes a run several times as long, so that it is done in some of the seeds (`counted`).
"""

import asyncio
import functools
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

STEPS_MAX = 60_000
"""Steps of one callback in any seed: some ms. The most in any run were 42,400, for two hundred cumulative ACKs in one read of a
socket; plans are small, so a callback of more than linear cost exceeds the bound."""
START_STEPS_MAX = 120_000
"""Steps of the callback that starts a process: it reads all frames of its journal and metadata in one turn, at most 59,500
steps."""
_START = "._main"
_LOOK_EVERY = 100
"""Steps, at which it is noted where they are."""
_IMPORTS = "<frozen importlib"
_OWN = f"{Path(__file__).parents[1]}/"
"""Code of the simulation: what it looks at is no cost of the product's."""
_METER: ContextVar["StepMeter | None"] = ContextVar("METER", default=None)


@dataclass(frozen=True, slots=True)
class Costly:
    """A callback: its steps, its name, and where most of them were."""

    steps: int
    name: str
    where: str = ""


class StepMeter:
    """Counts the steps of one callback after the other; `with meter:` around it. `worst` is the one that cost most."""

    def __init__(self) -> None:
        self.worst = Costly(0, "nothing")
        self.steps = 0
        self._places: Counter[str] = Counter()
        self._old: Any = None

    def __enter__(self) -> "StepMeter":
        self.steps = 0
        self._places.clear()
        self._old = sys.gettrace()
        sys.settrace(self._called)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        sys.settrace(self._old)

    def ended(self, callback: Any) -> Costly | None:
        """A callback has ended; what it cost if that was too much."""
        if self.steps <= self.worst.steps:
            return None
        where = ", ".join(place for place, _ in self._places.most_common(3))
        self.worst = Costly(self.steps, name_of(callback), where)
        return self.worst if self.steps > steps_max(self.worst.name) else None

    def _called(self, frame: FrameType, event: str, arg: object) -> Any:
        file = frame.f_code.co_filename
        return None if file.startswith((_IMPORTS, _OWN)) else self._step

    def _step(self, frame: FrameType, event: str, arg: object) -> Any:
        self.steps += 1
        if self.steps % _LOOK_EVERY == 0:
            self._places[frame.f_code.co_qualname] += 1
        return self._step


def steps_max(name: str) -> int:
    """The bound for the callback of this name."""
    return START_STEPS_MAX if name.endswith(_START) else STEPS_MAX


def name_of(callback: Any) -> str:
    """The name of a task's step is the coroutine's, of a partial call its function's."""
    while isinstance(callback, functools.partial):
        callback = callback.func
    task = getattr(callback, "__self__", None)
    named = task.get_coro() if isinstance(task, asyncio.Task) else callback
    return getattr(named, "__qualname__", None) or repr(named)


@contextmanager
def uncounted() -> Iterator[None]:
    """Within, the product's code is called by a check, and costs nothing."""
    old = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(old)


@contextmanager
def counted() -> Iterator[StepMeter]:
    """Loops that are made within count the steps of their callbacks, and a run ends where one costs too much."""
    meter = StepMeter()
    token = _METER.set(meter)
    try:
        yield meter
    finally:
        _METER.reset(token)


def meter_in_force() -> StepMeter | None:
    return _METER.get()
