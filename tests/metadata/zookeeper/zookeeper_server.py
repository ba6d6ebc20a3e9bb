"""A ZooKeeper as its users start it: `bin/pulsar zookeeper` in a process of its own, killed and started again at will."""

import contextlib
import functools
import os
import shutil
import signal
import tempfile
from pathlib import Path
from typing import Self

import pytest

from cli.zookeeper.java import find_classpath
from tests.started_process import ROOT, StartedProcess, free_port
from tests.toolchain import fetching

SESSION_SECONDS = 4.0
"""With tickTime 200 ZooKeeper grants from 0.4 to 4 s."""


def need_zookeeper() -> None:
    """Skips the test where ZooKeeper cannot run."""
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            pytest.skip(f"needs {tool} to run a real ZooKeeper")


@functools.cache
def _kept_classpath() -> tuple[str, str]:
    """The name and the content of the file in which `bin/pulsar zookeeper` keeps the class path: Maven is asked once."""
    with fetching(), tempfile.TemporaryDirectory(prefix="interpulse-") as scratch:
        find_classpath(Path(scratch))
        (kept,) = Path(scratch).iterdir()
        return kept.name, kept.read_text()


def keep_classpath(directory: Path) -> None:
    """Keep the classpath, so that a server with this directory has it already."""
    name, text = _kept_classpath()
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text(text)


class ZooKeeperProcess(StartedProcess):
    """One data directory and the server on it, on the same port each time."""

    def __init__(self, directory: Path, *settings: str) -> None:
        super().__init__(directory)
        self.settings = settings
        self.port = free_port()
        self.pid = 0
        """Process id of the server; `launch` starts its launcher, which ends with it."""

    @property
    def servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> Self:
        self.launch()
        return self.wait_until_ready()

    def launch(self) -> None:
        keep_classpath(self.directory)
        sets = [f"clientPort={self.port}", "tickTime=200", *self.settings]
        command = [str(ROOT / "bin" / "pulsar"), "zookeeper", "--data-dir", str(self.directory)]
        command += ["--json-ready", str(self.ready_file), *(word for each in sets for word in ("--set", each))]
        self.launch_command(command)

    def wait_until_ready(self) -> Self:
        self.pid = self.until_ready_file()["pid"]
        return self

    def pause(self) -> None:
        """Returns when all its threads stand still."""
        os.kill(self.pid, signal.SIGSTOP)
        tasks = Path(f"/proc/{self.pid}/task")
        while any((task / "stat").read_text().rpartition(")")[2].split()[0] != "T" for task in tasks.iterdir()):
            continue

    def go_on(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """kill -9 of the server; its launcher ends with it."""
        os.kill(self.pid, signal.SIGKILL)
        self._wait("SIGKILL of the server")

    def close(self) -> None:
        if self._process is not None and self.pid:
            with contextlib.suppress(ProcessLookupError):  # it has ended
                os.kill(self.pid, signal.SIGKILL)
        super().close()
