"""Bookies killed and stopped under load, with spares: no error for the writer, nothing acknowledged lost."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.clients.bookie_process import BookieProcess
from tests.clients.bookies_under_fire import under_fire

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]

SPIKE_SECONDS_MAX = 20.0
"""On a machine that may be busy; how long it is on a quiet one is measured by benchmarks/bookies/under_fire.py."""
TIMEOUT_SECONDS = 20.0
STOPPED_SECONDS = 1.0
"""An answer that comes late; for one that does not come see test_bookies_and_network_client.py."""


@pytest.fixture
def bookies(tmp_path: Path, servers: str) -> Iterator[list[BookieProcess]]:
    """Three and two spares."""
    uri = f"zk+hierarchical://{servers}/ledgers"
    with ExitStack() as running:
        yield [
            running.enter_context(BookieProcess(tmp_path / f"bookie-{number}", uri, "zkTimeout=2000")).start()
            for number in range(5)
        ]


def test_a_writer_hears_nothing_of_bookies_that_are_killed_and_stopped(servers: str, bookies: list[BookieProcess]) -> None:
    async def scenario() -> None:
        async with under_fire(servers, bookies, ack=2, per_second=200, timeout_seconds=TIMEOUT_SECONDS) as fire:
            await fire.load.run_for(0.3)
            await fire.kill_all(0.4)
            await fire.stop_one(0, STOPPED_SECONDS)
            assert await fire.check() > 0
            assert max(fire.spikes) < SPIKE_SECONDS_MAX

    asyncio.run(scenario())
