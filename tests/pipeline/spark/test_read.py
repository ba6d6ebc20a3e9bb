"""Topics as tables, on Spark itself against a started standalone: what is published is what a query has."""

import pytest

from tests.clients.python_client import names, published
from tests.clients.server_process import Ready
from tests.pipeline.spark_process import JobFailed, SparkProcess

JOBS = "tests.pipeline.spark_jobs"


def texts(found: list[dict[str, bytes]]) -> list[str]:
    return [each["value"].decode() for each in found]


def test_a_topic_is_a_table_of_its_messages(
    spark: SparkProcess, standalone: Ready, options: dict[str, str], topic: str
) -> None:
    published(standalone, topic, 100, batching=True)
    found = spark.run(f"{JOBS}:rows", options={**options, "topic": topic})
    assert texts(found) == names(0, 100)
    assert [each["index"] for each in found] == list(range(100))
    assert {each["producer"] for each in found} != {None}
    assert all(each["properties"] == {} and each["topic"] == topic and each["key"] is None for each in found)


def test_columns_that_every_message_has_are_not_nullable_unless_the_frame_says_otherwise(
    spark: SparkProcess, standalone: Ready, options: dict[str, str], topic: str
) -> None:
    published(standalone, topic, 3, batching=True)
    asked = {**options, "topic": topic}
    assert spark.run(f"{JOBS}:never_null", options=asked) == [
        *("properties", "topic", "message_id", "message_id.ledger_id", "message_id.entry_id", "message_id.batch_index"),
        *("publish_time", "sequence_id"),
    ]
    place = "message_id struct<ledger_id: bigint not null, entry_id: bigint, batch_index: int>"
    whole = spark.run(f"{JOBS}:rows", options=asked)
    found = spark.run(f"{JOBS}:rows", options=asked, schema=f"value binary not null, {place}, topic string")
    assert found == [{name: each[name] for name in ("value", "message_id", "topic")} for each in whole]
    with pytest.raises(JobFailed, match="column key is said not to be null, and is null in a message"):
        spark.run(f"{JOBS}:rows", options=asked, schema="key binary not null")


def test_a_topic_that_is_not_there_is_named(spark: SparkProcess, options: dict[str, str], topic: str) -> None:
    with pytest.raises(JobFailed, match=topic):
        spark.run(f"{JOBS}:rows", options={**options, "topic": topic})


def test_a_stream_started_again_goes_on_where_it_was(
    spark: SparkProcess, standalone: Ready, options: dict[str, str], topic: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("stream")
    places = {
        "to": str(directory / "table"),
        "checkpoint": str(directory / "checkpoint"),
        "columns": ["cast(value as string) v"],
    }
    asked = {**options, "topic": topic, "startingOffsets": "earliest"}
    published(standalone, topic, 20, batching=True)
    spark.run(f"{JOBS}:stream_to_parquet", options=asked, **places)
    published(standalone, topic, 10, batching=True, first=20)
    spark.run(f"{JOBS}:stream_to_parquet", options=asked, **places)
    found = spark.run(f"{JOBS}:table", path=places["to"])
    assert sorted(each["v"] for each in found) == sorted(names(0, 30))
