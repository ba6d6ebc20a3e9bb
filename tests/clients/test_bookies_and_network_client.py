"""Bookies as processes on a real ZooKeeper, and our client of the wire on ours and on Apache's."""

import asyncio
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bookkeeper.client import BookKeeper
from bookkeeper.ledgers import LedgerWriter
from bookkeeper.network_bookies import NetworkBookies
from bookkeeper.settings import BookKeeperSettings
from metadata.zookeeper.store import ZooKeeperStore
from ports.rng import RealRng
from tests.bookie.runs import sealed
from tests.clients.bookie_process import BookieDidNotStart, BookieProcess
from tests.metadata.conftest import open_on
from tests.metadata.zookeeper_server import ZooKeeperProcess, need_zookeeper
from wire.run import EntryBatch

pytestmark = [pytest.mark.clients, pytest.mark.timeout(180)]

JAVA = Path(__file__).parent / "bookkeeper_java"
COUNT, BYTES = 500, 200
POLL_SECONDS = 0.05


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[str]:
    need_zookeeper()
    zookeeper = ZooKeeperProcess(tmp_path / "zookeeper").start()
    yield zookeeper.servers
    zookeeper.stop()


@pytest.fixture
def bookies(tmp_path: Path, servers: str) -> Iterator[list[BookieProcess]]:
    uri = f"zk+hierarchical://{servers}/ledgers"
    started = [BookieProcess(tmp_path / f"bookie-{number}", uri, "zkTimeout=2000").start() for number in range(3)]
    yield started
    for bookie in started:
        bookie.stop()


@asynccontextmanager
async def client_of(servers: str, ensemble: int, ack: int) -> AsyncIterator[tuple[BookKeeper, NetworkBookies, ZooKeeperStore]]:
    store = await open_on(servers)
    bookies = NetworkBookies(store, 10.0)
    ledgers = BookKeeper(bookies, store, BookKeeperSettings(ensemble, ensemble, ack), RealRng())
    try:
        await ledgers.initialise()
        await bookies.open()
        yield ledgers, bookies, store
    finally:
        await bookies.close()
        await ledgers.close()
        await store.close()


def a_batch(first: int, count: int) -> EntryBatch:
    run = sealed(0, first, count, BYTES)
    return EntryBatch(bytearray(run.buffer), run.offsets, run.header_bytes, count)


async def fill(writer: LedgerWriter, count: int) -> None:
    await asyncio.gather(*(writer.append(a_batch(first, 10)) for first in range(0, count, 10)))


async def check(ledgers: BookKeeper, ledger_id: int, count: int) -> None:
    """Recovers the ledger, and reads all of it."""
    reader = await ledgers.open(ledger_id)
    assert reader.last_entry_id >= count - 1
    at = 0
    while at < count:
        run = await reader.read(at, count - at, 1 << 20)
        for entry_id in range(at, at + run.count):
            assert bytes(run.payload(entry_id)) == bytes(sealed(0, entry_id // 10 * 10, 10, BYTES).payload(entry_id))
        at += run.count


def test_what_three_bookies_acknowledged_is_there_after_kill_nine_of_all(servers: str, bookies: list[BookieProcess]) -> None:
    async def scenario() -> None:
        async with client_of(servers, 3, 2) as (ledgers, _, _):
            writer = await ledgers.create({})
            await fill(writer, COUNT)
            for bookie in bookies:
                bookie.kill()
            for bookie in bookies:
                bookie.start()
            await check(ledgers, writer.ledger_id, COUNT)

    asyncio.run(scenario())


def test_a_ledger_is_read_and_recovered_without_one_of_its_bookies(servers: str, bookies: list[BookieProcess]) -> None:
    async def scenario() -> None:
        async with client_of(servers, 3, 2) as (ledgers, _, _):
            writer = await ledgers.create({})
            await fill(writer, COUNT)
            bookies[0].kill()
            await check(ledgers, writer.ledger_id, COUNT)

    asyncio.run(scenario())


def test_a_bookie_does_not_start_where_it_must_not(tmp_path: Path, servers: str) -> None:
    uri = f"zk+hierarchical://{servers}/ledgers"
    bookie = BookieProcess(tmp_path / "one", uri, "zkTimeout=2000").start()
    with pytest.raises(BookieDidNotStart, match="in use by another process"):
        BookieProcess(tmp_path / "one", uri).start()
    assert bookie.stop() == 0
    shutil.rmtree(tmp_path / "one" / "ledgers")
    shutil.rmtree(tmp_path / "one" / "journal")
    with pytest.raises(BookieDidNotStart, match="was it emptied"):
        bookie.start()
    with pytest.raises(BookieDidNotStart, match="metadataServiceUri"):
        BookieProcess(tmp_path / "two", "").start()


def classpath(directory: Path) -> str:
    """Of Apache's bookie, from Maven."""
    out = directory / "classpath"
    command = ["mvn", "-B", "-ntp", "-q", "dependency:build-classpath", f"-Dmdep.outputFile={out}"]
    subprocess.run(command, cwd=JAVA, check=True, capture_output=True)
    return out.read_text().strip()


@pytest.fixture
def java_bookie(tmp_path: Path, servers: str, bookies: list[BookieProcess]) -> Iterator[str]:
    """Its id. The cluster is there already: ours have made its layout."""
    directory = tmp_path / "java"
    directory.mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    (directory / "bookie.conf").write_text(
        f"metadataServiceUri=zk+hierarchical://{servers}/ledgers\nbookiePort={port}\nadvertisedAddress=127.0.0.1\n"
        f"journalDirectories={directory}/journal\nledgerDirectories={directory}/ledgers\nallowLoopback=true\n"
        "diskUsageThreshold=0.999\ndiskUsageWarnThreshold=0.998\n"
    )
    command = ["java", "-Xmx512m", "-cp", classpath(directory), "org.apache.bookkeeper.server.Main"]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--conf", str(directory / "bookie.conf")], stdout=log, stderr=log, stdin=subprocess.DEVNULL
        )
    yield f"127.0.0.1:{port}"
    process.kill()
    process.wait(timeout=30)


def test_our_client_writes_to_apaches_bookie_and_to_ours_in_one_ensemble(
    servers: str, bookies: list[BookieProcess], java_bookie: str
) -> None:
    async def scenario() -> None:
        async with client_of(servers, 4, 4) as (ledgers, known, _):
            async with asyncio.timeout(60):
                while java_bookie not in list(known):  # noqa: ASYNC110  # another process, which tells when it is there
                    await asyncio.sleep(POLL_SECONDS)
            writer = await ledgers.create({})
            await fill(writer, COUNT)
            assert await known[java_bookie].last_entry_id(writer.ledger_id) == COUNT - 1
            for bookie in bookies:
                bookie.kill()
            run = await known[java_bookie].read(writer.ledger_id, 0, COUNT, 1 << 20)
            assert bytes(run.entries(0, 1).buffer)[36 : 36 + BYTES] == bytes(sealed(0, 0, 10, BYTES).payload(0))
            for bookie in bookies:
                bookie.start()
            await check(ledgers, writer.ledger_id, COUNT)

    asyncio.run(scenario())
