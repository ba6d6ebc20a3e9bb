"""Every type of schema on Spark: written by `df.write`, registered, read as what it was; and by Apache's client."""

import datetime
from decimal import Decimal
from typing import Any

import pytest
from pulsar import MessageId
from pulsar.schema import AvroSchema, JsonSchema, Long, Record, String

from tests.clients.python_client import TIMEOUT_MS, ask, quiet_client
from tests.clients.server_process import Ready
from tests.pipeline.spark_process import JobFailed, SparkProcess

JOBS = "tests.pipeline.spark_jobs"
SINK = "tests.pipeline.sink_jobs"
UTC = datetime.UTC
TIME = datetime.datetime(2026, 11, 22, 8, 1, 2, 345_678, UTC)
STRUCT = (
    "struct<number: bigint, name: string, flag: boolean, half: double, bytes: binary, inner: struct<a: int>, list: array<int>>"
)
VALUE = (-(2**40), "grün", True, -0.5, b"\x00\xff", (7,), [1, -2])
NOTHING: tuple[Any, ...] = (None, None, None, None, None, None, [])

PRIMITIVES: dict[str, tuple[str, list[Any]]] = {
    "string": ("string", ["one", "", "grün"]),
    "boolean": ("boolean", [True, False]),
    "int8": ("tinyint", [-128, 127]),
    "int16": ("smallint", [-32768, 32767]),
    "int32": ("int", [-(2**31), 2**31 - 1]),
    "int64": ("bigint", [-(2**63), 2**63 - 1]),
    "float": ("float", [-0.5, 1.5]),
    "double": ("double", [-0.1, 1e300]),
    "date": ("timestamp", [TIME.replace(microsecond=345_000)]),
    "timestamp": ("timestamp", [TIME.replace(microsecond=345_000), datetime.datetime(1969, 12, 31, 23, tzinfo=UTC)]),
    "instant": ("timestamp", [TIME, datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)]),
    "time": ("bigint", [86_399_999]),
    "local_time": ("bigint", [86_399_999_999_999]),
    "local_date": ("date", [datetime.date(2026, 11, 22), datetime.date(1900, 1, 1)]),
    "local_date_time": ("timestamp_ntz", [TIME.replace(tzinfo=None), datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999)]),
}


def as_plain(found: Any) -> Any:
    """A struct's values in their order."""
    return tuple(as_plain(each) for each in found.values()) if isinstance(found, dict) else found


def in_utc(value: Any, ddl: str) -> Any:
    """Spark hands over a timestamp as the local time of the driver."""
    return value.astimezone(UTC) if ddl == "timestamp" else value


def test_every_primitive_is_there_and_back(spark: SparkProcess, standalone: Ready, options: dict[str, str], topic: str) -> None:
    cases = [
        (
            {**options, "topic": f"{topic}-{kind}", "valueSchema": kind, "createTopic": "true"},
            f"value {ddl}",
            [(each,) for each in given],
        )
        for kind, (ddl, given) in PRIMITIVES.items()
    ]
    found = spark.run(f"{SINK}:there_and_back", cases=cases)
    for (kind, (ddl, given)), (kinds, rows) in zip(PRIMITIVES.items(), found, strict=True):
        assert kinds["value"] == ddl, kind
        assert [in_utc(each["value"], ddl) for each in rows] == given, kind
        registered = ask(standalone, f"schemas/public/default/{topic.rpartition('/')[2]}-{kind}/schema")
        assert registered["type"].lower() == kind


@pytest.mark.parametrize("kind", ["avro", "json", "protobuf_native"])
def test_a_struct_is_there_and_back(spark: SparkProcess, options: dict[str, str], topic: str, kind: str) -> None:
    asked = {**options, "topic": topic, "valueSchema": kind, "createTopic": "true"}
    [(kinds, rows)] = spark.run(f"{SINK}:there_and_back", cases=[(asked, f"value {STRUCT}", [(VALUE,), (NOTHING,), (None,)])])
    assert kinds["value"] == STRUCT.replace(": ", ":").replace(", ", ",")
    assert [as_plain(each["value"]) for each in rows] == [VALUE, NOTHING, None]


@pytest.mark.parametrize("kind", ["avro", "json"])
def test_decimals_and_maps_are_there_and_back(spark: SparkProcess, options: dict[str, str], topic: str, kind: str) -> None:
    schema = "struct<price: decimal(38,4), counts: map<string,struct<price: decimal(9,2)>>>"
    rows = [((Decimal("-12345678901234567890123456.1234"), {"a": (Decimal("0.01"),), "b": None}),), ((None, {}),)]
    asked = {**options, "topic": topic, "valueSchema": kind, "createTopic": "true"}
    [(kinds, found)] = spark.run(f"{SINK}:there_and_back", cases=[(asked, f"value {schema}", rows)])
    assert kinds["value"] == schema.replace(": ", ":").replace(", ", ",")
    first, second = (each["value"] for each in found)
    assert first == {"price": rows[0][0][0], "counts": {"a": {"price": Decimal("0.01")}, "b": None}}
    assert second == {"price": None, "counts": {}}


@pytest.mark.parametrize("kind", ["avro", "json"])
def test_times_with_and_without_a_zone_are_there_and_back_also_in_lists(
    spark: SparkProcess, options: dict[str, str], topic: str, kind: str
) -> None:
    fields = {"zoned": "timestamp", "local": "timestamp_ntz", "day": "date"}
    schema = ", ".join([f"{name}: {ddl}, {name}s: array<{ddl}>" for name, ddl in fields.items()])
    local, day = TIME.replace(tzinfo=None), TIME.date()
    value = (TIME, [TIME, None], local, [local], day, [day, datetime.date(1969, 12, 31)])
    asked = {**options, "topic": topic, "valueSchema": kind, "createTopic": "true"}
    [(kinds, [row])] = spark.run(f"{SINK}:there_and_back", cases=[(asked, f"value struct<{schema}>", [(value,)])])
    assert kinds["value"] == f"struct<{schema}>".replace(": ", ":").replace(", ", ",")
    zoned, zoned_list, *others = as_plain(row["value"])
    assert [each and in_utc(each, "timestamp") for each in (zoned, *zoned_list)] == [TIME, TIME, None]
    assert tuple(others) == value[2:]


@pytest.mark.parametrize("encoding", ["separated", "inline"])
def test_pairs_of_key_and_value_are_there_and_back(
    spark: SparkProcess, standalone: Ready, options: dict[str, str], topic: str, encoding: str
) -> None:
    asked = {
        **options,
        "topic": topic,
        "createTopic": "true",
        "keySchema": "auto",
        "valueSchema": "avro",
        "keyValueEncoding": encoding,
    }
    rows = [(-5, ("a", 1)), (2**40, (None, 2))]
    [(kinds, found)] = spark.run(
        f"{SINK}:there_and_back", cases=[(asked, "key bigint, value struct<name: string, number: int>", rows)]
    )
    assert (kinds["key"], kinds["value"]) == ("bigint", "struct<name:string,number:int>")
    assert [(each["key"], as_plain(each["value"])) for each in found] == rows
    registered = ask(standalone, f"schemas/public/default/{topic.rpartition('/')[2]}/schema")
    assert registered["type"] == "KEY_VALUE"
    assert registered["properties"]["kv.encoding.type"] == encoding.upper()


class Item(Record):  # type: ignore[misc]  # the client has no types
    """Record that is registered for `struct<name: string, number: bigint>`."""

    _avro_name = "value"
    name = String()
    number = Long()


@pytest.mark.parametrize(("kind", "schema"), [("avro", AvroSchema), ("json", JsonSchema)])
def test_apaches_client_reads_what_spark_wrote_by_its_schema(
    spark: SparkProcess, standalone: Ready, options: dict[str, str], topic: str, kind: str, schema: Any
) -> None:
    asked = {**options, "topic": topic, "valueSchema": kind, "createTopic": "true"}
    rows = [(("a", 1),), ((None, 2**40),)]
    spark.run(f"{SINK}:write_rows", options=asked, rows=rows, schema="value struct<name: string, number: bigint>")
    client = quiet_client(standalone.broker_url)
    try:
        reader = client.create_reader(topic, MessageId.earliest, schema=schema(Item))
        found = [reader.read_next(TIMEOUT_MS).value() for _ in rows]
    finally:
        client.close()
    assert [((each.name, each.number),) for each in found] == rows


class First(Record):  # type: ignore[misc]
    """First schema of the topic."""

    _avro_name = "Evolving"
    kept = Long()
    dropped = String(required_default=True)


class Second(Record):  # type: ignore[misc]
    """A field less, and one more, with a default."""

    _avro_name = "Evolving"
    kept = Long()
    added = String(default="new", required=True, required_default=True)


class Third(Record):  # type: ignore[misc]
    """Record that no reader of the others can read."""

    _avro_name = "Evolving"
    kept = String(required=True)


def test_versions_of_a_schema_are_resolved_and_what_cannot_be_is_told(
    spark: SparkProcess, standalone: Ready, options: dict[str, str], topic: str
) -> None:
    namespace = f"public/evolving-{topic.rpartition('/')[2]}"
    name = f"persistent://{namespace}/t"
    ask(standalone, f"namespaces/{namespace}", {}, "PUT")
    ask(standalone, f"namespaces/{namespace}/schemaCompatibilityStrategy", "ALWAYS_COMPATIBLE", "PUT")
    client = quiet_client(standalone.broker_url)
    try:
        for record in (First(kept=1, dropped="x"), Second(kept=2, added="y"), Third(kept="three")):
            producer = client.create_producer(name, schema=AvroSchema(type(record)))
            producer.send(record)
            producer.close()
    finally:
        client.close()
    asked = {**options, "topic": name, "columns": "value,error", "mode": "PERMISSIVE"}
    second = spark.run(f"{JOBS}:rows", options={**asked, "schemaVersion": "1"})
    assert [each["value"] for each in second] == [{"kept": 1, "added": "new"}, {"kept": 2, "added": "y"}, None]
    assert [bool(each["error"]) for each in second] == [False, False, True]
    assert "schema version 2" in second[2]["error"]
    first = spark.run(f"{JOBS}:rows", options={**asked, "schemaVersion": "0"})
    assert [each["value"] for each in first] == [{"kept": 1, "dropped": "x"}, {"kept": 2, "dropped": None}, None]
    third = spark.run(f"{JOBS}:rows", options=asked)
    assert [each["value"] for each in third] == [None, None, {"kept": "three"}]
    with pytest.raises(JobFailed, match=rf"{name} at \d+:\d+.*schema version 0.*mode=PERMISSIVE"):
        spark.run(f"{JOBS}:rows", options={**options, "topic": name})
