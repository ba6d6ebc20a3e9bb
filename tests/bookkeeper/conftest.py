"""A failure that nobody took fails the test: the test forgot a future, or the client did not tell its caller."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def no_failure_that_nobody_took(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """asyncio logs such a failure when it frees the future."""
    yield
    gc.collect(0)
    said = [record.getMessage() for when in ("setup", "call") for record in caplog.get_records(when)]
    assert [each for each in said if "never retrieved" in each] == []
