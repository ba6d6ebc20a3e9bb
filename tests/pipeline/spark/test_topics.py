"""Many topics at once, and topics and partitions that come while a stream runs, on Spark."""

from collections import Counter
from pathlib import Path

import pytest

from tests.clients.python_client import ask, names, published, until
from tests.clients.server_process import Ready
from tests.pipeline.chunk_sender import send_chunks
from tests.pipeline.spark_process import SparkProcess

JOBS = "tests.pipeline.spark_jobs"


def batches_in(table: Path) -> int:
    return sum(each.name.isdigit() for each in (table / "_spark_metadata").glob("*"))


def test_topics_and_partitions_that_come_while_a_stream_runs_are_read_from_their_first_message(
    spark: SparkProcess, standalone: Ready, options: dict[str, str], topic: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path, directory = topic.replace("://", "/"), tmp_path_factory.mktemp("late")
    ask(standalone, f"{path}-p/partitions", 1, "PUT")
    published(standalone, f"{topic}-p", 10)
    spark.begin(
        f"{JOBS}:stream_until",
        options={**options, "topicsPattern": f"{topic}-.*", "startingOffsets": "earliest"},
        to=str(directory / "table"),
        checkpoint=str(directory / "checkpoint"),
        columns=["cast(value as string) v", "topic"],
        rows=40,
        seconds_max=400.0,
    )
    until(lambda: batches_in(directory / "table") > 0, 400)
    published(standalone, f"{topic}-new", 10, first=10)
    ask(standalone, f"{path}-p/partitions", 3, "POST")
    published(standalone, f"{topic}-p-partition-1", 10, first=20)
    published(standalone, f"{topic}-p-partition-2", 10, first=30)
    assert spark.result() == 40
    found = spark.run(f"{JOBS}:table", path=str(directory / "table"))
    assert sorted(each["v"] for each in found) == sorted(names(0, 40))
    assert Counter(each["topic"].removeprefix(topic) for each in found) == {
        "-p-partition-0": 10,
        "-new": 10,
        "-p-partition-1": 10,
        "-p-partition-2": 10,
    }


def test_filters_on_topic_time_and_index_leave_unread_what_cannot_pass(
    spark: SparkProcess, standalone: Ready, options: dict[str, str], topic: str
) -> None:
    """The query would fail on data that it must not read: the last chunk of a message without the others."""
    published(standalone, f"{topic}-a", 10)
    published(standalone, f"{topic}-b", 1)
    send_chunks(standalone, f"{topic}-b", [b"one", b"two"], first=1)
    asked = {**options, "topics": f"{topic}-a,{topic}-b"}
    condition = f"topic = '{topic}-a' and index >= 4 and index < 6 and publish_time > '2020-01-01'"
    found = spark.run(f"{JOBS}:filtered", options=asked, condition=condition)
    assert [each["value"].decode() for each in found] == names(4, 2)
    assert spark.run(f"{JOBS}:filtered", options=asked, condition="publish_time < '2020-01-01'") == []


def test_a_stream_begins_at_a_time_or_an_index_and_at_a_place_for_all_partitions(
    spark: SparkProcess, standalone: Ready, options: dict[str, str], topic: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A stream without any of these options begins at the end of the topic."""
    ask(standalone, f"{topic.replace('://', '/')}/partitions", 2, "PUT")
    published(standalone, f"{topic}-partition-0", 10)
    for more, count in (
        ({"startingTime": "2020-01-01T00:00:00Z"}, 10),
        ({"startingIndex": "4"}, 6),
        ({"startingOffsets": f'{{"{topic}": "earliest"}}'}, 10),
        ({}, 0),
    ):
        directory = tmp_path_factory.mktemp("begun")
        places = {"to": str(directory / "table"), "checkpoint": str(directory / "checkpoint")}
        assert sum(spark.run(f"{JOBS}:stream_sizes", options={**options, "topic": topic, **more}, **places)) == count
