"""A bookie as its users start it: `bin/pulsar bookie` in a process of its own, killed and started again at will."""

import contextlib
import json
import signal
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
READY_SECONDS_MAX = 60.0


class BookieDidNotStart(Exception):
    """The process ended, or was not ready in time; the message holds its log."""


class BookieProcess:
    """Its directories, and the process that serves them. A second start takes the port of the first."""

    def __init__(self, directory: Path, metadata_service_uri: str, *settings: str) -> None:
        self.directory = directory
        self.port = 0
        self._settings = (
            f"metadataServiceUri={metadata_service_uri}",
            "advertisedAddress=127.0.0.1",
            f"journalDirectories={directory}/journal",
            f"ledgerDirectories={directory}/ledgers",
            *settings,
        )
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bookie_id(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self.directory / "log"

    def start(self) -> "BookieProcess":
        self.directory.mkdir(parents=True, exist_ok=True)
        ready_file = self.directory / "ready.json"
        ready_file.unlink(missing_ok=True)
        command = [str(ROOT / "bin" / "pulsar"), "bookie", "--json-ready", str(ready_file)]
        command += [word for each in (f"bookiePort={self.port}", *self._settings) for word in ("--set", each)]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self._wait_until_ready(ready_file)
        return self

    def _wait_until_ready(self, ready_file: Path) -> None:
        assert self._process is not None
        deadline = time.monotonic() + READY_SECONDS_MAX
        while time.monotonic() < deadline:
            with contextlib.suppress(FileNotFoundError):
                self.port = json.loads(ready_file.read_text())["bookiePort"]
                return
            with contextlib.suppress(subprocess.TimeoutExpired):
                raise BookieDidNotStart(f"exit code {self._process.wait(timeout=0.02)}\n{self.log.read_text()}")
        raise BookieDidNotStart(f"not ready after {READY_SECONDS_MAX} s\n{self.log.read_text()}")

    def kill(self) -> None:
        """kill -9, and wait for the end."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """SIGSTOP: it lives, and answers nobody."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """SIGCONT; nothing when it is not paused."""
        self._signal(signal.SIGCONT)

    def _signal(self, which: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(which)

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
