"""WatchedServer: a standalone of its own for the fuzz, and what is looked at from outside: its log, memory, open files."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from benchmarks.raw_client import process_use
from tests.clients.server_process import ServerProcess

SETTINGS = (
    "transactionCoordinatorEnabled=true",
    "brokerDeleteInactiveTopicsEnabled=false",
    "brokerDeduplicationSnapshotIntervalSeconds=1",
    "keepAliveIntervalSeconds=30",
)
_BAD = re.compile(r"level=(?:error|critical)|Traceback|[Ii]nternal error|never retrieved|was never awaited")
_FOREIGN = "an event of topic policies cannot be read: passed over"
"""Error that is no finding: a client that may write to the topic wrote what is no event."""
_ENDED = re.compile(r"peer=(\S+) .*reason=(.*)")


@dataclass(frozen=True, slots=True)
class Use:
    """Resources that the process holds."""

    resident_mb: float
    open_files: int
    cpu_seconds: float


class WatchedServer:
    """Server whose log is watched; the caller starts it."""

    def __init__(self, directory: Path, settings: tuple[str, ...] = ()) -> None:
        self.process = ServerProcess(directory, (*SETTINGS, *settings))
        self._read = 0
        self._reasons: dict[str, str] = {}

    def start(self) -> tuple[str, int, int]:
        """Host, the broker's port, the web's."""
        ready = self.process.start()
        host, port = ready.broker_url.removeprefix("pulsar://").rsplit(":", 1)
        return host, int(port), int(ready.web_url.rsplit(":", 1)[1])

    def use(self) -> Use:
        assert self.process.ready is not None
        pid = self.process.ready.pid
        use = process_use(pid)
        return Use(use.resident_mb, len(os.listdir(f"/proc/{pid}/fd")), use.cpu_seconds)

    def said(self, lines_max: int = 3) -> list[str]:
        """Bad lines that it has logged since the last time, with the lines after them."""
        with self.process.log.open("rb") as log:
            log.seek(self._read)
            data = log.read()
        end = data.rfind(b"\n") + 1
        self._read += end
        lines = data[:end].decode(errors="replace").splitlines()
        for line in lines:
            if (found := _ENDED.search(line)) is not None:
                self._reasons[found[1]] = found[2]
        return [
            "log: " + " | ".join(lines[index : index + 40])[:6000]
            for index, line in enumerate(lines)
            if _BAD.search(line) and _FOREIGN not in line
        ][:lines_max]

    def reason_of(self, peer: str) -> str:
        """Reason for the end of this connection, or of the last refusal on it."""
        return self._reasons.get(peer, "")
