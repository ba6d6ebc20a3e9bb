"""Machines that are checked after each step: `check_invariants` follows each call of a method from outside of them."""

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest


class _Calls:
    """Calls under way, and the machines that were called in them: checked when the outermost call has ended."""

    def __init__(self) -> None:
        self._depth = 0
        self._touched: dict[int, Any] = {}
        self.checks = 0

    def checked(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def called(machine: Any, *args: Any, **kwargs: Any) -> Any:
            self._depth += 1
            self._touched[id(machine)] = machine
            try:
                result = method(machine, *args, **kwargs)
            finally:
                self._depth -= 1
                touched = self._ended()
            if touched:
                self._check(touched)
            return result

        return called

    def _check(self, machines: list[Any]) -> None:
        self._depth += 1  # a check asks the machine itself
        try:
            for each in machines:
                each.check_invariants()
                self.checks += 1
        finally:
            self._depth -= 1
            self._touched.clear()

    def _ended(self) -> list[Any]:
        if self._depth:
            return []
        touched, self._touched = list(self._touched.values()), {}
        return touched


@contextmanager
def checked(*machines: type) -> Iterator[_Calls]:
    """Within, objects of these classes are checked after each call of a public method."""
    calls = _Calls()
    patches = [
        patch.object(machine, name, calls.checked(method))
        for machine in machines
        for name, method in vars(machine).items()
        if inspect.isfunction(method) and not name.startswith("_") and name != "check_invariants"
        if not inspect.isgeneratorfunction(method) and not inspect.iscoroutinefunction(method)
    ]
    for each in patches:
        each.start()
    try:
        yield calls
    finally:
        for each in patches:
            each.stop()


def checked_after_each_step(*machines: type) -> Any:
    """A fixture for all tests of a module. It fails when the module never made such a machine take a step."""

    @pytest.fixture(autouse=True, scope="module")
    def checked_machines(request: pytest.FixtureRequest) -> Iterator[None]:
        with checked(*machines) as calls:
            yield
        is_whole = not request.config.option.keyword and "::" not in "".join(request.config.args)
        assert calls.checks or not is_whole, f"no step of {', '.join(machine.__name__ for machine in machines)} was checked"

    return checked_machines
