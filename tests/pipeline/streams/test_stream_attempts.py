"""Streams into topics on a cluster of Spark's with two attempts of a task at once: speculation, a killed executor, a zombie."""

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from tests.clients.python_client import until
from tests.clients.server_process import Ready
from tests.pipeline.spark_process import SparkProcess, missing
from tests.pipeline.written_topics import made, values

pytestmark = [
    pytest.mark.clients,
    pytest.mark.timeout(1200),  # on a machine that is busy with others a query takes minutes
    pytest.mark.skipif(bool(missing()), reason=missing()),
]

JOB = "tests.pipeline.streams.attempt_jobs:stream"
FILES, ROWS = 4, 400
EXPECTED = Counter(f"{number:06}" for number in range(FILES * ROWS))
ATTEMPTS_MAX = 8
GUARANTEES = ("deduplication", "transactions")
SPECULATION = {
    "spark.cores.max": "2",
    "spark.task.maxFailures": f"{ATTEMPTS_MAX}",
    "spark.speculation": "true",
    "spark.speculation.interval": "200ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1",
    "spark.speculation.minTaskRuntime": "500ms",
}
SECONDS_MAX = 300.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    from tests.pipeline.spark.local_cluster import spark_cluster

    with spark_cluster(tmp_path_factory.mktemp("cluster"), workers=2) as url:
        yield url


class Stream:
    """Stream with one guarantee: files, marks, checkpoint and topic."""

    def __init__(self, server: Ready, topic: str, directory: Path, guarantee: str) -> None:
        self.server, self.guarantee, self._directory = server, guarantee, directory
        self.topic = made(server, f"{topic}-{guarantee}", deduplicates=guarantee == "deduplication")
        self.marks = directory / "marks"
        for each in (self.marks, directory / "files"):
            each.mkdir(parents=True)
        for number in range(FILES):
            rows = [f"{row:06}{'x' * 2000}" for row in range(number * ROWS, (number + 1) * ROWS)]
            pyarrow.parquet.write_table(pyarrow.table({"value": rows}), directory / "files" / f"{number:06}.parquet")

    def begin(self, spark: SparkProcess) -> None:
        urls = {"service.url": self.server.broker_url, "admin.url": self.server.web_url, "pollTimeoutMs": "300000"}
        options = {**urls, "topic": self.topic, "guarantee": self.guarantee}
        places = {name: str(self._directory / name) for name in ("files", "marks", "checkpoint")}
        spark.begin(JOB, options=options, **places)

    def began(self, spark: SparkProcess, *attempts: str) -> None:
        """Waits until these attempts (`batch-attempt`) of the slow task are amid their rows. AssertionError: the job ended."""
        until(lambda: all((self.marks / each).exists() for each in attempts) or spark.has_answered_within(0), SECONDS_MAX)
        assert all((self.marks / each).exists() for each in attempts), spark.result()

    def go_on(self, batch: int, first: int) -> None:
        """Lets this attempt and later ones go on."""
        for attempt in range(first, ATTEMPTS_MAX):
            (self.marks / f"{batch}-{attempt}.go").touch()

    def daemon(self, attempt: str) -> int:
        """Process id of the daemon of Python's workers that runs the attempt."""
        return int((self.marks / attempt).read_text())

    def check(self) -> None:
        found = Counter(each[:6] for each in values(self.server, self.topic, 120))
        assert found == EXPECTED, (self.guarantee, len(EXPECTED - found), len(found - EXPECTED))


def parent_of(process: int) -> int:
    return int(
        next(each for each in Path(f"/proc/{process}/status").read_text().splitlines() if each.startswith("PPid")).split()[1]
    )


def children_of(process: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def is_there(process: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(process, 0)
        return True
    return False


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_task_that_has_two_attempts_at_once_and_one_whose_executor_is_killed_then_write_each_row_once(
    cluster: str, standalone: Ready, topic: str, tmp_path: Path, guarantee: str
) -> None:
    """Spark ends the slower attempt in the first batch; in the second one its executor is killed with -9."""
    from tests.pipeline.spark.local_cluster import SETTINGS

    stream = Stream(standalone, topic, tmp_path, guarantee)
    with SparkProcess(tmp_path / "driver", {**SETTINGS, **SPECULATION, "spark.master": cluster}) as spark:
        stream.begin(spark)
        stream.began(spark, "0-0", "0-1")
        stream.go_on(0, first=1)
        stream.began(spark, "1-0", "1-1")
        os.kill(parent_of(stream.daemon("1-0")), signal.SIGKILL)
        stream.go_on(1, first=1)
        spark.result()
    stream.check()


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_stream_that_comes_back_while_a_task_of_the_killed_one_is_alive_writes_each_row_once(
    cluster: str, standalone: Ready, topic: str, tmp_path: Path, guarantee: str
) -> None:
    """The zombie is stopped amid its rows when the driver is killed with -9, and goes on when another one has written them."""
    from tests.pipeline.spark.local_cluster import SETTINGS

    stream = Stream(standalone, topic, tmp_path, guarantee)
    settings = {**SETTINGS, "spark.cores.max": "2", "spark.master": cluster}
    zombies: list[int] = []
    try:
        with SparkProcess(tmp_path / "killed", settings) as spark:
            stream.begin(spark)
            stream.began(spark, "0-0")
            daemon = stream.daemon("0-0")
            zombies = [daemon, *children_of(daemon)]
            for each in zombies:
                os.kill(each, signal.SIGSTOP)
        for batch in (0, 1):
            stream.go_on(batch, first=0)
        with SparkProcess(tmp_path / "back", settings) as spark:
            stream.begin(spark)
            spark.result()
    finally:
        for each in zombies:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGCONT)
    deadline = time.monotonic() + SECONDS_MAX
    until(lambda: not any(map(is_there, zombies)) or time.monotonic() > deadline, SECONDS_MAX)
    stream.check()
