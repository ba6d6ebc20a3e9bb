"""Streams from and into a topic that are killed and come back, in real sessions of Spark; fifty times each: `benchmarks`,
`pipeline_kills` and `pipeline_source_kills`.

The tests' shared session finishes each killed stream: the first query of another session would cost ten seconds.
"""

import random
from pathlib import Path

import pytest

from tests.clients.python_client import names, publish, quiet_client
from tests.clients.server_process import Ready
from tests.pipeline.spark_process import SparkProcess
from tests.pipeline.streams.killed_stream import KilledStream
from tests.pipeline.streams.killed_streams import KilledStreams

pytestmark = [pytest.mark.clients, pytest.mark.timeout(900)]  # on a machine that is busy with others a query takes minutes


def test_streams_into_topics_that_are_killed_and_come_back_write_each_row_once(
    spark: SparkProcess, standalone: Ready, topic: str, tmp_path: Path
) -> None:
    """kill -9 of the driver, its JVM and its workers, at a random moment of a batch, under both guarantees."""
    streams = KilledStreams(standalone, topic, tmp_path, files=4, rows=400)
    streams.run_and_kill(random.Random(random.getrandbits(32)))
    streams.finish(spark, files_of_a_batch=4)
    streams.check()


def test_a_stream_from_a_topic_that_is_killed_and_comes_back_has_each_message_once(
    spark: SparkProcess, standalone: Ready, options: dict[str, str], topic: str, tmp_path: Path
) -> None:
    client = quiet_client(standalone.broker_url)
    try:
        publish(client, topic, 80)
    finally:
        client.close()
    asked = {**options, "topic": topic, "startingOffsets": "earliest", "pollTimeoutMs": "300000"}
    stream = KilledStream(tmp_path, {**asked, "maxMessagesPerTrigger": "16", "predefinedSubscription": "stream"})
    stream.run_and_kill(random.Random(random.getrandbits(32)))
    assert stream.finish(spark) == sorted(names(0, 80))
