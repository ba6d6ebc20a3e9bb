"""land: what came to topics since the last run, to Parquet. Every batch appears at one stroke, and once.

A batch is written beside the data, under a name that readers of Parquet pass over, and renamed to `data/batch=N` when it is
whole: that is there or not. A run that died, for want of space or anything else, leaves the batch that it was at to the next
run, which reads the same messages again: its offsets are in `checkpoint`. Needs a file system that renames at one stroke
(local, HDFS).
"""

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from .report import Report, Table

_WHOLE, _HALF = "data/batch={:09}", "data/_half-{:09}"


def run(spark: SparkSession, options: dict[str, str], to: str) -> Report:
    """Until what is there now is landed. Errors are those of the source and of the file system."""
    landed: list[tuple[int, int]] = []

    def write(frame: DataFrame, batch: int) -> None:
        landed.append((batch, land_batch(frame, batch, to)))

    stream = spark.readStream.format("pulsar").options(**{"startingOffsets": "earliest", **options}).load()
    query = (
        stream.writeStream.foreachBatch(write)
        .option("checkpointLocation", f"{to}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    facts = {"topics": options["topics"], "to": to, "batches": len(landed), "messages": sum(count for _, count in landed)}
    return Report("land", facts, [Table("batches", ("batch", "messages"), landed, bars="messages")])


def land_batch(frame: DataFrame, batch: int, to: str) -> int:
    """How many messages; of a batch that is there already, those that it has."""
    spark = frame.sparkSession
    whole, half = f"{to}/{_WHOLE.format(batch)}", f"{to}/{_HALF.format(batch)}"
    files, path = _file_system(spark, to)
    if not files.exists(path(whole)):
        frame.write.mode("overwrite").parquet(half)
        if not files.rename(path(half), path(whole)):
            raise OSError(f"{half} cannot be renamed to {whole}")
    return int(spark.read.schema(frame.schema).parquet(whole).count())


def _file_system(spark: Any, to: str) -> tuple[Any, Any]:
    """Hadoop's, of that place: the same by which Spark writes."""
    hadoop = spark._jvm.org.apache.hadoop.fs
    path = hadoop.Path
    return path(to).getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()), path


def plan(spark: SparkSession, options: dict[str, str], to: str) -> Report:
    """What there is to land, without the limits of a batch and without what earlier runs landed: nothing is written."""
    given = {name: value for name, value in options.items() if name != "maxMessagesPerTrigger"}
    count = spark.read.format("pulsar").options(**given).option("columns", "sequence_id").load().count()
    return Report("land", {"topics": options["topics"], "to": to, "messages in the topics": count})
