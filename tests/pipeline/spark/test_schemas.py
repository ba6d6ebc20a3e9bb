"""Schemas of the registry as types of columns, on Spark: written by Apache's client, read as structs and numbers."""

from typing import Any

import pytest
from pulsar import Client
from pulsar.schema import Array, AvroSchema, Integer, JsonSchema, Long, Map, Record, String, StringSchema

from tests.clients.python_client import ask, quiet_client
from tests.clients.server_process import Ready
from tests.pipeline.spark_process import JobFailed, SparkProcess

JOBS = "tests.pipeline.spark_jobs"


class Order(Record):  # type: ignore[misc]  # the client has no types
    """First schema of the topic."""

    id = Long()
    name = String()
    tags = Array(String())
    counts = Map(Integer())


class OrderNow(Record):  # type: ignore[misc]
    """With a field more."""

    _avro_name = "Order"
    id = Long()
    name = String()
    tags = Array(String())
    counts = Map(Integer())
    city = String(required_default=True)


def publish(client: Client, topic: str, schema: Any, *values: Any) -> None:
    producer = client.create_producer(topic, schema=schema)
    for value in values:
        producer.send(value)
    producer.close()


def test_schemas_of_the_registry_are_types_of_columns(
    spark: SparkProcess, standalone: Ready, options: dict[str, str], topic: str
) -> None:
    avro, objects, text = f"{topic}-avro", f"{topic}-json", f"{topic}-text"
    first = Order(id=-(2**40), name="grün", tags=["a", "b"], counts={"x": 1})
    later = OrderNow(id=2, name=None, tags=[], counts={}, city="Ulm")
    client = quiet_client(standalone.broker_url)
    try:
        publish(client, avro, AvroSchema(Order), first)
        publish(client, avro, AvroSchema(OrderNow), later)
        publish(client, objects, JsonSchema(Order), first)
        publish(client, text, StringSchema(), "one", "two")
    finally:
        client.close()

    found = spark.run(f"{JOBS}:rows", options={**options, "topic": avro, "columns": "value,schema_version"})
    expected = {"id": -(2**40), "name": "grün", "tags": ["a", "b"], "counts": {"x": 1}}
    assert [each["value"] for each in found] == [
        {**expected, "city": None},
        {"id": 2, "name": None, "tags": [], "counts": {}, "city": "Ulm"},
    ]
    assert [each["schema_version"] for each in found] == [0, 1]
    early = spark.run(f"{JOBS}:rows", options={**options, "topic": avro, "columns": "value", "schemaVersion": "0"})
    assert [each["value"] for each in early] == [expected, {"id": 2, "name": None, "tags": [], "counts": {}}]

    [as_json] = spark.run(f"{JOBS}:rows", options={**options, "topic": objects, "columns": "value"})
    assert as_json["value"] == expected
    texts = spark.run(f"{JOBS}:rows", options={**options, "topic": text, "columns": "value"})
    assert [each["value"] for each in texts] == ["one", "two"]
    raw = spark.run(f"{JOBS}:types", options={**options, "topic": avro, "values": "raw"})
    assert raw["value"] == "binary"
    with pytest.raises(JobFailed, match=r"different schemas.*values=raw"):
        spark.run(f"{JOBS}:types", options={**options, "topics": f"{avro},{text}"})


class Swapped(Record):  # type: ignore[misc]
    """The fields of `Pair` the other way."""

    text = String(required=True)
    number = Integer(required=True)


class Pair(Record):  # type: ignore[misc]
    """Schema of the topic before the topic was deleted."""

    number = Integer(required=True)
    text = String(required=True)


def test_a_topic_that_was_deleted_and_made_again_is_read_by_its_own_schema(
    spark: SparkProcess, standalone: Ready, options: dict[str, str], topic: str
) -> None:
    """The new schema has the version number of the old one, in a session that knows the old one."""
    asked, path = {**options, "topic": topic, "columns": "value"}, topic.replace("://", "/")
    for kind, number in ((Pair, 1), (Swapped, 2)):
        client = quiet_client(standalone.broker_url)
        try:
            publish(client, topic, AvroSchema(kind), kind(number=number, text="t"))
        finally:
            client.close()
        for _ in range(4):  # by whichever of Spark's processes
            assert spark.run(f"{JOBS}:rows", options=asked) == [{"value": {"number": number, "text": "t"}}]
        ask(standalone, f"{path}?force=true", None, "DELETE")
