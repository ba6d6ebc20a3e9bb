"""Spark in a process of its own, for tests: one session, jobs named by module and function, their results come back.

A test's mistakes and Spark's threads, sockets and children stay over there: nothing of them is left where the tests run.
Owns the process (and with it the JVM and its workers of Python), its log and the bound on each answer.
"""

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.started_process import ROOT

ANSWER_SECONDS_MAX = 600.0
"""Twenty seconds for the first query of a session; on a machine with twenty times more to do than it can, minutes."""
_LOG_CHARACTERS_MAX = 6_000


class JobFailed(Exception):
    """Error of a job: its whole text, as a user sees it."""


def missing() -> str:
    """Why there is no Spark here, or ""."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "no Java, which Spark needs"
    return "" if importlib.util.find_spec("pyspark") else "no PySpark: bin/prepare --dev --spark"


class SparkProcess:
    """`directory`: for its log and Spark's scratch. `settings` are of the session. Ended with all its children at the end."""

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        self.directory, self._settings = directory, dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection[Any, Any] | None = None

    @property
    def log(self) -> Path:
        return self.directory / "spark.log"

    @property
    def process_id(self) -> int:
        """Process id of the driver, which started all others."""
        assert self._process is not None, "it was not started"
        return self._process.pid

    def start(self) -> Self:
        """Begins; the first job waits until the session is there."""
        self.directory.mkdir(parents=True, exist_ok=True)
        ours, theirs = Pipe()
        command = [sys.executable, "-m", "tests.pipeline.spark_driver", str(theirs.fileno()), str(self.directory)]
        with theirs, self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'pipeline'}", "PYSPARK_PYTHON": sys.executable},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._connection = ours
        ours.send(self._settings)
        return self

    def run(self, job: str, **arguments: Any) -> Any:
        """Result of `module:function(session, **arguments)`. JobFailed with the text of its error."""
        self.begin(job, **arguments)
        return self.result()

    def begin(self, job: str, **arguments: Any) -> None:
        """Sends a job; `result` waits for it, or `kill` ends it."""
        assert self._connection is not None, "it was not started"
        with contextlib.suppress(BrokenPipeError):  # `result` tells of a driver that is gone, with its log
            self._connection.send((job, arguments))

    def has_answered_within(self, seconds: float) -> bool:
        """Whether `result` would not wait."""
        assert self._connection is not None
        return self._connection.poll(seconds)

    def result(self, seconds_max: float = ANSWER_SECONDS_MAX) -> Any:
        assert self._connection is not None
        try:
            assert self._connection.poll(seconds_max), f"no answer in {seconds_max} s\n{self.log_end()}"
            is_fine, answer = self._connection.recv()
        except EOFError:
            raise AssertionError(f"Spark's driver ended\n{self.log_end()}") from None
        if not is_fine:
            raise JobFailed(answer)
        return answer

    def log_end(self) -> str:
        """End of the log."""
        return self.log.read_text(errors="replace")[-_LOG_CHARACTERS_MAX:]

    def kill(self) -> None:
        """kill -9 of the driver, its JVM and the workers, and wait for the end of the driver."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.kill()
