"""A failure that nobody took is a mistake here: of a test that forgot a future, or of the client, whose caller was not told."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def no_failure_that_nobody_took(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """asyncio says so when it forgets the future."""
    yield
    gc.collect(0)
    said = [record.getMessage() for when in ("setup", "call") for record in caplog.get_records(when)]
    assert [each for each in said if "never retrieved" in each] == []
