"""A bookie process whose journal and entry logs are on given file systems; its log and its metadata are elsewhere."""

import json
from pathlib import Path

from tests.clients.bookie_process import BookieProcess

BUSY = (
    "zkTimeout=2000",
    "journalMaxSizeMB=2",
    "journalPreAllocSizeMB=1",
    "dbStorage_writeCacheMaxSizeMb=2",
    "flushInterval=200",
    "logSizeLimit=3000000",
    "diskCheckInterval=200",
)
"""Settings so small that a second of load fills journal files, memtables and entry logs several times."""


class BookieOnDisk(BookieProcess):
    """`journal` and `ledgers`: the directories in which each makes its own."""

    def __init__(self, directory: Path, uri: str, journal: Path, ledgers: Path, *settings: str, pairs: int = 1) -> None:
        """`pairs`: how many directories of each it has."""
        journals = ",".join(f"{journal}/journal-{number}" for number in range(pairs))
        logs = ",".join(f"{ledgers}/ledgers-{number}" for number in range(pairs))
        super().__init__(directory, uri, f"journalDirectories={journals}", f"ledgerDirectories={logs}", *BUSY, *settings)

    @property
    def pid(self) -> int:
        return int(json.loads(self.ready_file.read_text())["pid"])

    def end(self) -> int:
        """Waits until the bookie ends by itself; returns its exit code."""
        return self._wait("it had to end")
