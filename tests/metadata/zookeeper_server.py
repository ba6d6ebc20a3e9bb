"""A ZooKeeper as its users start it: `bin/pulsar zookeeper` in a process of its own, killed and started again at will."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
READY_SECONDS_MAX = 90.0
SESSION_SECONDS = 4.0
"""With tickTime 200 ZooKeeper grants from 0.4 to 4 s."""


def need_zookeeper() -> None:
    """Skips the test where ZooKeeper cannot run."""
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            pytest.skip(f"needs {tool} to run a real ZooKeeper")


class ZooKeeperProcess:
    """One data directory and the server on it; a second start takes the port of the first."""

    def __init__(self, directory: Path, *settings: str) -> None:
        self.directory, self.settings = directory, settings
        self.port = 0
        self.pid = 0
        self._launcher: subprocess.Popen[bytes] | None = None

    @property
    def servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self.directory / "log"

    def start(self) -> "ZooKeeperProcess":
        self.launch()
        return self.wait_until_ready()

    def launch(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / "ready.json").unlink(missing_ok=True)
        sets = [f"clientPort={self.port}", "tickTime=200", *self.settings]
        command = [str(ROOT / "bin" / "pulsar"), "zookeeper", "--data-dir", str(self.directory)]
        command += ["--json-ready", str(self.directory / "ready.json"), *(word for each in sets for word in ("--set", each))]
        with self.log.open("ab") as log:
            self._launcher = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def wait_until_ready(self) -> "ZooKeeperProcess":
        assert self._launcher is not None
        deadline = time.monotonic() + READY_SECONDS_MAX
        while time.monotonic() < deadline:
            with contextlib.suppress(FileNotFoundError):
                ready = json.loads((self.directory / "ready.json").read_text())
                self.port, self.pid = int(ready["metadataStoreUrl"].rsplit(":", 1)[1]), ready["pid"]
                return self
            with contextlib.suppress(subprocess.TimeoutExpired):
                raise AssertionError(f"exit code {self._launcher.wait(timeout=0.02)}\n{self.log.read_text()}")
        raise AssertionError(f"not ready after {READY_SECONDS_MAX} s\n{self.log.read_text()}")

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """kill -9 of the server; its launcher ends with it."""
        os.kill(self.pid, signal.SIGKILL)
        self._end()

    def stop(self) -> int:
        """SIGTERM to the launcher; its exit code."""
        if self._launcher is None:
            return 0
        self._launcher.terminate()
        return self._end()

    def _end(self) -> int:
        assert self._launcher is not None
        code = self._launcher.wait(timeout=30)
        self._launcher = None
        return code
