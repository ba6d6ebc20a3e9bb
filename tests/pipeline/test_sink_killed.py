"""A stream into a topic that is killed and comes back, in real sessions of Spark."""

import random
from pathlib import Path

import pytest

from tests.clients.server_process import Ready
from tests.pipeline.killed_streams import KilledStreams
from tests.pipeline.spark_process import missing

pytestmark = [pytest.mark.clients, pytest.mark.skipif(bool(missing()), reason=missing())]


@pytest.mark.timeout(900)
def test_streams_that_are_killed_and_come_back_write_each_row_once(standalone: Ready, topic: str, tmp_path: Path) -> None:
    """kill -9 of the driver, its JVM and its workers, at a random moment of a batch; fifty times: benchmarks.pipeline_kills."""
    streams = KilledStreams(standalone, topic, tmp_path, files=5, rows=400)
    chance = random.Random(9)
    for _ in range(2):
        streams.run_and_kill(chance)
    streams.finish()
    streams.check()
