"""Shared parts of repair tests with real processes: autorecoveries, bookies of both kinds, ledgers, a look at each copy."""

import asyncio
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self
from urllib.request import urlopen

import pytest

from bookkeeper.client import BookKeeper
from bookkeeper.ledger_metadata.codec import LedgerState
from bookkeeper.ledger_metadata.registry import LedgerRegistry
from bookkeeper.network.network_bookies import NetworkBookies
from bookkeeper.read.reader import sound_entries
from bookkeeper.repair.registered import registered_bookies
from bookkeeper.repair.underreplication.store import UnderreplicationStore
from bookkeeper.settings import BookKeeperSettings
from bookkeeper.write.quorum_tracker import Quorum
from metadata.zookeeper.store import ZooKeeperStore
from ports.clock import RealClock
from ports.rng import RealRng
from tests.metadata.conftest import open_on
from tests.started_process import ROOT, StartedProcess, free_port
from tests.toolchain import maven_classpath
from wire.bookie.codes import BookieError
from wire.run import batch_of

SECONDS_MAX = 150.0
POLL_SECONDS = 0.1
_POM = Path(__file__).parent.parent / "bookkeeper_java" / "pom.xml"
_JAVA = ("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp")


class AutoRecoveryProcess(StartedProcess):
    """`bin/pulsar autorecovery`, quick to close open ledgers and to try again."""

    def __init__(self, directory: Path, servers: str, *settings: str) -> None:
        super().__init__(directory)
        self.web_port = 0
        self.name = f"127.0.0.1:{free_port()}"
        self._settings = (
            f"metadataServiceUri=zk+hierarchical://{servers}/ledgers",
            "zkTimeout=2000",
            f"bookieId={self.name}",
            "openLedgerRereplicationGracePeriod=500",
            "lockReleaseOfFailedLedgerGracePeriod=3000",
            "httpServerEnabled=true",
            "httpServerHost=127.0.0.1",
            "httpServerPort=0",
            *settings,
        )

    def start(self) -> Self:
        command = [str(ROOT / "bin" / "pulsar"), "autorecovery", "--json-ready", str(self.ready_file)]
        command += [word for each in self._settings for word in ("--set", each)]
        self.launch_command(command)
        ready = self.until_ready_file()
        assert ready["bookieId"] == self.name
        self.web_port = int(ready["httpServerPort"])
        return self

    def metrics(self) -> dict[str, int]:
        """Values of `/metrics` by name."""
        with urlopen(f"http://127.0.0.1:{self.web_port}/metrics", timeout=30) as answer:
            lines = answer.read().decode().splitlines()
        return {name: int(value) for name, _, value in (line.partition(" ") for line in lines if not line.startswith("#"))}


def java_classpath(scratch: Path) -> str:
    """Class path of Apache's BookKeeper 4.17.3; skips where there is no Java."""
    if shutil.which("java") is None or shutil.which("mvn") is None:
        pytest.skip("needs Java and Maven to run Apache's BookKeeper")
    return maven_classpath(_POM, scratch)


class JavaProcess(StartedProcess):
    """A main class of Apache's BookKeeper on a port of its own; when it is ready the metadata tells."""

    main_class = "org.apache.bookkeeper.server.Main"
    more = ""

    def __init__(self, directory: Path, servers: str, classpath: str) -> None:
        super().__init__(directory)
        self.port = free_port()
        self._servers, self._classpath = servers, classpath

    @property
    def name(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> Self:
        self.directory.mkdir(parents=True, exist_ok=True)
        configuration = self.directory / "bookie.conf"
        configuration.write_text(
            f"metadataServiceUri=zk+hierarchical://{self._servers}/ledgers\nzkTimeout=2000\nbookiePort={self.port}\n"
            f"advertisedAddress=127.0.0.1\nallowLoopback=true\njournalDirectories={self.directory}/journal\n"
            f"ledgerDirectories={self.directory}/ledgers\ndiskUsageThreshold=0.999\ndiskUsageWarnThreshold=0.998\n"
            f"journalPreAllocSizeMB=1\nautoRecoveryDaemonEnabled=false\n{self.more}"
        )
        self.launch_command([*_JAVA, self._classpath, self.main_class, "--conf", str(configuration)])
        return self


class JavaAutoRecovery(JavaProcess):
    """Apache's auditor and worker."""

    main_class = "org.apache.bookkeeper.replication.AutoRecoveryMain"
    more = "openLedgerRereplicationGracePeriod=500\nlockReleaseOfFailedLedgerGracePeriod=3000\nrwRereplicateBackoffMs=500\n"


# Ledgers


def payload_of(entry_id: int) -> bytes:
    return b"entry %d " % entry_id * (entry_id % 50)


class Observer:
    """One client of the cluster for a test: writes ledgers, and looks at every copy of them."""

    def __init__(self, store: ZooKeeperStore, bookies: NetworkBookies) -> None:
        self.store, self.bookies = store, bookies
        self.registry = LedgerRegistry(store, RealRng())
        self.marks = UnderreplicationStore(store, RealClock(), "test")

    async def write(
        self, quorum: tuple[int, int, int], count: int, digest: str = "CRC32C", password: str = "", *, closed: bool = True
    ) -> int:
        ledgers = BookKeeper(self.bookies, self.store, BookKeeperSettings(*quorum, digest, password), RealRng())
        await ledgers.initialise()
        try:
            writer = await ledgers.create({})
            await asyncio.gather(*(writer.append(batch_of((payload_of(entry_id),))) for entry_id in range(count)))
            if closed:
                await writer.close()
            return writer.ledger_id
        finally:
            await ledgers.close()

    async def lacks(self, ledger_id: int, count: int) -> list[str]:
        """Faults of a ledger that has so many entries: each should be where the metadata says. An open one
        has bookies that are there."""
        metadata = (await self.registry.read(ledger_id)).metadata
        present = (await registered_bookies(self.store)).all
        named = {name for segment in metadata.segments for name in segment.bookies}
        found = [f"ledger {ledger_id}: {name} is named" for name in named - present]
        if metadata.state != LedgerState.CLOSED or found:
            return found
        if metadata.last_entry_id != count - 1:
            return [f"ledger {ledger_id} ends at {metadata.last_entry_id}"]
        quorum = Quorum(metadata.ensemble_size, metadata.write_quorum, metadata.ack_quorum)
        for entry_id in range(count):
            segment = [segment for segment in metadata.segments if segment.first_entry_id <= entry_id][-1]
            for index in quorum.write_set(entry_id):
                try:
                    run = await self.bookies[segment.bookies[index]].read(ledger_id, entry_id, 1, 1)
                except BookieError as error:
                    found.append(str(error))
                    continue
                run = sound_entries(run, ledger_id, entry_id, metadata)
                if bytes(run.payload(entry_id)) != payload_of(entry_id):
                    found.append(f"{ledger_id}:{entry_id} at {segment.bookies[index]}")
        return found

    async def until_whole(self, counts: Mapping[int, int]) -> None:
        """No ledger is marked, and each has all copies at bookies that are there."""
        await self.until(self._nothing_is_marked)
        for ledger_id, count in counts.items():
            assert await self.lacks(ledger_id, count) == []

    async def _nothing_is_marked(self) -> bool:
        return [ledger_id async for ledger_id in self.marks.ledger_ids()] == []

    async def most_named(self, counts: Mapping[int, int]) -> str:
        """The bookie that the most of the ledgers with entries name: it is drawn by chance who holds what."""
        named: Counter[str] = Counter()
        for ledger_id, count in counts.items():
            ledger = await self.registry.read(ledger_id)
            named.update({bookie for segment in ledger.metadata.segments for bookie in segment.bookies} if count else ())
        return max(named, key=lambda bookie: (named[bookie], bookie))

    async def until_none_names(self, bookie: str, ledger_ids: Iterable[int]) -> None:
        async def is_free() -> bool:
            ledgers = [await self.registry.read(ledger_id) for ledger_id in ledger_ids]
            return not any(bookie in segment.bookies for ledger in ledgers for segment in ledger.metadata.segments)

        await self.until(is_free)

    async def until_present(self, *bookies: str) -> None:
        async def are_there() -> bool:
            return (await registered_bookies(self.store)).writable.issuperset(bookies) and set(bookies) <= set(self.bookies)

        await self.until(are_there)

    async def until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        """Waits for other processes, which announce nothing here."""
        async with asyncio.timeout(SECONDS_MAX):
            while not await condition():  # noqa: ASYNC110
                await asyncio.sleep(POLL_SECONDS)


@asynccontextmanager
async def observing(servers: str) -> AsyncIterator[Observer]:
    store = await open_on(servers)
    bookies = NetworkBookies(store, 10.0)
    try:
        await bookies.open()
        yield Observer(store, bookies)
    finally:
        await bookies.close()
        await store.close()
