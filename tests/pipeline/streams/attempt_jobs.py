"""Streams of which a task has two attempts at once: jobs that tests run on Spark (see `spark_process`).

Each file is a task. Each attempt of one of them waits amid its rows, after it left a mark, until it is told to go on.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql import SparkSession

SLOW = 1
"""The number of the task that waits."""
_ROWS_AT_ONCE, _ROWS_BEFORE = 50, 200
"""Rows in a batch of Arrow's, and rows before the task waits: the sink has some of these by then, as the rows are large."""
_LOOK_SECONDS, _WAIT_SECONDS_MAX = 0.1, 300.0


def stream(spark: SparkSession, files: str, marks: str, checkpoint: str, options: dict[str, str]) -> None:
    """All files, two in a batch."""
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", f"{_ROWS_AT_ONCE}")
    spark.conf.set("spark.sql.files.openCostInBytes", f"{1 << 30}")  # no two files in one task

    def slowly(batches: Iterator[Any]) -> Iterator[Any]:
        context: Any = TaskContext.get()
        batch, attempt = int(context.getLocalProperty("streaming.sql.batchId")), context.attemptNumber()
        for number, rows in enumerate(batches):
            if context.partitionId() == SLOW and number == _ROWS_BEFORE // _ROWS_AT_ONCE:
                _mark(Path(marks), f"{batch}-{attempt}", str(os.getppid()))
                _wait(Path(marks), f"{batch}-{attempt}")
            yield rows

    frame = spark.readStream.schema("value string").option("maxFilesPerTrigger", "2").parquet(files)
    slow = frame.mapInPandas(slowly, "value string")
    writer = slow.writeStream.format("pulsar").options(**options).option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()


def _mark(marks: Path, name: str, text: str) -> None:
    made = marks / f".{name}.{os.getpid()}"
    made.write_text(text)
    made.rename(marks / name)


def _wait(marks: Path, name: str) -> None:
    """Waits for `NAME.go`."""
    until = time.monotonic() + _WAIT_SECONDS_MAX
    while not (marks / f"{name}.go").exists() and time.monotonic() < until:
        time.sleep(_LOOK_SECONDS)
