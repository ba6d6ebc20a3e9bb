"""Streams into topics that are killed with -9 and come back: how a test and a benchmark (`benchmarks.pipeline_kills`) do it."""

import json
import random
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pyarrow
import pyarrow.parquet

from tests.clients.python_client import until
from tests.clients.server_process import Ready
from tests.pipeline.spark_process import SparkProcess
from tests.pipeline.written_topics import made, values

JOB = "tests.pipeline.sink_jobs:stream_files"
_SECONDS_MAX = 600.0


class KilledStreams:
    """Two streams of the same files, one under each guarantee, in one session. `directory`: for files, checkpoints and logs."""

    def __init__(self, server: Ready, topic: str, directory: Path, files: int, rows: int) -> None:
        self._server, self._directory, self._files, self._rows = server, directory, files, rows
        self.kills = 0
        # on a machine that is busy with others a broker may not answer for minutes
        urls = {"service.url": server.broker_url, "admin.url": server.web_url, "pollTimeoutMs": "300000"}
        deduplicated, transacted = (made(server, f"{topic}-{name}", deduplicates=name == "d") for name in ("d", "t"))
        # a task that was killed leaves its transaction open: readers wait until its time is up
        transactions = {**urls, "topic": transacted, "guarantee": "transactions", "transactionTimeoutMs": "60000"}
        self._streams: Mapping[str, dict[str, str]] = {
            str(directory / "checkpoint-d"): {**urls, "topic": deduplicated, "guarantee": "deduplication"},
            str(directory / "checkpoint-t"): transactions,
        }
        (directory / "files").mkdir(parents=True)
        for number in range(files):
            numbers = [f"{row}" for row in range(number * rows, (number + 1) * rows)]
            pyarrow.parquet.write_table(pyarrow.table({"value": numbers}), directory / "files" / f"{number:06}.parquet")

    def committed(self) -> int:
        """Files, of the stream that has the fewest. A batch has two of them where a kill came between them being listed and the
        batch being planned."""
        return min(_files_in(Path(each)) for each in self._streams)

    def run_and_kill(self, chance: random.Random) -> None:
        """Until another file or two are committed, and then for a moment."""
        wanted = min(self.committed() + 1 + chance.randrange(2), self._files - 1)
        with SparkProcess(self._directory / f"killed-{self.kills}") as spark:
            spark.begin(JOB, **self._arguments())
            until(lambda: self.committed() >= wanted or spark.has_answered_within(0), _SECONDS_MAX)
            if spark.has_answered_within(0):
                spark.result()  # what it failed with
            threading.Event().wait(chance.random())
        self.kills += 1

    def finish(self) -> None:
        """The last run, which is left alone."""
        with SparkProcess(self._directory / "last") as spark:
            spark.begin(JOB, **self._arguments())
            spark.result(_SECONDS_MAX)
        assert self.committed() == self._files

    def check(self) -> None:
        """Nothing lost and nothing twice."""
        expected = Counter(f"{number}" for number in range(self._files * self._rows))
        for each in self._streams.values():
            found = Counter(values(self._server, each["topic"], 120))
            assert found == expected, (each["guarantee"], len(expected - found), len(found - expected))

    def _arguments(self) -> dict[str, object]:
        return {"directory": str(self._directory / "files"), "streams": list(self._streams.items())}


def _files_in(checkpoint: Path) -> int:
    """As many as Spark's newest committed batch ends after: the last line of its offsets is `{"logOffset": 3}` after four."""
    batches = [int(each.name) for each in (checkpoint / "commits").glob("[0-9]*")]
    if not batches:
        return 0
    offset = json.loads((checkpoint / "offsets" / f"{max(batches)}").read_text().splitlines()[-1])
    return int(offset["logOffset"]) + 1
