"""What tests ask of Spark, as a user's program would: run in Spark's process, returned as plain values.

`spark.run("tests.pipeline.spark_jobs:rows", options={...})` of the fixture `spark`.
"""

from typing import Any

from pyspark.sql import SparkSession


def rows(spark: SparkSession, options: dict[str, str], schema: str = "", order: str = "") -> list[dict[str, Any]]:
    """A batch, as dictionaries; bytes are bytes, times have UTC as their zone."""
    reader = spark.read.format("pulsar").options(**options)
    frame = (reader.schema(schema) if schema else reader).load()
    return [each.asDict(recursive=True) for each in (frame.orderBy(order) if order else frame).collect()]


def count(spark: SparkSession, options: dict[str, str]) -> int:
    """How many rows a batch has."""
    return int(spark.read.format("pulsar").options(**options).load().count())


def types(spark: SparkSession, options: dict[str, str]) -> dict[str, str]:
    """The columns of a batch and their types."""
    schema = spark.read.format("pulsar").options(**options).load().schema
    return {field.name: field.dataType.simpleString() for field in schema.fields}


def stream_to_parquet(spark: SparkSession, options: dict[str, str], to: str, checkpoint: str, columns: list[str]) -> int:
    """What is there, by Trigger.AvailableNow; how many batches that took."""
    frame = spark.readStream.format("pulsar").options(**options).load().selectExpr(*columns)
    writer = frame.writeStream.format("parquet").option("path", to).option("checkpointLocation", checkpoint)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return len([each for each in query.recentProgress if each.numInputRows])


def table(spark: SparkSession, path: str, order: str = "") -> list[dict[str, Any]]:
    """What stands in Parquet."""
    frame = spark.read.parquet(path)
    return [each.asDict(recursive=True) for each in (frame.orderBy(order) if order else frame).collect()]
