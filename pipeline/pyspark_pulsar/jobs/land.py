"""land: what came to topics since the last run, to Parquet. Every batch appears at one stroke, and once.

A batch is written beside the data, under a name that readers of Parquet pass over, and renamed to `data/batch=N` when it is
whole: that is there or not. A run that died, for want of space or anything else, leaves the batch that it was at to the next
run, which reads the same messages again: its offsets are in `checkpoint`. Needs a file system that renames at one stroke
(local, HDFS).
"""

import argparse
import json
from typing import Any

from ..errors import PipelineError
from .progress import Progress, SparkProgress
from .report import Report, Table
from .spark_errors import reason

_WHOLE, _HALF = "data/batch={:09}", "data/_half-{:09}"


class NotLanded(PipelineError):
    """A run that ended before its time: where to, which topics, up to which position, and why."""


def add_arguments(job: argparse.ArgumentParser) -> None:
    job.add_argument("--topics", required=True, help="with commas between")
    job.add_argument("--to", required=True, metavar="DIRECTORY", help="data/ and checkpoint/ are made in it")
    job.add_argument("--max-messages", type=int, default=1_000_000, help="of one batch, about")


def run(arguments: argparse.Namespace, given: dict[str, str], spark: Any) -> Report:
    """Until what is there now is landed. Errors are those of the source, and NotLanded."""
    if arguments.dry_run:
        return _planned(spark, {**given, "topics": arguments.topics}, arguments.to)
    options = {**given, "topics": arguments.topics, "maxMessagesPerTrigger": str(arguments.max_messages)}
    with SparkProgress(spark.sparkContext, Progress("land")):
        return _landed(spark, options, arguments.to)


def _landed(spark: Any, options: dict[str, str], to: str) -> Report:
    _check_target(spark, to)
    _check_goes_on(spark, to)
    landed: list[tuple[int, int]] = []

    def write(frame: Any, batch: int) -> None:
        landed.append((batch, land_batch(frame, batch, to)))

    stream = spark.readStream.format("pulsar").options(**{"startingOffsets": "earliest", **options}).load()
    writer = stream.writeStream.foreachBatch(write).option("checkpointLocation", f"{to}/checkpoint")
    query = writer.trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    except Exception as error:
        raise NotLanded(
            f"{options['topics']} to {to}: ended {_position(query)}: {reason(str(error))}. What is under data/ is whole; "
            "run it again when that is mended, and it goes on there"
        ) from error
    facts = {"topics": options["topics"], "to": to, "batches": len(landed), "messages": sum(count for _, count in landed)}
    return Report("land", facts, [Table("batches", ("batch", "messages"), landed, bars="messages")])


def land_batch(frame: Any, batch: int, to: str) -> int:
    """How many messages; of a batch that is there already, those that it has."""
    spark = frame.sparkSession
    whole, half = f"{to}/{_WHOLE.format(batch)}", f"{to}/{_HALF.format(batch)}"
    files, path = _file_system(spark, to)
    if not files.exists(path(whole)):
        frame.write.mode("overwrite").parquet(half)
        if not files.rename(path(half), path(whole)):
            raise OSError(f"{half} cannot be renamed to {whole}")
    return int(spark.read.schema(frame.schema).parquet(whole).count())


def _check_target(spark: Any, to: str) -> None:
    """Before anything is read. NotLanded."""
    try:
        files, path = _file_system(spark, to)
        for each in (f"{to}/data", f"{to}/data/_writable"):
            if not files.mkdirs(path(each)):
                raise OSError("it cannot be made")
        files.delete(path(f"{to}/data/_writable"), True)
    except Exception as error:
        raise NotLanded(f"--to {to}: nothing can be written there: {reason(str(error))}") from error


def _check_goes_on(spark: Any, to: str) -> None:
    """Batches are known by their numbers, which begin anew with a checkpoint: those that are there would hide others."""
    files, path = _file_system(spark, to)
    landed = files.globStatus(path(f"{to}/data/batch=*")) or ()
    if len(landed) and not files.exists(path(f"{to}/checkpoint/offsets")):
        raise NotLanded(
            f"--to {to}: there are {len(landed)} batches under data/ and no checkpoint/ that says what is in them: "
            "bring it back, or land in another place"
        )


def _file_system(spark: Any, to: str) -> tuple[Any, Any]:
    """Hadoop's, of that place: the same by which Spark writes."""
    hadoop = spark._jvm.org.apache.hadoop.fs
    path = hadoop.Path
    return path(to).getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()), path


def _position(query: Any) -> str:
    """Behind which nothing was landed by this run, topic by topic."""
    try:
        progress = query.lastProgress
        found = json.loads(progress["sources"][0]["endOffset"])["topics"] if progress else {}
    except (TypeError, KeyError, ValueError):
        found = {}
    return "after " + ", ".join(f"{topic} {place}" for topic, place in found.items()) if found else "before its first batch"


def _planned(spark: Any, options: dict[str, str], to: str) -> Report:
    """What there is to land, without the limits of a batch and without what earlier runs landed: nothing is written."""
    of_batches = {name: value for name, value in options.items() if name.lower() != "predefinedsubscription"}
    frame = spark.read.format("pulsar").options(**of_batches).option("columns", "topic").load()
    counts = [(row["topic"], row["count"]) for row in frame.groupBy("topic").count().orderBy("topic").collect()]
    facts = {"topics": options["topics"], "to": to, "messages in the topics": sum(count for _, count in counts)}
    return Report("land", facts, [Table("by topic", ("topic", "messages"), counts, bars="messages")])
