"""A stream out of topics that are unloaded, rolled, trimmed and cut into more partitions, from a broker that is killed.

More rounds: `python -m tests.pipeline.streams.troubled_stream`.
"""

import random
from pathlib import Path

import pytest

from tests.clients.server_process import ServerProcess
from tests.pipeline.spark_process import missing
from tests.pipeline.streams.troubled_stream import SETTINGS, TroubledStream

pytestmark = [
    pytest.mark.clients,
    pytest.mark.timeout(1200),  # on a machine that is busy with others a query takes minutes
    pytest.mark.skipif(bool(missing()), reason=missing()),
]


def test_a_stream_of_troubled_topics_that_is_killed_and_comes_back_has_each_message_once(tmp_path: Path) -> None:
    seed = random.getrandbits(32)
    print(f"python -m tests.pipeline.streams.troubled_stream 1 {seed}")  # who sees it fail wants to see it again
    with ServerProcess(tmp_path / "server", SETTINGS) as server:
        server.start()
        TroubledStream(server, tmp_path, random.Random(seed)).run(rounds=1)
