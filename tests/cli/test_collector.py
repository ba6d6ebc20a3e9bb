"""The cycle collector of a server: off while it starts, at work when it is ready, and not on what was made before."""

import gc
from collections.abc import Iterator

import pytest

from cli import collector


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    threshold = gc.get_threshold()
    yield
    gc.set_threshold(*threshold)
    gc.unfreeze()
    gc.enable()


def test_it_is_off_until_the_server_is_ready_and_on_then() -> None:
    collector.off_while_starting()
    assert not gc.isenabled()
    collector.settle()
    assert gc.isenabled()
    assert gc.get_freeze_count() > 10_000
    assert gc.get_threshold()[0] == collector.ALLOCATIONS_BETWEEN_RUNS
