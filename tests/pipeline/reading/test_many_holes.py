"""A subscription with more holes than internal stats show and Apache's format stores: what is left of it is read exactly."""

from contextlib import closing

import pyarrow
import pytest
from pulsar import ConsumerType

from pipeline.pyspark_pulsar.client.admin import unacknowledged_of
from pipeline.pyspark_pulsar.client.split_rows import rows_of_split
from pipeline.pyspark_pulsar.holes import RANGES_MAX, Unacknowledged, of_ranges
from pipeline.pyspark_pulsar.options import SourceOptions, parse_options
from pipeline.pyspark_pulsar.plan import splits_of
from pipeline.pyspark_pulsar.rows_wanted import Wanted, wanted_batch
from pipeline.pyspark_pulsar.sink.options import parse_sink_options
from pipeline.pyspark_pulsar.sink.task import SinkTask, TaskPlace
from tests.clients.python_client import quiet_client, until
from tests.clients.server_process import Ready
from tests.pipeline.written_topics import made

pytestmark = pytest.mark.clients
MESSAGES = 2 * (RANGES_MAX + 1000)


def is_left(number: int) -> bool:
    """Every second one; of the first thousand none but one."""
    return number % 2 == 0 and (number >= 1000 or number == 500)


def acknowledged(server: Ready, options: dict[str, str], topic: str) -> None:
    """An entry for each message, and of the subscription `work` all that are not left."""
    made(server, topic)
    with closing(quiet_client(server.broker_url)) as client:
        consumer = client.subscribe(topic, "work", ConsumerType.Shared)
        task = SinkTask(
            parse_sink_options({**options, "topic": topic, "pulsar.producer.batchingMaxMessages": "1"}), TaskPlace("", 0, 0)
        )
        task.run([pyarrow.RecordBatch.from_pylist([{"value": f"{number}"} for number in range(MESSAGES)])])
        for number in range(MESSAGES):
            message = consumer.receive(timeout_millis=60_000)
            if not is_left(number):
                consumer.acknowledge(message)


def read(topic: str, left: Unacknowledged, options: SourceOptions) -> list[int]:
    found = []
    for split in splits_of(topic, left.ranges, 100_000):
        own = of_ranges(left, split.ranges)
        wanted = Wanted(("value",), options.between, parts=own.parts, done=own.done)
        for rows in rows_of_split(split, options):
            found += [int(each) for each in wanted_batch(rows, topic, wanted).column("value").to_pylist()]
    return found


def test_the_unacknowledged_messages_of_a_subscription_with_very_many_holes_are_read_exactly(
    standalone: Ready, options: dict[str, str], topic: str
) -> None:
    acknowledged(standalone, options, topic)
    asked = parse_options({**options, "topic": topic}, is_stream=False)
    expected = [number for number in range(MESSAGES) if is_left(number)]

    def left() -> Unacknowledged:
        return unacknowledged_of(topic, "work", asked.access, True)

    def entries() -> int:
        found = left()
        return sum(each.count for each in found.ranges) - sum(
            int((each.ends - each.starts).sum()) for each in found.done.values()
        )

    until(lambda: entries() == len(expected))
    found = left()
    assert len(found.ranges) <= RANGES_MAX + 1
    assert sum(len(each.starts) for each in found.done.values()) > RANGES_MAX
    assert read(topic, found, asked) == expected
