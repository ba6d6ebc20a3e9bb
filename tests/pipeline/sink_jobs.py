"""What tests ask of Spark's sink and of the jobs, as a user's program would: run in Spark's process (see `spark_process`)."""

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f


def numbered(spark: SparkSession, rows: int, partitions: int) -> DataFrame:
    """Rows of every column that a message has, made of their numbers."""
    frame = spark.range(0, rows, 1, partitions)
    text = f.col("id").cast("string")
    return frame.select(
        f.concat(f.lit("k"), (f.col("id") % 7).cast("string")).alias("key"),
        f.concat(f.lit("value "), text).cast("binary").alias("value"),
        f.create_map(f.lit("number"), text, f.lit("kind"), f.lit("test")).alias("properties"),
        f.timestamp_millis(f.lit(1_700_000_000_000) + f.col("id")).alias("event_time"),
    )


def write_range(spark: SparkSession, options: dict[str, str], rows: int, partitions: int = 2) -> None:
    """`numbered` to a topic."""
    numbered(spark, rows, partitions).write.format("pulsar").options(**options).mode("append").save()


def write_rows(spark: SparkSession, options: dict[str, str], rows: list[tuple[Any, ...]], schema: str) -> None:
    """These very rows, in one task."""
    spark.createDataFrame(rows, schema).coalesce(1).write.format("pulsar").options(**options).mode("append").save()
