"""One test of a pytest run, by itself and without a word."""

import contextlib
import os
from collections.abc import Iterator

import pytest


def passes(item: pytest.Item) -> bool:
    """Whether the test passes by itself, with its fixtures set up before and torn down after it."""
    failed = item.session.testsfailed
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
    return item.session.testsfailed == failed


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Sends the output of this process nowhere from here on."""
    with open(os.devnull, "w") as nowhere:
        for number in (1, 2):
            os.dup2(nowhere.fileno(), number)
        yield
