"""The two bookies of benchmarks/bookies/__main__.py as processes: ours, and Apache's with the settings that Pulsar gives it."""

import contextlib
import shutil
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from kazoo.client import KazooClient

from benchmarks.bookies.raw_client import READ
from tests.started_process import ROOT, StartedProcess, free_port
from tests.toolchain import maven_classpath
from wire.bookie.version2 import packet_header
from wire.kernels.bookie_requests import read_requests

POM = ROOT / "tests" / "clients" / "bookkeeper_java" / "pom.xml"
COMMON = (
    "advertisedAddress=127.0.0.1",
    "allowLoopback=true",
    "journalMaxGroupWaitMSec=1",
    "nettyMaxFrameSizeBytes=5253120",
    "gcWaitTime=3600000",
    "diskUsageThreshold=0.99",
    "diskUsageWarnThreshold=0.98",
)
"""The garbage collector would delete the ledgers, of which the metadata know nothing."""
NEVER_FLUSHED = ("flushInterval=3600000", "dbStorage_writeCacheMaxSizeMb=2400", "journalMaxSizeMB=2048")
APACHES = (
    "ledgerStorageClass=org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage",
    "journalSyncData=true",
    "flushInterval=60000",
    "dbStorage_readAheadCacheBatchSize=1000",
    "dbStorage_rocksDB_writeBufferSizeMB=4",
    "dbStorage_rocksDB_sstSizeInMB=4",
    "dbStorage_rocksDB_blockSize=4096",
    "dbStorage_rocksDB_bloomFilterBitsPerKey=10",
    "dbStorage_rocksDB_numLevels=-1",
    "dbStorage_rocksDB_numFilesInLevel0=4",
    "dbStorage_rocksDB_maxSizeInLevel1MB=256",
)
HEAP = ("-Xms256m", "-Xmx512m", "-XX:MaxDirectMemorySize=1g")
HEAP_NEVER_FLUSHED = ("-Xms256m", "-Xmx1g", "-XX:MaxDirectMemorySize=4g")
START_SECONDS_MAX = 120.0
POLL_SECONDS = 0.01


def classpath_of_apache(scratch: Path) -> str:
    return maven_classpath(POM, scratch)


class Server(StartedProcess):
    """A bookie on its own directory, always on the same port."""

    name: ClassVar[str]
    wants_warmth: ClassVar[bool]

    def __init__(self, directory: Path, metadata_service_uri: str) -> None:
        super().__init__(directory)
        self.port, self._uri = free_port(), metadata_service_uri

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self, *, flushes: bool = True) -> None:
        """Returns when it answers. `flushes`: False lets nothing but the journal grow."""
        raise NotImplementedError

    def index_bytes(self) -> int:
        """Size of the index of entries; the bookie is stopped."""
        raise NotImplementedError

    def forget(self) -> None:
        """Deletes the bookie's data and its traces in the metadata."""
        shutil.rmtree(self.directory)
        hosts, _, path = self._uri.split("//", 1)[1].partition("/")
        client = KazooClient(hosts)
        client.start()
        with contextlib.ExitStack() as ending:
            ending.callback(client.close)
            ending.callback(client.stop)
            client.delete(f"/{path}/cookies/127.0.0.1:{self.port}")

    def _settings(self) -> Sequence[str]:
        return (
            f"metadataServiceUri={self._uri}",
            f"bookiePort={self.port}",
            f"journalDirectories={self.directory}/journal",
            f"ledgerDirectories={self.directory}/ledgers",
            *COMMON,
        )


class OurBookie(Server):
    """`bin/pulsar bookie`."""

    name = "ours"
    wants_warmth = False

    def start(self, *, flushes: bool = True) -> None:
        command = [str(ROOT / "bin" / "pulsar"), "bookie", "--json-ready", str(self.ready_file)]
        for each in (*self._settings(), *(() if flushes else NEVER_FLUSHED)):
            command += ["--set", each]
        self.launch_command(command)
        self.until_ready_file()

    def index_bytes(self) -> int:
        """All but the entry logs themselves."""
        files = (file for file in (self.directory / "ledgers").rglob("*") if file.is_file())
        return sum(file.stat().st_size for file in files if file.suffix != ".log")


class ApacheBookie(Server):
    """`org.apache.bookkeeper.server.Main`; the cluster's layout is there already."""

    name = "apache"
    wants_warmth = True

    def __init__(self, directory: Path, metadata_service_uri: str, classpath: str) -> None:
        super().__init__(directory, metadata_service_uri)
        self._classpath = classpath

    def start(self, *, flushes: bool = True) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        settings = (*self._settings(), *APACHES, *(() if flushes else NEVER_FLUSHED))
        configuration = self.directory / "bookie.conf"
        configuration.write_text("\n".join(settings) + "\n")
        heap = HEAP if flushes else HEAP_NEVER_FLUSHED
        main = ["org.apache.bookkeeper.server.Main", "--conf", str(configuration)]
        self.launch_command(["java", *heap, "-cp", self._classpath, *main])
        self._until_it_answers()

    def _until_it_answers(self) -> None:
        """Waits for an answer: the bookie resets connections that come just after it has opened its port."""
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=5) as probe:
                probe.sendall(read_requests(packet_header(READ), 0, 0, 1))
                if probe.recv(1):
                    return
            assert self._process is not None
            if self._process.poll() is not None:
                break
            time.sleep(POLL_SECONDS)
        raise AssertionError(f"Apache's bookie did not start\n{self.log.read_text()[-5000:]}")

    def index_bytes(self) -> int:
        """RocksDB's places of entries and states of ledgers."""
        folders = (self.directory / "ledgers" / "current" / name for name in ("locations", "ledgers"))
        return sum(file.stat().st_size for folder in folders for file in folder.rglob("*") if file.is_file())
