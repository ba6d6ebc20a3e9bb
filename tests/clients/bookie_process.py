"""A bookie as its users start it: `bin/pulsar bookie` in a process of its own, killed and started again at will."""

import signal
from pathlib import Path
from typing import Self

from tests.started_process import ROOT, DidNotStart, StartedProcess, free_port

BookieDidNotStart = DidNotStart


class BookieProcess(StartedProcess):
    """Directories of a bookie, and the process that serves them, on the same port each time."""

    def __init__(self, directory: Path, metadata_service_uri: str, *settings: str) -> None:
        super().__init__(directory)
        self.port = free_port()
        self._settings = (
            f"bookiePort={self.port}",
            f"metadataServiceUri={metadata_service_uri}",
            "advertisedAddress=127.0.0.1",
            f"journalDirectories={directory}/journal",
            f"ledgerDirectories={directory}/ledgers",
            "autoRecoveryDaemonEnabled=false",  # whoever tests it asks for it
            *settings,
        )

    @property
    def bookie_id(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> Self:
        command = [str(ROOT / "bin" / "pulsar"), "bookie", "--json-ready", str(self.ready_file)]
        command += [word for each in self._settings for word in ("--set", each)]
        self.launch_command(command)
        assert self.until_ready_file()["bookiePort"] == self.port
        return self

    def pause(self) -> None:
        """SIGSTOP: the process lives, and answers no request."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """SIGCONT; no effect on a process that is not paused."""
        self._signal(signal.SIGCONT)

    def _signal(self, which: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(which)
