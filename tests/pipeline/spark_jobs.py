"""Jobs that tests run on Spark, as a user's program would: in Spark's process, returned as plain values.

`spark.run("tests.pipeline.spark_jobs:rows", options={...})` of the fixture `spark`.
"""

import time
import urllib.request
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession


def rows(spark: SparkSession, options: dict[str, str], schema: str = "", order: str = "") -> list[dict[str, Any]]:
    """A batch, as dictionaries; bytes are bytes, times have UTC as their zone."""
    reader = spark.read.format("pulsar").options(**options)
    frame = (reader.schema(schema) if schema else reader).load()
    return [each.asDict(recursive=True) for each in (frame.orderBy(order) if order else frame).collect()]


def count(spark: SparkSession, options: dict[str, str]) -> int:
    """Number of rows of a batch."""
    return int(spark.read.format("pulsar").options(**options).load().count())


def types(spark: SparkSession, options: dict[str, str]) -> dict[str, str]:
    """The columns of a batch and their types."""
    schema = spark.read.format("pulsar").options(**options).load().schema
    return {field.name: field.dataType.simpleString() for field in schema.fields}


def never_null(spark: SparkSession, options: dict[str, str]) -> list[str]:
    """The columns of a batch that are said not to be null, and their members."""
    found = []
    for field in spark.read.format("pulsar").options(**options).load().schema.fields:
        names = [member.name for member in getattr(field.dataType, "fields", ()) if not member.nullable]
        found += [field.name, *(f"{field.name}.{name}" for name in names)] if not field.nullable else []
    return found


def stream_to_parquet(spark: SparkSession, options: dict[str, str], to: str, checkpoint: str, columns: list[str]) -> int:
    """Writes all that is there, by Trigger.AvailableNow; returns the number of batches."""
    frame = spark.readStream.format("pulsar").options(**options).load().selectExpr(*columns)
    writer = frame.writeStream.format("parquet").option("path", to).option("checkpointLocation", checkpoint)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return len([each for each in query.recentProgress if each.numInputRows])


def table(spark: SparkSession, path: str, order: str = "") -> list[dict[str, Any]]:
    """Rows in Parquet."""
    frame = spark.read.parquet(path)
    return [each.asDict(recursive=True) for each in (frame.orderBy(order) if order else frame).collect()]


def digests(spark: SparkSession, options: dict[str, str]) -> list[tuple[int, str]]:
    """Length and MD5 of each value of a batch, in the topic's order: of messages too long to be carried over."""
    frame = spark.read.format("pulsar").options(**options).load().orderBy("message_id")
    return [tuple(each) for each in frame.selectExpr("length(value)", "md5(value)").collect()]


def filtered(spark: SparkSession, options: dict[str, str], condition: str) -> list[dict[str, Any]]:
    """A batch of which a query wants some, with filters pushed down."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = spark.read.format("pulsar").options(**options, filterPushdown="true").load().where(condition)
        return [each.asDict(recursive=True) for each in frame.collect()]
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def planned_before(spark: SparkSession, options: dict[str, str], method: str, url: str) -> list[dict[str, Any]]:
    """A batch that is planned, then something asked of the admin REST, and then it is read."""
    frame = spark.read.format("pulsar").options(**options).load()
    frame._jdf.queryExecution().executedPlan().execute().getNumPartitions()
    with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=60):
        pass
    return [each.asDict(recursive=True) for each in frame.collect()]


def planned_then(spark: SparkSession, options: dict[str, str], planned: str, go_on: str) -> list[dict[str, Any]]:
    """Plans a batch, and reads it when the test says so; named pipes tell both."""
    frame = spark.read.format("pulsar").options(**options).load()
    frame._jdf.queryExecution().executedPlan().execute().getNumPartitions()
    Path(planned).write_text("")
    Path(go_on).read_text()
    return [each.asDict(recursive=True) for each in frame.collect()]


def stream_until(
    spark: SparkSession, options: dict[str, str], to: str, checkpoint: str, columns: list[str], rows: int, seconds_max: float
) -> int:
    """A stream that runs until its table has so many rows; how many that are."""
    frame = spark.readStream.format("pulsar").options(**options).load().selectExpr(*columns)
    writer = frame.writeStream.format("parquet").option("path", to).option("checkpointLocation", checkpoint)
    query = writer.trigger(processingTime="200 milliseconds").start()
    deadline = time.monotonic() + seconds_max
    while (found := _rows_in(spark, to)) < rows and time.monotonic() < deadline and query.isActive:
        query.awaitTermination(0.2)
    if query.isActive:
        query.stop()
    query.awaitTermination()
    return found


def _rows_in(spark: SparkSession, path: str) -> int:
    """Number of rows in batches that are done."""
    return spark.read.parquet(path).count() if any(Path(path, "_spark_metadata").glob("[0-9]*")) else 0


def where(spark: SparkSession) -> tuple[str, int]:
    """The master, and how many executors there are beside the driver."""
    context = spark.sparkContext
    return str(context.master), int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1


def stream_sizes(spark: SparkSession, options: dict[str, str], to: str, checkpoint: str) -> list[int]:
    """Rows of each batch, of what is there, by Trigger.AvailableNow."""
    frame = spark.readStream.format("pulsar").options(**options).load().selectExpr("cast(value as string) v")
    writer = frame.writeStream.format("parquet").option("path", to).option("checkpointLocation", checkpoint)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return [each.numInputRows for each in query.recentProgress if each.numInputRows]


def planned(spark: SparkSession, options: dict[str, str]) -> dict[str, Any]:
    """A batch over many topics: how long its schema, its plan and its rows took, in seconds; how many tasks and rows."""
    began = time.monotonic()
    frame = spark.read.format("pulsar").options(**options).load()
    known = time.monotonic()
    tasks = frame._jdf.queryExecution().executedPlan().execute().getNumPartitions()
    cut = time.monotonic()
    found = frame.selectExpr("count(*) n", "count(distinct topic) t").first()
    read = time.monotonic()
    assert found is not None
    seconds = {"seconds_schema": known - began, "seconds_plan": cut - known, "seconds_rows": read - cut}
    return {"rows": found["n"], "topics": found["t"], "tasks": tasks} | {name: round(each, 2) for name, each in seconds.items()}


def stream_told(
    spark: SparkSession, options: dict[str, str], to: str, checkpoint: str, columns: list[str], rows: int, seconds_max: float
) -> dict[str, Any]:
    """`stream_until`, and what Spark tells of its batches: milliseconds by step, of the slowest batch and of the last."""
    frame = spark.readStream.format("pulsar").options(**options).load().selectExpr(*columns)
    writer = frame.writeStream.format("parquet").option("path", to).option("checkpointLocation", checkpoint)
    query = writer.trigger(processingTime="200 milliseconds").start()
    deadline = time.monotonic() + seconds_max
    while (found := _rows_in(spark, to)) < rows and time.monotonic() < deadline and query.isActive:
        query.awaitTermination(0.5)
    steps = [dict(each.durationMs) for each in query.recentProgress]
    query.stop()
    query.awaitTermination()
    slowest = max(steps, key=lambda each: each["triggerExecution"], default={})
    return {"rows": found, "triggers": len(steps), "slowest_ms": slowest, "last_ms": steps[-1] if steps else {}}
