"""A standalone as its users start it: `bin/pulsar standalone` in a process of its own, killed and started again at will.

Run as a program (`server_process.py restart STATE_FILE`) it does the same for test suites in other languages.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
READY_SECONDS_MAX = 60.0


class ServerDidNotStart(Exception):
    """The process ended, or was not ready in time; the message holds its log."""


@dataclass(frozen=True, slots=True)
class Ready:
    """What `--json-ready` wrote."""

    broker_url: str
    web_url: str
    pid: int


class ServerProcess:
    """One data directory, and the process that serves it. The second start takes the ports of the first."""

    def __init__(self, directory: Path, settings: tuple[str, ...] = ()) -> None:
        self.directory = directory
        self.settings = settings
        self.ports = ("0", "0")
        self.ready: Ready | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        return self.directory / "log"

    def start(self) -> Ready:
        self.directory.mkdir(parents=True, exist_ok=True)
        ready_file = self.directory / "ready.json"
        ready_file.unlink(missing_ok=True)
        sets = [f"brokerServicePort={self.ports[0]}", f"webServicePort={self.ports[1]}", *self.settings]
        command = [str(ROOT / "bin" / "pulsar"), "standalone", "--data-dir", str(self.directory / "data")]
        command += ["--json-ready", str(ready_file), *(word for value in sets for word in ("--set", value))]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.ready = self._wait_until_ready(ready_file)
        self.ports = (self.ready.broker_url.rsplit(":", 1)[1], self.ready.web_url.rsplit(":", 1)[1])
        return self.ready

    def _wait_until_ready(self, ready_file: Path) -> Ready:
        assert self._process is not None
        deadline = time.monotonic() + READY_SECONDS_MAX
        while time.monotonic() < deadline:
            with contextlib.suppress(FileNotFoundError):
                written = json.loads(ready_file.read_text())
                return Ready(written["brokerServiceUrl"], written["webServiceUrl"], written["pid"])
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self._process.wait(timeout=0.02)
                raise ServerDidNotStart(f"exit code {code}\n{self.log.read_text()}")
        raise ServerDidNotStart(f"not ready after {READY_SECONDS_MAX} s\n{self.log.read_text()}")

    def kill(self) -> None:
        """kill -9, and wait for the end."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """SIGTERM, and wait; the exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> int:
        if self._process is None:
            return 0
        self._process.send_signal(how)
        code = self._process.wait(timeout=30)
        self._process = None
        return code


def serve_restarts(directory: Path) -> None:
    """A server plus a named pipe: a line written to `restart` kills it (-9) and starts it again, then `restarted` grows."""
    server = ServerProcess(directory)
    ready = server.start()
    pipe, done = directory / "restart", directory / "restarted"
    os.mkfifo(pipe)
    print(json.dumps({"broker": ready.broker_url, "web": ready.web_url, "pipe": str(pipe), "done": str(done)}), flush=True)
    try:
        while True:
            with pipe.open() as commands:
                for _ in commands:
                    server.kill()
                    server.start()
                    with done.open("a") as marks:
                        marks.write("restarted\n")
    finally:
        server.stop()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with tempfile.TemporaryDirectory(prefix="magnetar-") as scratch:
        serve_restarts(Path(scratch))
