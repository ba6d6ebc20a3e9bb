"""Several brokers or bookies under one supervisor, as their users start them: `--processes N`, on the same ports each time."""

import contextlib
import json
import os
import signal
import socket
from pathlib import Path
from typing import Any, Self

from tests.clients.broker_process import QUORUMS
from tests.clients.server_process import Ready
from tests.started_process import ROOT, StartedProcess, free_port

PORTS = 4


def free_ports() -> int:
    """Returns the first of `PORTS` free ports in succession."""
    for _ in range(100):
        first = free_port()
        with contextlib.suppress(OSError), contextlib.ExitStack() as held:
            for port in range(first, first + PORTS):
                held.enter_context(socket.create_server(("127.0.0.1", port)))
            return first
    raise AssertionError("no ports are free")


class Several(StartedProcess):
    """`settings` are given to the supervisor."""

    def __init__(self, directory: Path, kind: str, count: int, *settings: str) -> None:
        super().__init__(directory)
        sets = [word for each in settings for word in ("--set", each)]
        self.command = [str(ROOT / "bin" / "pulsar"), kind, "--processes", str(count), *sets]
        self.command += ["--json-ready", str(self.ready_file)]

    def start(self) -> Self:
        self.launch_command(self.command)
        self.until_ready_file()
        return self

    def told(self) -> dict[str, Any]:
        """Content of the ready file: it is written again whenever a process has become ready."""
        written: dict[str, Any] = json.loads(self.ready_file.read_text())
        return written

    def pids(self) -> dict[int, int]:
        return {each["number"]: each["pid"] for each in self.told()["processes"]}

    def hang_up(self) -> None:
        os.kill(self.process_id, signal.SIGHUP)


class SeveralBrokers(Several):
    """Brokers of one cluster, on the bookies of its ZooKeeper."""

    def __init__(self, directory: Path, servers: str, count: int, *settings: str) -> None:
        self.port, self.web_port = free_ports(), free_ports()
        super().__init__(
            directory,
            "broker",
            count,
            f"brokerServicePort={self.port}",
            f"webServicePort={self.web_port}",
            f"metadataStoreUrl=zk:{servers}",
            "clusterName=test",
            "bindAddress=127.0.0.1",
            *QUORUMS,
            *settings,
        )
        self.ready = Ready(f"pulsar://127.0.0.1:{self.port}", f"http://127.0.0.1:{self.web_port}", 0)


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
