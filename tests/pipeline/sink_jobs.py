"""Jobs that tests run on Spark's sink, as a user's program would: in Spark's process (see `spark_process`)."""

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


def stream_files(
    spark: SparkSession, directory: str, streams: list[tuple[str, dict[str, str]]], files_of_a_batch: int = 1
) -> None:
    """All files to several topics at the same time: a checkpoint and the sink's options of each. The first error ends all."""
    queries = []
    try:
        for checkpoint, options in streams:
            reader = spark.readStream.schema("value string").option("maxFilesPerTrigger", f"{files_of_a_batch}")
            writer = reader.parquet(directory).writeStream.format("pulsar").options(**options)
            queries.append(writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start())
        while not all([each.awaitTermination(0.2) for each in queries]):  # noqa: C419 - each raises what it failed with
            continue
    finally:
        for each in queries:
            each.stop()


_MESSAGES = (
    "key binary, value binary, properties map<string,string>, event_time timestamp, topic string, "
    "message_id struct<ledger_id: bigint, entry_id: bigint, batch_index: int>, producer string, sequence_id bigint"
)


def write_messages(spark: SparkSession, rows: list[tuple[Any, ...]], path: str) -> None:
    """Rows as `land` leaves them, in as many files as Spark likes."""
    spark.createDataFrame(rows, _MESSAGES).write.parquet(path)


def found_by_reconcile(spark: SparkSession, expected: str, found: str, by: list[str], scope: str) -> list[dict[str, Any]]:
    """The findings for two places with Parquet."""
    from pipeline.pyspark_pulsar.jobs.on_spark.comparison import Comparison, findings

    sides = [spark.read.parquet(path) for path in (expected, found)]
    return [row.asDict(recursive=True) for row in findings(sides[0], sides[1], Comparison(tuple(by), scope)).collect()]


def command(spark: SparkSession, words: list[str]) -> tuple[int, str, str]:
    """The command line of the jobs, in this session: exit code, what it printed, and what it complained of."""
    import contextlib
    import io

    from pipeline.pyspark_pulsar.jobs.command_line import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    return code, out.getvalue(), err.getvalue()


def write_sized(spark: SparkSession, options: dict[str, str], rows: int, size: int) -> None:
    """Rows of one size with a key, made by Spark itself, in two tasks."""
    frame = spark.range(0, rows, 1, 2)
    value = f.rpad(f.col("id").cast("string"), size, "x").cast("binary")
    key = f.concat(f.lit("key"), (f.col("id") % 1000).cast("string"))
    frame.select(key.alias("key"), value.alias("value")).write.format("pulsar").options(**options).mode("append").save()


def write_random(spark: SparkSession, options: dict[str, str], rows: int, size: int) -> None:
    """Values of that many bytes, in which no file format finds anything to leave out."""
    import random

    chance = random.Random(2)
    write_rows(spark, options, [(bytearray(chance.randbytes(size)),) for _ in range(rows)], "value binary")


def there_and_back(
    spark: SparkSession, cases: list[tuple[dict[str, str], str, list[tuple[Any, ...]]]]
) -> list[tuple[dict[str, str], list[dict[str, Any]]]]:
    """Types and rows that are read after writing, for each case of options of the sink, a schema and rows."""
    found = []
    for options, schema, rows in cases:
        write_rows(spark, options, rows, schema)
        asked = {
            name: each
            for name, each in options.items()
            if name.endswith(".url") or name in ("topic", "pollTimeoutMs") or ".client." in name
        }
        frame = spark.read.format("pulsar").options(**asked).load()
        kinds = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
        columns = ["key", "value"] if "key" in schema.split(",")[0] else ["value"]
        found.append((kinds, [each.asDict(recursive=True) for each in frame.select(*columns).collect()]))
    return found


def land_twice(spark: SparkSession, to: str, fails: bool = False) -> list[int]:
    """A batch, by a run that another one overtakes while it writes: how many messages each says that it has.

    `fails`: what it has written is away, and it cannot go on.
    """
    from pipeline.pyspark_pulsar.jobs.on_spark.landed_place import LandedPlace

    counts: list[int] = []
    frame = spark.range(3)

    class Overtaken:
        """A frame whose writer is done when the other one is."""

        schema, write = frame.schema, property(lambda self: self)

        def parquet(self, path: str) -> None:
            frame.write.parquet(path)
            counts.append(LandedPlace(spark, to).land(frame, 0))
            if fails:
                raise OSError("it is not there any more: the other one's was landed, and it cleaned up")
            frame.write.mode("ignore").parquet(path)

    counts.append(LandedPlace(spark, to).land(Overtaken(), 0))
    return counts
