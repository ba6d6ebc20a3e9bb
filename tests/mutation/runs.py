"""Tests against mutants, without a changed file and without a new interpreter for each.

`Mutations` is a pytest plugin. Once the tests are collected it learns which calls which function (`tests.mutation.callers`).
Then each mutant gets a fork of its own: the changed code stands in the live function, and the tests that call it run, the
quickest first, until one fails or the seconds are used up that one mutant may have.
"""

import importlib
import os
import select
import signal
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import CodeType, FunctionType

import pytest

from tests.mutation.callers import Callers
from tests.mutation.items import passes, silence
from tests.mutation.live import live_function
from tests.mutation.mutants import Mutant, mutated_code

EXAMPLES_MAX = 40
"""Examples of each property: enough to find a mutant."""
PATIENCE = 5
"""A mutant's tests may take so many times as long as they do without it, and `SECONDS_MORE`; if they take longer, they hang."""
SECONDS_MORE = 15


class Verdict(Enum):
    """Fate of a mutant."""

    KILLED = "killed"
    TIMED_OUT = "timed out"
    """The tests did not end, or a signal killed the process."""
    SURVIVED = "survived"
    NOT_CALLED = "not called"
    """No test calls the function."""
    UNREACHABLE = "unreachable"
    """The function cannot be replaced: a decorator hides it."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on a mutant, the test that found it, and how many tests call it that there were no seconds for."""

    verdict: Verdict
    found_by: str = ""
    untried: int = 0


class Mutations:
    """Tries `mutants` with the tests of this pytest run; tells `judged` what became of each."""

    def __init__(
        self,
        mutants: Sequence[Mutant],
        judged: Callable[[Mutant, Judgement], None],
        seconds: float,
        learn: Callable[[Sequence[pytest.Item]], Callers],
    ) -> None:
        self._mutants = mutants
        self._judged = judged
        self._seconds = seconds
        self._learn = learn

    def pytest_configure(self) -> None:
        hypothesis = importlib.import_module("hypothesis")  # not before pytest has rewritten its assertions
        hypothesis.settings.register_profile(
            "mutants", max_examples=EXAMPLES_MAX, derandomize=True, database=None, deadline=None
        )
        hypothesis.settings.load_profile("mutants")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        callers = self._learn(session.items)
        items = {item.nodeid: item for item in session.items}
        for mutant in self._mutants:
            tests = callers.of(mutant.module, mutant.qualname)
            chosen = _within(self._seconds, tests, callers)
            patience = PATIENCE * sum(callers.seconds[test] for test in chosen) + SECONDS_MORE
            judgement = _try(mutant, [items[test] for test in chosen], patience)
            untried = len(tests) - len(chosen) if judgement.verdict is Verdict.SURVIVED else 0
            self._judged(mutant, Judgement(judgement.verdict, judgement.found_by, untried))
        return True


def _within(seconds: float, tests: Sequence[str], callers: Callers) -> list[str]:
    """The first tests that take no longer than that together; one at least."""
    chosen: list[str] = []
    for test in tests:
        seconds -= callers.seconds[test]
        if chosen and seconds < 0:
            break
        chosen.append(test)
    return chosen


def _try(mutant: Mutant, items: Sequence[pytest.Item], patience: float) -> Judgement:
    module = importlib.import_module(mutant.module)
    path = str(Path(module.__file__ or ""))
    function = live_function(module, mutant.qualname)
    code = mutated_code(Path(path).read_text(), path, mutant)
    if function is None or code.co_freevars != function.__code__.co_freevars:
        return Judgement(Verdict.UNREACHABLE)
    if not items:
        return Judgement(Verdict.NOT_CALLED)
    with tempfile.NamedTemporaryFile() as room:
        child = os.fork()
        if child == 0:
            Path(room.name).write_text(_first_that_fails(function, code, items))
            os._exit(0)
        if _status_within(child, patience):
            return Judgement(Verdict.TIMED_OUT)
        found_by = Path(room.name).read_text()
    return Judgement(Verdict.KILLED, found_by) if found_by else Judgement(Verdict.SURVIVED)


def _status_within(child: int, seconds: float) -> int:
    """Status of the fork; killed when it takes longer. Its own alarm would not do: tests set and clear theirs."""
    descriptor = os.pidfd_open(child)
    try:
        has_ended, _, _ = select.select([descriptor], [], [], seconds)
    finally:
        os.close(descriptor)
    if not has_ended:
        os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def _first_that_fails(function: FunctionType, code: CodeType, items: Sequence[pytest.Item]) -> str:
    """The id of the first test that fails with this code in the function, else nothing."""
    function.__code__ = code
    with silence():
        for item in items:
            try:
                if not passes(item):
                    return item.nodeid
            except BaseException:  # noqa: BLE001 - whatever the mutant breaks, it is found
                return item.nodeid
    return ""
