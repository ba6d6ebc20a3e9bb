"""A program in a process of its own, for tests: it tells that it is ready, it is ended within a bound, it is never left behind.

Owns the process and its log. Never in here: which program it is, and what its ready file holds.
"""

import atexit
import contextlib
import json
import random
import signal
import socket
import subprocess
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).resolve().parent.parent
READY_SECONDS_MAX = 120.0
END_SECONDS_MAX = 60.0
PORT_MIN = 12_000
_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")

_started: "weakref.WeakSet[StartedProcess]" = weakref.WeakSet()


class DidNotStart(Exception):
    """The process ended, or was not ready in time; the message holds its log."""


class StartedProcess:
    """One directory, and the process that works on it; `with` ends what still runs. Every start is told by `ready.json`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        return self.directory / "log"

    @property
    def ready_file(self) -> Path:
        return self.directory / "ready.json"

    @property
    def process_id(self) -> int:
        """Process id of the launched process, which runs."""
        assert self._process is not None
        return self._process.pid

    def launch_command(self, command: Sequence[str]) -> None:
        """Starts it, and does not wait."""
        assert self._process is None, "it runs already"
        self.directory.mkdir(parents=True, exist_ok=True)
        self.ready_file.unlink(missing_ok=True)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        _started.add(self)

    def until_ready_file(self) -> dict[str, Any]:
        """Contents of its ready file. DidNotStart, and the process is gone, when it does not come to that."""
        process = self._process
        assert process is not None
        deadline = time.monotonic() + READY_SECONDS_MAX
        while time.monotonic() < deadline:
            with contextlib.suppress(FileNotFoundError):
                written: dict[str, Any] = json.loads(self.ready_file.read_text())
                return written
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = process.wait(timeout=0.02)
                self._process = None
                raise DidNotStart(f"exit code {code}\n{self.log.read_text()}")
        self.close()
        raise DidNotStart(f"not ready after {READY_SECONDS_MAX} s\n{self.log.read_text()}")

    def kill(self) -> None:
        """kill -9, and wait for the end."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """SIGTERM, and wait; the exit code."""
        return self._end(signal.SIGTERM)

    def begin_stop(self) -> None:
        """SIGTERM; `until_end` waits for what comes of it."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)

    def until_end(self) -> int:
        """The exit code."""
        return self._wait("SIGTERM")

    def _end(self, how: signal.Signals) -> int:
        if self._process is None:
            return 0
        self._process.send_signal(how)
        return self._wait(how.name)

    def _wait(self, after: str) -> int:
        assert self._process is not None
        try:
            code = self._process.wait(timeout=END_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.close()
            raise AssertionError(f"runs on {END_SECONDS_MAX} s after {after}\n{self.log.read_text()}") from None
        self._process = None
        return code

    def close(self) -> None:
        """Ends what still runs, without ceremony."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


@atexit.register
def _close_all() -> None:
    for process in list(_started):
        process.close()


def free_port() -> int:
    """A free port of loopback, below those for outgoing connections: no connection takes it while its server is away."""
    end = int(_EPHEMERAL.read_text().split()[0]) if _EPHEMERAL.exists() else 0
    chance = random.SystemRandom()  # not the tests' own: two runs at a time have the same seed
    for _ in range(100 if end > PORT_MIN else 0):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", chance.randrange(PORT_MIN, end)))
            return int(probe.getsockname()[1])
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
