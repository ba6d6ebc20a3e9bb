"""Limits of a query on Spark: topics, places, times and indexes; and a batch of a stream."""

from contextlib import closing

import pulsar
import pytest

from pipeline.pyspark_pulsar.client.admin import ledgers_of, unacknowledged_of
from pipeline.pyspark_pulsar.options import parse_options
from tests.clients.python_client import ask, names, publish, published, quiet_client, until
from tests.clients.server_process import Ready
from tests.pipeline.spark_process import SparkProcess
from tests.pipeline.written_topics import access

pytestmark = pytest.mark.clients

JOBS = "tests.pipeline.spark_jobs"


def test_a_batch_is_of_one_topic_of_several_or_of_a_pattern_between_places_times_and_indexes(
    spark: SparkProcess, standalone: Ready, options: dict[str, str], topic: str
) -> None:
    """Messages 0 to 19 of one topic, each an entry, 20 to 29 of another one with two partitions."""
    ask(standalone, f"{topic.replace('://', '/')}-b/partitions", 2, "PUT")
    published(standalone, f"{topic}-a", 20)
    published(standalone, f"{topic}-b", 10, first=20)

    def found(**more: str) -> list[str]:
        rows = spark.run(f"{JOBS}:rows", options={**options, **more})
        return sorted((each["value"].decode() for each in rows), key=lambda name: int(name[1:]))

    every = spark.run(f"{JOBS}:rows", options={**options, "topic": f"{topic}-a"})
    places = [f"{each['message_id']['ledger_id']}:{each['message_id']['entry_id']}" for each in every]
    times = [int(each["publish_time"].timestamp() * 1000 + 0.5) for each in every]
    assert found(topics=f"{topic}-a,{topic}-b") == names(0, 30)
    assert found(topicsPattern=f"{topic}-.*") == names(0, 30)
    assert found(topicsPattern=f"{topic}-[b-z]") == names(20, 10)
    assert found(topic=f"{topic}-a", startingOffsets=places[4], endingOffsets=places[17]) == names(4, 13)
    assert found(topic=f"{topic}-a", startingIndex="3", endingIndex="9") == names(3, 6)
    wanted = [f"m{number}" for number, time in enumerate(times) if times[5] <= time < times[15]]
    assert found(topic=f"{topic}-a", startingTime=f"{times[5]}", endingTime=f"{times[15]}") == wanted


def test_exactly_the_messages_that_a_shared_subscription_has_not_acknowledged_are_rows(
    spark: SparkProcess, standalone: Ready, options: dict[str, str], topic: str
) -> None:
    """Some messages of batches are acknowledged, too."""
    with closing(quiet_client(standalone.broker_url)) as client:
        consumer = client.subscribe(topic, "work", pulsar.ConsumerType.Shared, batch_index_ack_enabled=True)
        publish(client, topic, 10, batching=True)
        publish(client, topic, 5, first=10)
        for number in range(15):
            message = consumer.receive(timeout_millis=60_000)
            if number not in (1, 8, 12):
                consumer.acknowledge(message)
        consumer.close()
    asked = parse_options({**options, "topic": topic}, is_stream=False).access
    until(lambda: list(unacknowledged_of(topic, "work", asked, False).parts.words) == [0b100000010])
    until(lambda: sum(each.count for each in unacknowledged_of(topic, "work", asked, False).ranges) == 2)
    found = spark.run(f"{JOBS}:rows", options={**options, "topic": topic, "unacknowledgedBy": "work", "columns": "value"})
    assert [each["value"] for each in found] == [b"m1", b"m8", b"m12"]


def test_a_batch_of_a_stream_takes_the_bytes_and_the_messages_that_it_may(
    spark: SparkProcess, standalone: Ready, options: dict[str, str], topic: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """An entry for each message: whichever limit is reached first ends the batch."""
    published(standalone, topic, 40)
    size = sum(each.size_bytes for each in ledgers_of(topic, access(standalone)))
    asked = {**options, "topic": topic, "startingOffsets": "earliest"}
    for limits, most, count in (
        ({"maxBytesPerTrigger": f"{size * 16 // 40}"}, 16, 3),
        ({"maxBytesPerTrigger": f"{size}", "maxMessagesPerTrigger": "20"}, 20, 2),
        ({"maxBytesPerTrigger": f"{size * 25 // 40}", "maxMessagesPerTrigger": "1000"}, 25, 2),
    ):
        directory = tmp_path_factory.mktemp("limits")
        places = {"to": str(directory / "table"), "checkpoint": str(directory / "checkpoint")}
        sizes = spark.run(f"{JOBS}:stream_sizes", options={**asked, **limits}, **places)
        assert (sum(sizes), len(sizes)) == (40, count)
        assert max(sizes) <= most
