"""Settings of all test runs: hypothesis has no deadline (a loaded machine is not a bug), and fixed examples in CI."""

import os

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
