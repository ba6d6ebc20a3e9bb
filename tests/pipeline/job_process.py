"""`bin/pulsar-pipeline` as its users start it: in a process that can be killed with -9 on the way, or here, to its end."""

import contextlib
import io
import json
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from pipeline.pyspark_pulsar.jobs.command_line import main
from tests.clients.server_process import Ready
from tests.started_process import ROOT

END_SECONDS_MAX = 600.0
_MOMENT_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Ended:
    """Result of a job: the facts it printed (none where it failed), and its complaints."""

    code: int
    facts: Mapping[str, Any]
    complaint: str


def urls(server: Ready) -> list[str]:
    """Addresses of the server, as options of a job; on a machine that is busy with others an answer takes its time."""
    return ["--service-url", server.broker_url, "--admin-url", server.web_url, "--option", "pollTimeoutMs=300000"]


class JobProcess:
    """`with` it: at the end it is killed with all that it started, if it still runs."""

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._open = ExitStack()
        self._files: list[IO[str]] = []
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self._files = [self._open.enter_context(tempfile.TemporaryFile("w+")) for _ in range(2)]  # noqa: SIM115 - the stack closes
        command = [str(ROOT / "bin" / "pulsar-pipeline"), *self._words]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self._files[0], stderr=self._files[1], text=True
        )
        return self

    def has_ended(self) -> bool:
        """After a moment, in which it may end: who asks again and again leaves the machine to the others."""
        assert self._process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_MOMENT_SECONDS)
            return True
        return False

    def kill(self) -> None:
        """kill -9, and wait. The launcher has become the job itself."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def result(self) -> Ended:
        """Waits for its end."""
        assert self._process is not None
        code = self._process.wait(END_SECONDS_MAX)
        out, err = (self._text(number) for number in range(2))
        return Ended(code, json.loads(out) if out.strip() else {}, err)

    def _text(self, number: int) -> str:
        self._files[number].seek(0)
        return self._files[number].read()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._process is not None:
            self.kill()
        self._open.close()


def run_job(words: list[str]) -> Ended:
    """Result of a job run here, to its end: a process for each costs seconds of a busy machine."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    return Ended(code, json.loads(out.getvalue()) if out.getvalue().strip() else {}, err.getvalue())


def written_report(directory: Path, job: str) -> dict[str, Any]:
    """The JSON; the page beside it needs nothing from anywhere."""
    page = (directory / f"{job}.html").read_text()
    assert "<svg" in page
    assert not any(each in page for each in ("http://", "https://", "src=", "@import", "<link"))
    report: dict[str, Any] = json.loads((directory / f"{job}.json").read_text())
    return report
