"""A stream from a topic to Parquet that is killed with -9 and comes back: how a test and a benchmark
(`benchmarks.spark.source_kills`) do it.

Each time it is killed when its table has grown by some batches since it began, and a moment after that, which chance says.
"""

import random
import time
from pathlib import Path

from tests.pipeline.spark_process import SparkProcess
from tests.pipeline.streams.killed_streams import STALL_SECONDS_MAX

_JOBS = "tests.pipeline.spark_jobs"
_LOOK_SECONDS = 0.05


class KilledStream:
    """`options` say the topic and the size of a batch. `directory`: for table, checkpoint and logs."""

    def __init__(self, directory: Path, options: dict[str, str]) -> None:
        self._directory, self._table, self.kills = directory, directory / "table", 0
        self._job = {
            "options": options,
            "to": str(self._table),
            "checkpoint": str(directory / "checkpoint"),
            "columns": ["cast(value as string) v"],
        }

    def batches(self) -> int:
        """Number of batches that Spark's sink has written down as done."""
        found = [each.name.split(".")[0] for each in (self._table / "_spark_metadata").glob("[0-9]*")]
        return max((int(each) + 1 for each in found), default=0)

    def run_and_kill(self, chance: random.Random) -> None:
        """An error of Spark's, or AssertionError with the end of its log when the table does not grow."""
        with SparkProcess(self._directory / f"killed-{self.kills}") as spark:
            spark.begin(f"{_JOBS}:stream_to_parquet", **self._job)
            self._until_grown(spark, self.batches() + chance.randint(1, 2))
            if spark.has_answered_within(chance.random()):
                spark.result()  # what it failed with
        self.kills += 1

    def _until_grown(self, spark: SparkProcess, wanted: int) -> None:
        """Or until the stream has read all, where it was quicker than this."""
        before, since = self.batches(), time.monotonic()
        while (now := self.batches()) < wanted and not spark.has_answered_within(_LOOK_SECONDS):
            if now != before:
                before, since = now, time.monotonic()
            assert time.monotonic() - since < STALL_SECONDS_MAX, (
                f"kill {self.kills + 1}: {now} batches are there, {wanted} wanted: nothing moves for {STALL_SECONDS_MAX} s\n"
                f"{spark.log_end()}"
            )

    def finish(self, spark: SparkProcess) -> list[str]:
        """Let run to its end: the values that stand in the table then, sorted."""
        spark.run(f"{_JOBS}:stream_to_parquet", **self._job)
        return sorted(each["v"] for each in spark.run(f"{_JOBS}:table", path=str(self._table)))
