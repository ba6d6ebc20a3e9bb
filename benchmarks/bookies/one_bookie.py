"""A broker, a bookie and a ZooKeeper, each a process of its own: `bin/pulsar devcluster` with one of each, for benchmarks.

For clients that read from bookies themselves: only its broker reaches a standalone's bookie, which is inside the same process.
"""

import os
from types import TracebackType

from tests.clients.server_process import Ready
from tests.started_process import ROOT, StartedProcess


class OneBookie(StartedProcess):
    """`settings` are the broker's. Every run has loopback addresses of its own."""

    def start(self, settings: tuple[str, ...]) -> Ready:
        """`pid` is that of the process which started all members."""
        command = [str(ROOT / "bin" / "pulsar"), "devcluster", "--brokers", "1", "--bookies", "1", "--network", _network()]
        command += ["--data-dir", str(self.directory / "data"), "--json-ready", str(self.ready_file)]
        self.launch_command([*command, *(word for each in settings for word in ("--broker-set", each))])
        written = self.until_ready_file()
        return Ready(written["serviceUrl"], written["webServiceUrl"], written["pid"])

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()  # with its members, which a kill would leave behind
        super().__exit__(kind, error, trace)


def _network() -> str:
    pid = os.getpid()
    return f"127.{10 + pid % 200}.{pid // 200 % 250}"
