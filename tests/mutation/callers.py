"""Functions that each test calls, learnt from one run of all tests without a mutant, and kept on disk for the next run.

Each function of the modules notes its name when it is called: its code begins with one more statement. This costs a test next
to nothing, so that the seconds measured here are those that the test takes with a mutant.
"""

import ast
import hashlib
import importlib
import json
import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.mutation.items import passes, silence
from tests.mutation.live import code_of, live_function
from tests.mutation.mutants import functions_of

SECONDS_MAX = 1500
"""Time that all tests of a layer may take."""
NOTE = "_called_by_tests_"
"""The name in a module's globals of the set that its functions add theirs to."""


@dataclass(frozen=True, slots=True)
class Callers:
    """The tests that pass without a mutant, by their ids."""

    seconds: dict[str, float]
    functions: dict[str, list[str]]
    """Functions that each test calls, as `module:qualname`."""

    def of(self, module: str, qualname: str) -> list[str]:
        """The tests that call this function, the quickest first; one with parameters again after all others."""
        function = f"{module}:{qualname}"
        turns = Counter[str]()
        places = {}
        for test in sorted(
            (each for each, called in self.functions.items() if function in called), key=self.seconds.__getitem__
        ):
            turns[test.partition("[")[0]] += 1
            places[test] = turns[test.partition("[")[0]]
        return sorted(places, key=places.__getitem__)


def callers_of(modules: Sequence[str], items: Sequence[pytest.Item], kept: Path | None) -> Callers:
    """Callers kept in the folder `kept` by an earlier run with the same modules and tests, or learnt now."""
    if kept is None:
        return _learnt(modules, items)
    file = kept / f"callers-{_digest(modules, items)}.json"
    if not file.exists():
        found = _learnt(modules, items)
        kept.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"seconds": found.seconds, "functions": found.functions}))
    return Callers(**json.loads(file.read_text()))


def _digest(modules: Sequence[str], items: Sequence[pytest.Item]) -> str:
    digest = hashlib.sha256("\0".join(item.nodeid for item in items).encode())
    for path in sorted(
        {Path(importlib.import_module(name).__file__ or "") for name in modules} | {item.path for item in items}
    ):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _learnt(modules: Sequence[str], items: Sequence[pytest.Item]) -> Callers:
    """Learns in a fork, so that nothing which the tests leave behind is there when the mutants are tried."""
    with tempfile.NamedTemporaryFile() as room:
        child = os.fork()
        if child == 0:
            signal.alarm(SECONDS_MAX)
            with silence():
                seconds, functions = _observed(modules, items)
            Path(room.name).write_text(json.dumps({"seconds": seconds, "functions": functions}))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            raise RuntimeError(f"the tests did not end by themselves without a mutant (status {status})")
        return Callers(**json.loads(Path(room.name).read_text()))


def _observed(modules: Sequence[str], items: Sequence[pytest.Item]) -> tuple[dict[str, float], dict[str, list[str]]]:
    called: set[str] = set()
    for name in modules:
        _make_noted(name, called)
    seconds, functions = {}, {}
    for item in items:
        called.clear()
        began = time.monotonic()
        if passes(item):
            seconds[item.nodeid] = time.monotonic() - began
            functions[item.nodeid] = sorted(called)
    return seconds, functions


def _make_noted(name: str, called: set[str]) -> None:
    """Put code that notes the call into each function of the module that can be replaced."""
    module = importlib.import_module(name)
    path = module.__file__ or ""
    tree = ast.parse(Path(path).read_text())
    functions = dict(functions_of(tree))
    for qualname, function in functions.items():
        function.body.insert(int(ast.get_docstring(function) is not None), _note(f"{name}:{qualname}"))
    setattr(module, NOTE, called)
    code = compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)
    for qualname in functions:
        live, noted = live_function(module, qualname), code_of(code, qualname)
        if live is not None and live.__code__.co_freevars == noted.co_freevars:
            live.__code__ = noted


def _note(function: str) -> ast.stmt:
    return ast.parse(f"{NOTE}.add({function!r})").body[0]
