"""`df.write` and `df.writeStream` in a real session of Spark, against a real standalone."""

from typing import Any

import pytest

from tests.clients.server_process import Ready
from tests.pipeline.spark_process import JobFailed, SparkProcess
from tests.pipeline.written_topics import made, messages, values

pytestmark = [pytest.mark.clients, pytest.mark.timeout(900)]  # on a machine that is busy with others a query takes minutes
JOBS = "tests.pipeline.sink_jobs"


def test_written_rows_are_read_with_their_key_properties_and_time(
    spark: SparkProcess, standalone: Ready, options: dict[str, str], topic: str
) -> None:
    made(standalone, topic, partitions=3)
    given = {**options, "topic": topic, "pulsar.producer.compressionType": "zstd"}
    spark.run(f"{JOBS}:write_range", options=given, rows=3000)
    found: list[dict[str, Any]] = []
    keys = []
    for partition in range(3):
        part = messages(standalone, f"{topic}-partition-{partition}", ("key", "value", "properties", "event_time"))
        keys += list({each["key"] for each in part})
        found += part
    assert len(keys) == len(set(keys)) == 7  # each key in one partition
    found.sort(key=lambda each: int(each["value"].split()[1]))
    assert [each["value"] for each in found] == [b"value %d" % number for number in range(3000)]
    assert [each["key"] for each in found] == [b"k%d" % (number % 7) for number in range(3000)]
    assert found[42]["properties"] == [("number", "42"), ("kind", "test")]
    assert found[42]["event_time"].timestamp() == 1_700_000_000.042


def test_an_impossible_write_ends_with_an_error_that_names_the_cause(
    spark: SparkProcess, standalone: Ready, options: dict[str, str], topic: str
) -> None:
    given = {**options, "topic": topic}
    making, structs = {**given, "createTopic": "true"}, "value struct<name: string, number: int>"
    with pytest.raises(JobFailed, match=r"column value is struct<.*use valueSchema=avro or valueSchema=json"):
        spark.run(f"{JOBS}:write_rows", options=making, rows=[(("a", 1),)], schema=structs)
    with pytest.raises(JobFailed, match=f"{topic}: .*createTopic=true"):  # which was not made just now
        spark.run(f"{JOBS}:write_range", options=given, rows=1)
    with pytest.raises(JobFailed, match="column amount: there is no place for it"):
        spark.run(f"{JOBS}:write_rows", options=given, rows=[("a", 1)], schema="value string, amount int")
    with pytest.raises(JobFailed, match="option garantee: not known"):
        spark.run(f"{JOBS}:write_range", options={**given, "garantee": "none"}, rows=1)
    made(standalone, topic)
    with pytest.raises(JobFailed, match="option writeId: is needed"):
        spark.run(f"{JOBS}:write_range", options={**given, "guarantee": "deduplication"}, rows=1)
    with pytest.raises(JobFailed, match=r"column topic: null in a row"):
        spark.run(f"{JOBS}:write_rows", options=options, rows=[("a", topic), ("b", None)], schema="value string, topic string")


def test_structs_are_written_with_a_schema_and_rows_to_the_topics_that_they_name(
    spark: SparkProcess, standalone: Ready, options: dict[str, str], topic: str
) -> None:
    made(standalone, topic)
    made(standalone, f"{topic}-other")
    rows = [(("a", index), topic if index % 2 else f"{topic}-other") for index in range(6)]
    schema = "value struct<name: string, number: bigint>, topic string"
    spark.run(f"{JOBS}:write_rows", options={**options, "valueSchema": "json"}, rows=rows, schema=schema)
    assert values(standalone, topic) == [f'{{"name":"a","number":{index}}}' for index in (1, 3, 5)]
    assert values(standalone, f"{topic}-other") == [f'{{"name":"a","number":{index}}}' for index in (0, 2, 4)]
