"""A stream from a topic to Parquet, killed with -9 and its JVM with it, and started again from its checkpoint, again and again.

Each time it is killed when its table has grown by some batches since it began, which chance says; the last time it is let run.
"""

import itertools
import random
import time
from pathlib import Path

from tests.pipeline.spark_process import SparkProcess

BATCH_SECONDS_MAX = 400.0
_JOBS = "tests.pipeline.spark_jobs"


def run_killed(directory: Path, options: dict[str, str], kills: int, chance: random.Random) -> list[str]:
    """The values that stand in the table at the end, sorted. `options` say the topic and the size of a batch."""
    table, checkpoint = directory / "table", directory / "checkpoint"
    job = {"options": options, "to": str(table), "checkpoint": str(checkpoint), "columns": ["cast(value as string) v"]}
    for number in itertools.count():
        with SparkProcess(directory / f"spark-{number}") as spark:
            before = _batches(table)
            spark.begin(f"{_JOBS}:stream_to_parquet", **job)
            if number < kills:
                _until_grown(spark, table, before + chance.randint(1, 2))
                spark.kill()
                continue
            spark.result()
            return sorted(each["v"] for each in spark.run(f"{_JOBS}:table", path=str(table)))
    raise AssertionError("it counts without end")


def _until_grown(spark: SparkProcess, table: Path, batches: int) -> None:
    """Or until the stream has read all, where it was quicker than this."""
    deadline = time.monotonic() + BATCH_SECONDS_MAX
    while _batches(table) < batches and not spark.has_answered_within(0.05):
        assert time.monotonic() < deadline, f"{_batches(table)} batches, and not {batches}"


def _batches(table: Path) -> int:
    """That Spark's sink has written down as done."""
    return sum(each.name.split(".")[0].isdigit() for each in (table / "_spark_metadata").glob("*"))
