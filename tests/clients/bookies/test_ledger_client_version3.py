"""Our ledger client with version 3 of the protocol, on our bookies and on Apache's, and readers of open ledgers both ways."""

import asyncio
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from bookkeeper.client import BookKeeper
from bookkeeper.ledger_metadata.codec import master_key
from bookkeeper.ledgers import LedgerFenced
from bookkeeper.network.network_bookies import NetworkBookies
from bookkeeper.ports import BookieClient, ExtendedBookie
from bookkeeper.settings import BookKeeperSettings
from ports.rng import RealRng
from tests.bookie.runs import entries_of, sealed
from tests.bookkeeper.fake_bookies import batch, payloads_of
from tests.clients.bookie_process import BookieProcess
from tests.metadata.conftest import open_on
from tests.metadata.zookeeper.zookeeper_server import ZooKeeperProcess, need_zookeeper
from tests.toolchain import QUICK_JAVA, maven_classpath
from wire.bookie.codes import BookieCode, BookieError
from wire.bookie.digests import DigestType, lac_record

pytestmark = [pytest.mark.clients, pytest.mark.timeout(180)]

JAVA = Path(__file__).parent.parent / "bookkeeper_java"
KEY = master_key(b"")
POLL_SECONDS = 0.05
LEDGER = 900_000
"""An id that no client has got, for requests to one bookie."""


@pytest.fixture(scope="module")
def classpath(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Class path of Apache's bookie and client, from Maven."""
    return maven_classpath(JAVA / "pom.xml", tmp_path_factory.mktemp("java"))


@contextmanager
def apaches_bookie(directory: Path, uri: str, classpath: str) -> Iterator[str]:
    """Id of Apache's bookie. The layout of the metadata must be there."""
    directory.mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    (directory / "bookie.conf").write_text(
        f"metadataServiceUri={uri}\nbookiePort={port}\nadvertisedAddress=127.0.0.1\n"
        f"journalDirectories={directory}/journal\nledgerDirectories={directory}/ledgers\nallowLoopback=true\n"
        "diskUsageThreshold=0.999\ndiskUsageWarnThreshold=0.998\n"
    )
    command = ["java", "-Xmx512m", *QUICK_JAVA, "-cp", classpath, "org.apache.bookkeeper.server.Main"]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--conf", str(directory / "bookie.conf")], stdout=log, stderr=log, stdin=subprocess.DEVNULL
        )
    try:
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait(timeout=30)


class Cluster:
    """ZooKeeper, one bookie of ours and one of Apache's."""

    def __init__(self, servers: str, ours: str, apaches: str) -> None:
        self.servers, self.ours, self.apaches = servers, ours, apaches
        self.uri = f"zk+hierarchical://{servers}/ledgers"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, classpath: str) -> Iterator[Cluster]:
    need_zookeeper()
    zookeeper = ZooKeeperProcess(tmp_path_factory.mktemp("zookeeper")).start()
    bookie = BookieProcess(tmp_path_factory.mktemp("ours") / "bookie", f"zk+hierarchical://{zookeeper.servers}/ledgers")
    try:
        bookie.start()
        uri = f"zk+hierarchical://{zookeeper.servers}/ledgers"
        with apaches_bookie(tmp_path_factory.mktemp("apaches") / "bookie", uri, classpath) as apaches:
            yield Cluster(zookeeper.servers, bookie.bookie_id, apaches)
    finally:
        bookie.kill()
        zookeeper.stop()


@asynccontextmanager
async def client_of(
    cluster: Cluster, interval_ms: int = 0, *, use_version2: bool = False
) -> AsyncIterator[tuple[BookKeeper, NetworkBookies]]:
    async with AsyncExitStack() as stack:
        store = await open_on(cluster.servers)
        stack.push_async_callback(store.close)
        settings = BookKeeperSettings(2, 2, 2, bookkeeper_explicit_lac_interval_in_mills=interval_ms)
        bookies = NetworkBookies(store, 20.0, use_version2=use_version2)
        ledgers = BookKeeper(bookies, store, settings, RealRng())
        await ledgers.initialise()
        stack.push_async_callback(ledgers.close)
        await bookies.open()
        stack.push_async_callback(bookies.close)
        async with asyncio.timeout(60):
            while len(bookies) < 2:  # noqa: ASYNC110  # another process, which tells when it is there
                await asyncio.sleep(POLL_SECONDS)
        yield ledgers, bookies


async def refusal_of(work: "asyncio.Future[None]") -> BookieCode:
    with pytest.raises(BookieError) as failed:
        await work
    return failed.value.code


async def ask_everything(bookie: BookieClient, ledger_id: int) -> None:
    """Sends every request of version 3 to one bookie, ours or Apache's."""
    assert isinstance(bookie, ExtendedBookie)
    await bookie.add(sealed(ledger_id, 0, count=200, size=100), KEY)
    run = await bookie.read(ledger_id, 0, 50, 1 << 22)
    assert entries_of(run).items() <= entries_of(sealed(ledger_id, 0, count=200, size=100)).items()
    assert run.count == 50
    assert await bookie.last_entry_id(ledger_id) == 199
    await bookie.add_deferred(sealed(ledger_id, 200), KEY)
    await bookie.force(ledger_id)
    assert await bookie.list_entries(ledger_id) == [(0, 200)]
    known = await bookie.read_lac(ledger_id)
    assert known.last_entry == entries_of(sealed(ledger_id, 200))[200]
    assert (await bookie.wait_lac(ledger_id, 199, 200)).last_add_confirmed <= 199
    waiting = asyncio.ensure_future(bookie.wait_lac(ledger_id, 199, 30_000))
    record = lac_record(ledger_id, 200, DigestType.CRC32C)
    await bookie.write_lac(ledger_id, 200, KEY, record)
    polled = await waiting
    assert polled.last_add_confirmed == 200
    assert polled.entry == entries_of(sealed(ledger_id, 200))[200]
    assert (await bookie.read_lac(ledger_id)).record == record
    space = await bookie.disk_space()
    assert 0 < space.free_bytes <= space.total_bytes
    assert int.from_bytes((await bookie.fence(ledger_id, KEY))[16:24]) == 199
    assert await refusal_of(bookie.add(sealed(ledger_id, 201), KEY)) == BookieCode.EFENCED
    await bookie.add(sealed(ledger_id, 201), KEY, recovery=True)
    assert await refusal_of(bookie.add(sealed(ledger_id, 202), b"\x09" * 20, recovery=True)) == BookieCode.EUA


@pytest.mark.parametrize("use_version2", [False, True])
@pytest.mark.parametrize("whose", ["ours", "apaches"])
def test_a_bookie_is_asked_all_that_version_3_has(cluster: Cluster, whose: str, use_version2: bool) -> None:
    async def scenario() -> None:
        async with client_of(cluster, use_version2=use_version2) as (_, bookies):
            await ask_everything(bookies[getattr(cluster, whose)], LEDGER + use_version2)

    asyncio.run(scenario())


def test_ledgers_are_written_fenced_recovered_and_read_over_version_3_on_both_bookies(cluster: Cluster) -> None:
    async def scenario() -> None:
        async with client_of(cluster) as (writing, _), client_of(cluster) as (recovering, _):
            writer = await writing.create({})
            await asyncio.gather(*(writer.append(batch(*[b"%d" % number] * 10)) for number in range(100)))
            reader = await recovering.open(writer.ledger_id)
            assert reader.last_entry_id == 999
            with pytest.raises(LedgerFenced):
                await writer.append(batch(b"late"))
            found: list[bytes] = []
            while len(found) < 1000:
                found += payloads_of(await reader.read(len(found), 1000, 1 << 20))
            assert found == [b"%d" % (entry_id // 10) for entry_id in range(1000)]

    asyncio.run(scenario())


def java(cluster: Cluster, classpath: str, *words: str) -> "subprocess.Popen[str]":
    program = JAVA / "src/test/java/interpulse/Follow.java"
    command = ["java", "-Xmx256m", *QUICK_JAVA, "-cp", classpath, str(program), cluster.uri, *words]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@contextmanager
def stopped_at_the_end(process: "subprocess.Popen[str]") -> Iterator["subprocess.Popen[str]"]:
    with process:
        try:
            yield process
        finally:
            process.kill()


async def line_of(process: "subprocess.Popen[str]", matching: str) -> str:
    """The next one that begins so; what a logger says is passed over."""
    assert process.stdout is not None
    said: list[str] = []
    while True:
        said.append(await asyncio.to_thread(process.stdout.readline))
        assert said[-1], "".join(said)
        if said[-1].startswith(matching):
            return said[-1].strip()


def test_a_reader_of_apaches_follows_our_writer(cluster: Cluster, classpath: str) -> None:
    async def scenario() -> None:
        async with client_of(cluster, interval_ms=100, use_version2=True) as (ledgers, _):
            writer = await ledgers.create({})
            for number in range(5):
                await writer.append(batch(b"entry-%d" % number))
            with stopped_at_the_end(java(cluster, classpath, "read", str(writer.ledger_id), "4")) as reader:
                for number in range(5):
                    assert await line_of(reader, "entry-") == f"entry-{number}"
                await writer.append(batch(b"entry-5"))
                assert await line_of(reader, "entry-") == "entry-5 5"
            await writer.close()

    asyncio.run(scenario())


def test_our_reader_follows_a_writer_of_apaches(cluster: Cluster, classpath: str) -> None:
    async def scenario() -> None:
        async with client_of(cluster) as (ledgers, _):
            with stopped_at_the_end(java(cluster, classpath, "write", "5")) as writer:
                said = ""
                while not said.isdigit():
                    said = await line_of(writer, "")
                reader = await ledgers.follow(int(said))
                async with asyncio.timeout(30):
                    while reader.last_add_confirmed < 4:
                        await reader.wait(5_000)
                found: list[bytes] = []
                while len(found) < 5:
                    found += payloads_of(await reader.read(len(found), 5, 1 << 20))
                assert found == [b"entry-%d" % number for number in range(5)]
                assert not reader.is_closed

    asyncio.run(scenario())
