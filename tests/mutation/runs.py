"""Tests against mutants, without a changed file and without a new interpreter for each.

`Mutations` is a pytest plugin. Once the tests are collected it runs them all in a fork, and learns which test calls which
function and how long it takes. Then each mutant gets a fork of its own: the changed code stands in the live function, and the
tests that call this function run, the quickest first, until one fails.
"""

import contextlib
import importlib
import os
import pickle
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest

from tests.mutation.mutants import Mutant, mutated_code

SECONDS_MAX = 60
"""That the tests of one mutant may take; one that makes them hang is found."""
BASE_SECONDS_MAX = 1500
EXAMPLES_MAX = 40
"""Of each property: enough to find a mutant."""

Function = tuple[str, str]
"""The file and the qualified name of a function."""


class Verdict(Enum):
    """What became of a mutant."""

    KILLED = "killed"
    TIMED_OUT = "timed out"
    SURVIVED = "survived"
    NOT_CALLED = "not called"
    """No test calls the function."""
    UNREACHABLE = "unreachable"
    """The function cannot be replaced: a decorator hides it."""


class Mutations:
    """Tries `mutants` with the tests of this pytest run; tells `judged` what became of each."""

    def __init__(self, mutants: Sequence[Mutant], judged: Callable[[Mutant, Verdict], None]) -> None:
        self._mutants = mutants
        self._judged = judged

    def pytest_configure(self) -> None:
        hypothesis = importlib.import_module("hypothesis")  # not before pytest has rewritten its assertions
        hypothesis.settings.register_profile(
            "mutants", max_examples=EXAMPLES_MAX, derandomize=True, database=None, deadline=None
        )
        hypothesis.settings.load_profile("mutants")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        files = {str(Path(sys.modules[mutant.module].__file__ or "")) for mutant in self._mutants}
        callers = _who_calls(session.items, files)
        for mutant in self._mutants:
            self._judged(mutant, _try(mutant, session.items, callers))
        return True


def _who_calls(items: Sequence[pytest.Item], files: set[str]) -> dict[Function, list[int]]:
    """For each function in `files`, the indexes of the tests that call it and pass, the quickest first."""
    with tempfile.TemporaryFile() as room:
        child = os.fork()
        if child == 0:
            signal.alarm(BASE_SECONDS_MAX)
            with _silence():
                found = _observed(items, files)
            os.pwrite(room.fileno(), pickle.dumps(found), 0)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            raise RuntimeError(f"the tests did not end by themselves without a mutant (status {status})")
        room.seek(0)
        observed: dict[int, tuple[float, set[Function]]] = pickle.load(room)  # what our own fork wrote
    callers: dict[Function, list[int]] = {}
    for index in sorted(observed, key=lambda each: observed[each][0]):
        for function in observed[index][1]:
            callers.setdefault(function, []).append(index)
    return callers


def _observed(items: Sequence[pytest.Item], files: set[str]) -> dict[int, tuple[float, set[Function]]]:
    found = {}
    for index, item in enumerate(items):
        called: set[Function] = set()
        with _profiled(called, files):
            began = time.monotonic()
            passes = _passes(item)
        if passes:
            found[index] = (time.monotonic() - began, called)
    return found


@contextlib.contextmanager
def _profiled(called: set[Function], files: set[str]) -> Iterator[None]:
    def on_event(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename in files:
            called.add((frame.f_code.co_filename, frame.f_code.co_qualname))

    threading.setprofile(on_event)
    sys.setprofile(on_event)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def _passes(item: pytest.Item) -> bool:
    """Whether the test passes by itself, with its fixtures set up before and torn down after it."""
    failed = item.session.testsfailed
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
    return item.session.testsfailed == failed


def _try(mutant: Mutant, items: Sequence[pytest.Item], callers: dict[Function, list[int]]) -> Verdict:
    module = importlib.import_module(mutant.module)
    path = str(Path(module.__file__ or ""))
    function = live_function(module, mutant.qualname)
    code = mutated_code(Path(path).read_text(), path, mutant)
    if function is None or code.co_freevars != function.__code__.co_freevars:
        return Verdict.UNREACHABLE
    tests = callers.get((path, mutant.qualname))
    if not tests:
        return Verdict.NOT_CALLED
    child = os.fork()
    if child == 0:
        os._exit(_one_fails(function, code, [items[index] for index in tests]))
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return Verdict.TIMED_OUT
    return Verdict.KILLED if os.WEXITSTATUS(status) else Verdict.SURVIVED


def _one_fails(function: FunctionType, code: CodeType, items: Sequence[pytest.Item]) -> int:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(SECONDS_MAX)
    function.__code__ = code
    with _silence():
        try:
            return int(not all(map(_passes, items)))
        except BaseException:  # noqa: BLE001 - whatever the mutant breaks, it is found
            return 1


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    with open(os.devnull, "w") as nowhere:
        for number in (1, 2):
            os.dup2(nowhere.fileno(), number)
        yield


def live_function(module: Any, qualname: str) -> FunctionType | None:
    """The function object of that name as it runs: behind a property, a class method or a wrapper that names it."""
    found: Any = module
    for part in qualname.split("."):
        found = vars(found).get(part)
        if found is None:
            return None
    for attribute in ("fget", "func", "__func__", "__wrapped__"):
        found = getattr(found, attribute, found)
    return found if isinstance(found, FunctionType) else None
