"""The members of a cluster under faults: each a process in a namespace of its own, on the standard ports of its address.

Owns the processes. `again` starts one as a supervisor would: until it stays.
"""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from tests.clients.cluster.faults.network import Network
from tests.metadata.zookeeper.zookeeper_server import keep_classpath
from tests.started_process import ROOT, DidNotStart, StartedProcess

SESSION_MS = 4000
AGAIN_SECONDS_MAX = 240.0
STOP_SECONDS_MAX = 180.0
QUORUMS = (
    "managedLedgerDefaultEnsembleSize=3",
    "managedLedgerDefaultWriteQuorum=3",
    "managedLedgerDefaultAckQuorum=2",
)
_FOUR_LETTERS_SECONDS_MAX = 5.0


class Member(StartedProcess):
    """`command` is of bin/pulsar; what it writes when it is ready is `told`."""

    def __init__(self, directory: Path, network: Network, name: str, command: Sequence[str], settings: Sequence[str]) -> None:
        super().__init__(directory / name)
        self.name, self.address = name, network.addresses[name]
        pulsar = (str(ROOT / "bin" / "pulsar"), *command, "--json-ready", str(self.ready_file))
        self._command = [*network.inside(name), *pulsar, *(word for each in settings for word in ("--set", each))]
        self.told: dict[str, object] = {}
        self.attempts = 0
        """Attempts of `again` to start the member, in all."""
        self._was_stopped = False
        """Whether it was stopped or killed on purpose since its last launch."""

    def launch(self) -> None:
        self._was_stopped = False
        self.launch_command(self._command)

    def wait_until_ready(self) -> None:
        self.told = self.until_ready_file()

    def start(self) -> Self:
        self.launch()
        self.wait_until_ready()
        return self

    def again(self) -> None:
        """Starts the member again until it stays; DidNotStart of the last attempt when that takes too long."""
        deadline = time.monotonic() + AGAIN_SECONDS_MAX
        while True:
            self.attempts += 1
            try:
                self.start()
                return
            except DidNotStart:
                if time.monotonic() > deadline:
                    raise

    def stop(self) -> int:
        """Stops the process with a longer bound than others have: ZooKeeper may be away meanwhile."""
        assert self._process is not None
        self._was_stopped = True
        self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.close()
            raise AssertionError(f"runs on {STOP_SECONDS_MAX:g} s after SIGTERM") from None
        self._process = None
        return code

    def kill(self) -> None:
        self._was_stopped = True
        super().kill()

    @property
    def pid(self) -> int:
        """Process id of the server; ZooKeeper's is the child of its launcher."""
        return int(str(self.told["pid"]))

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Nothing when it is not paused, or is gone."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGCONT)

    def has_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def end(self) -> str:
        """Words for the end of a member that does not run; empty while it runs."""
        if not self.has_ended():
            return ""
        if self._was_stopped:
            return "was stopped on purpose, and not started again"
        code = None if self._process is None else self._process.returncode
        return "ended by itself" + ("" if code is None else f" with exit code {code}")


class ZooKeeperMember(Member):
    """One of an ensemble, which is ready when the ensemble is."""

    def launch(self) -> None:
        keep_classpath(self.directory)
        super().launch()

    def kill(self) -> None:
        """kill -9 of the server; its launcher ends with it."""
        self._was_stopped = True
        os.kill(self.pid, signal.SIGKILL)
        self._wait("SIGKILL of the server")

    def close(self) -> None:
        if not self.has_ended() and self.told:
            with contextlib.suppress(ProcessLookupError):  # it has ended
                os.kill(self.pid, signal.SIGKILL)
        super().close()

    def is_leader(self) -> bool:
        """False also of one that does not answer."""
        said = b""
        with contextlib.suppress(OSError), socket.create_connection((self.address, 2181), _FOUR_LETTERS_SECONDS_MAX) as asking:
            asking.sendall(b"srvr")
            while chunk := asking.recv(4096):
                said += chunk
        return b"Mode: leader" in said


def zookeeper(directory: Path, network: Network, name: str, names: Sequence[str]) -> ZooKeeperMember:
    settings = (
        f"myid={names.index(name) + 1}",
        *(f"server.{number}={network.addresses[each]}:2888:3888" for number, each in enumerate(names, 1)),
        f"clientPortAddress={network.addresses[name]}",
        "4lw.commands.whitelist=srvr",
        "tickTime=500",
        "initLimit=20",
    )
    return ZooKeeperMember(directory, network, name, ("zookeeper", "--data-dir", str(directory / name)), settings)


def bookie(directory: Path, network: Network, name: str, disk: Path, uri: str) -> Member:
    settings = (
        "bookiePort=3181",
        f"advertisedAddress={network.addresses[name]}",
        f"metadataServiceUri={uri}",
        f"zkTimeout={SESSION_MS}",
        f"journalDirectories={disk}/journal",
        f"ledgerDirectories={disk}/ledgers",
        "journalMaxSizeMB=16",
        "journalPreAllocSizeMB=4",
        "diskCheckInterval=1000",
        "autoRecoveryDaemonEnabled=false",
    )
    return Member(directory, network, name, ("bookie",), settings)


def broker(directory: Path, network: Network, name: str, servers: str, *more: str) -> Member:
    settings = (
        "brokerServicePort=6650",
        "webServicePort=8080",
        f"bindAddress={network.addresses[name]}",
        f"metadataStoreUrl=zk:{servers}",
        f"metadataStoreSessionTimeoutMillis={SESSION_MS}",
        "clusterName=test",
        "bookkeeperClientTimeoutInSeconds=5",
        *QUORUMS,
        *more,
    )
    return Member(directory, network, name, ("broker",), settings)


def autorecovery(directory: Path, network: Network, name: str, uri: str) -> Member:
    settings = (
        f"metadataServiceUri={uri}",
        f"zkTimeout={SESSION_MS}",
        f"bookieId={network.addresses[name]}:3181",
        "openLedgerRereplicationGracePeriod=2000",
        "lockReleaseOfFailedLedgerGracePeriod=3000",
        "auditorPeriodicCheckInterval=10",  # what a writer that died left at two bookies of three is found by nothing else
        "auditorLedgerVerificationPercentage=100",
    )
    return Member(directory, network, name, ("autorecovery",), settings)
