"""A Spark query over very many topics by a pattern, as a batch and as a stream that takes up new ones: what planning costs.

    python -m benchmarks.spark.topics                 1,000 topics, and 50 that come while the stream runs

A standalone and PySpark (`local[2]`, 512 MB of heap) are started and ended here. Every message is counted. Times are by the
clock; memory is the largest sum over Spark's processes (JVM, driver, workers) of what is theirs alone (PSS).
"""

import argparse
import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.measured_runs import cpu_seconds, descendants
from tests.clients.python_client import quiet_client
from tests.clients.server_process import Ready, ServerProcess
from tests.pipeline.spark_process import SparkProcess

_JOBS = "tests.pipeline.spark_jobs"
_PREFIX = "persistent://public/default/many"
_SETTINGS = ("brokerDeleteInactiveTopicsEnabled=false",)
_MESSAGES = 3
_LOOK_SECONDS = 0.5
_STREAM_SECONDS_MAX = 600.0


class Peak:
    """The largest PSS, in MB, of a process and all that it started."""

    def __init__(self, pid: int) -> None:
        self._pid, self._done = pid, threading.Event()
        self.megabytes = 0.0

    @contextmanager
    def watched(self) -> Iterator["Peak"]:
        thread = threading.Thread(target=self._watch)
        thread.start()
        try:
            yield self
        finally:
            self._done.set()
            thread.join()

    def _watch(self) -> None:
        while not self._done.wait(_LOOK_SECONDS):
            self.megabytes = max(self.megabytes, sum(map(_pss_mb, (self._pid, *descendants(self._pid)))))


def _pss_mb(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0  # it has ended meanwhile
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:")), 0.0)


def fill(server: Ready, first: int, count: int) -> None:
    """Makes `count` topics, with messages of a producer each."""
    with closing(quiet_client(server.broker_url)) as client:
        for number in range(first, first + count):
            producer = client.create_producer(f"{_PREFIX}-{number}", batching_enabled=False)
            for message in range(_MESSAGES):
                producer.send(f"{number}:{message}".encode())
            producer.close()


def told(what: str, facts: Mapping[str, Any]) -> None:
    print(json.dumps({"what": what, **facts}), flush=True)


def batch(spark: SparkProcess, options: Mapping[str, str], topics: int) -> None:
    """Twice: the first one has Spark's compilers in it, and the broker loads topics."""
    for attempt in ("first", "second"):
        began = cpu_seconds(spark.process_id)
        with Peak(spark.process_id).watched() as peak:
            found = spark.run(f"{_JOBS}:planned", options=options)
        used = cpu_seconds(spark.process_id) - began
        if (found["rows"], found["topics"]) != (_MESSAGES * topics, topics):
            sys.exit(f"{found}: expected {_MESSAGES * topics} rows of {topics} topics")
        told(f"batch, {attempt}", {**found, "cpu_seconds": round(used, 1), "peak_mb": round(peak.megabytes)})


def stream(spark: SparkProcess, server: Ready, options: Mapping[str, str], topics: int, new: int, directory: Path) -> None:
    """All that is there, then topics that come while it runs."""
    arguments: dict[str, Any] = {
        "options": {**options, "startingOffsets": "earliest"},
        "to": str(directory / "table"),
        "checkpoint": str(directory / "checkpoint"),
        "columns": ["cast(value as string) v"],
        "rows": _MESSAGES * (topics + new),
        "seconds_max": _STREAM_SECONDS_MAX,
    }
    done = directory / "table" / "_spark_metadata" / "0"
    with Peak(spark.process_id).watched() as peak:
        began = time.monotonic()
        spark.begin(f"{_JOBS}:stream_told", **arguments)
        while not done.exists() and not spark.has_answered_within(_LOOK_SECONDS):
            continue
        if not done.exists():
            spark.result()  # what it failed with
        first = time.monotonic() - began
        fill(server, topics, new)
        came = time.monotonic()
        found = spark.result(2 * _STREAM_SECONDS_MAX)
        late = time.monotonic() - came
    if found["rows"] != _MESSAGES * (topics + new):
        sys.exit(f"{found}: expected {_MESSAGES * (topics + new)} rows")
    told(
        "stream",
        {
            **found,
            "seconds_until_the_first_batch": round(first, 1),
            "seconds_until_the_new_topics": round(late, 1),
            "peak_mb": round(peak.megabytes),
        },
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=1000)
    parser.add_argument("--new", type=int, default=50, help="topics that come while the stream runs")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="interpulse-pipeline-") as scratch:
        directory = Path(scratch)
        with ServerProcess(directory / "server", _SETTINGS) as server, SparkProcess(directory / "spark") as spark:
            ready = server.start()
            began = time.monotonic()
            fill(ready, 0, given.topics)
            told("filled", {"topics": given.topics, "seconds": round(time.monotonic() - began, 1)})
            options = {
                "service.url": ready.broker_url,
                "admin.url": ready.web_url,
                "topicsPattern": f"{_PREFIX}-.*",
                "pollTimeoutMs": "300000",
            }
            spark.run(f"{_JOBS}:where")  # the session is there
            batch(spark, options, given.topics)
            stream(spark, ready, options, given.topics, given.new, directory)


if __name__ == "__main__":
    main()
