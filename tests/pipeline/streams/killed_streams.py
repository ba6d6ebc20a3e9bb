"""Streams into topics that are killed with -9 and come back: how a test and a benchmark (`benchmarks.spark.kills`) do it."""

import json
import random
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pyarrow
import pyarrow.parquet

from tests.clients.server_process import Ready
from tests.pipeline.spark_process import SparkProcess
from tests.pipeline.written_topics import abort_open_transactions, made, values

JOB = "tests.pipeline.sink_jobs:stream_files"
STALL_SECONDS_MAX = 600.0
"""Without a batch more. A session begins in ten seconds of a quiet machine; on one with twenty times more to do in minutes."""
_LOOK_SECONDS = 0.05
_TRANSACTION_MS = 300_000


class KilledStreams:
    """Two streams of the same files, one under each guarantee, in one session. `directory`: for files, checkpoints and logs."""

    def __init__(self, server: Ready, topic: str, directory: Path, files: int, rows: int) -> None:
        self._server, self._directory, self._files, self._rows = server, directory, files, rows
        self.kills = 0
        # on a machine that is busy with others a broker may not answer for minutes
        urls = {"service.url": server.broker_url, "admin.url": server.web_url, "pollTimeoutMs": "300000"}
        deduplicated, transacted = (made(server, f"{topic}-{name}", deduplicates=name == "d") for name in ("d", "t"))
        transactions = {
            **urls,
            "topic": transacted,
            "guarantee": "transactions",
            "transactionTimeoutMs": str(_TRANSACTION_MS),
        }
        self._streams: Mapping[str, dict[str, str]] = {
            str(directory / "checkpoint-d"): {**urls, "topic": deduplicated, "guarantee": "deduplication"},
            str(directory / "checkpoint-t"): transactions,
        }
        (directory / "files").mkdir(parents=True)
        for number in range(files):
            numbers = [f"{row}" for row in range(number * rows, (number + 1) * rows)]
            pyarrow.parquet.write_table(pyarrow.table({"value": numbers}), directory / "files" / f"{number:06}.parquet")

    def committed(self) -> tuple[int, ...]:
        """Files of each stream, while a batch has one of them. It has two where a kill came between them being listed and the
        batch being planned."""
        return tuple(_files_in(Path(each)) for each in self._streams)

    def run_and_kill(self, chance: random.Random, log: Path | None = None) -> None:
        """Runs until each stream has another file or two, and a moment longer. An error of Spark's, or AssertionError with the
        end of its log when no stream moves."""
        wanted = min(min(self.committed()) + 1 + chance.randrange(2), self._files - 1)
        with SparkProcess(log or self._directory / f"killed-{self.kills}") as spark:
            spark.begin(JOB, **self._arguments())
            self._until_committed(spark, wanted)
            if spark.has_answered_within(chance.random()):
                spark.result()  # what it failed with
        self.kills += 1

    def _until_committed(self, spark: SparkProcess, wanted: int) -> None:
        before, since = self.committed(), time.monotonic()
        while min(now := self.committed()) < wanted and not spark.has_answered_within(_LOOK_SECONDS):
            if now != before:
                before, since = now, time.monotonic()
            assert time.monotonic() - since < STALL_SECONDS_MAX, (
                f"kill {self.kills + 1}: {now} files of {self._files} are committed, {wanted} wanted, and nothing moves for "
                f"{STALL_SECONDS_MAX} s\n{spark.log_end()}"
            )

    def finish(self, spark: SparkProcess, files_of_a_batch: int) -> None:
        """The last run, which is left alone."""
        spark.run(JOB, **self._arguments(), files_of_a_batch=files_of_a_batch)

    def check(self) -> None:
        """Nothing lost and nothing twice."""
        abort_open_transactions(self._server)  # of tasks that were killed: readers would wait until their time is up
        expected = Counter(f"{number}" for number in range(self._files * self._rows))
        for each in self._streams.values():
            found = Counter(values(self._server, each["topic"], 120))
            assert found == expected, (each["guarantee"], len(expected - found), len(found - expected))

    def _arguments(self) -> dict[str, object]:
        return {"directory": str(self._directory / "files"), "streams": list(self._streams.items())}


def _files_in(checkpoint: Path) -> int:
    """Number of files in committed batches: the last line of a batch's offsets is `{"logOffset": 3}` after four files."""
    batches = [int(each.name) for each in (checkpoint / "commits").glob("[0-9]*")]
    if not batches:
        return 0
    offset = json.loads((checkpoint / "offsets" / f"{max(batches)}").read_text().splitlines()[-1])
    return int(offset["logOffset"]) + 1
