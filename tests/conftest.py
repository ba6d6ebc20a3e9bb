"""Settings of all test runs: hypothesis has no deadline (a loaded machine is not a bug), and fixed examples in CI. Logs that a
test sends elsewhere come back after it.
"""

import logging
import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests import workers

settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.hookimpl(trylast=True)  # after they were shuffled
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    workers.order(config, items)


@pytest.hookimpl(optionalhook=True)  # of xdist's
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    return workers.scheduler(config, log)


@pytest.fixture(autouse=True)
def restored_logs() -> Iterator[None]:
    """Level and handlers of the root logger are restored. A command that a test runs in this process sends logs to a stream
    that ends with the test; each later line would then print a traceback, and its steps would count in the tests of cost.
    """
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
