"""A standalone as its users start it: `bin/pulsar standalone` in a process of its own, killed and started again at will.

Run as a program (`python -m tests.clients.server_process`) it does the same for test suites in other languages.
"""

import json
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.started_process import ROOT, StartedProcess, free_port

PORT_KEYS = ("brokerServicePort", "webServicePort")


@dataclass(frozen=True, slots=True)
class Ready:
    """Content of the file of `--json-ready`."""

    broker_url: str
    web_url: str
    pid: int


class ServerProcess(StartedProcess):
    """One data directory, and the process that serves it, on the same ports each time."""

    def __init__(self, directory: Path, settings: tuple[str, ...] = ()) -> None:
        super().__init__(directory)
        self.settings = settings
        self.configuration: str | None = None
        """A file of the operator's own, for --config."""
        self.ports: tuple[str, ...] = (str(free_port()), str(free_port()))
        """Empty: those of the configuration."""
        self.ready: Ready | None = None

    def start(self) -> Ready:
        sets = [f"{key}={port}" for key, port in zip(PORT_KEYS, self.ports, strict=False)] + [*self.settings]
        command = [str(ROOT / "bin" / "pulsar"), "standalone", "--data-dir", str(self.directory / "data")]
        command += ["--config", self.configuration] if self.configuration else []
        command += ["--json-ready", str(self.ready_file), *(word for value in sets for word in ("--set", value))]
        self.launch_command(command)
        written = self.until_ready_file()
        self.ready = Ready(written["brokerServiceUrl"], written["webServiceUrl"], written["pid"])
        return self.ready


@contextmanager
def given_or_started(directory: Path, settings: tuple[str, ...] = ()) -> Iterator[Ready]:
    """The server of PULSAR_TEST_URL and PULSAR_TEST_WEB_URL, else one that is started, and stops as it should."""
    if url := os.environ.get("PULSAR_TEST_URL"):
        yield Ready(url, os.environ["PULSAR_TEST_WEB_URL"], 0)
        return
    with ServerProcess(directory, settings) as process:
        yield process.start()
        assert process.stop() == 0, process.log.read_text()


def serve_restarts(directory: Path) -> None:
    """A server plus a named pipe: a line written to `restart` kills it (-9) and starts it again, then `restarted` grows."""
    with ServerProcess(directory, ("transactionCoordinatorEnabled=true",)) as server:
        ready = server.start()
        pipe, done = directory / "restart", directory / "restarted"
        os.mkfifo(pipe)
        where = {"broker": ready.broker_url, "web": ready.web_url, "pipe": str(pipe), "done": str(done)}
        print(json.dumps(where), flush=True)
        while True:
            with pipe.open() as commands:
                for _ in commands:
                    server.kill()
                    server.start()
                    with done.open("a") as marks:
                        marks.write("restarted\n")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with tempfile.TemporaryDirectory(prefix="interpulse-") as scratch:
        serve_restarts(Path(scratch))
