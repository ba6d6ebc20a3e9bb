"""Our client on Apache's bookies alone, both clients on an ensemble of both kinds: every digest, both versions."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from typing import NamedTuple

import pytest

from bookkeeper.client import BookKeeper
from bookkeeper.ledger_metadata.codec import decode_ledger_metadata
from bookkeeper.ledger_metadata.paths import ledger_path
from bookkeeper.ledgers import LedgerWriter
from bookkeeper.network.network_bookies import NetworkBookies
from bookkeeper.settings import BookKeeperSettings
from ports.rng import RealRng
from tests.clients.bookie_process import BookieProcess
from tests.clients.java_bookie_process import JAVA, JavaBookieProcess, java_classpath, make_cluster
from tests.metadata.conftest import open_on
from tests.metadata.zookeeper.zookeeper_server import ZooKeeperProcess, need_zookeeper
from tests.toolchain import QUICK_JAVA, run_tool
from wire.run import batch_of

pytestmark = [
    pytest.mark.clients,
    pytest.mark.timeout(600),
    pytest.mark.skipif(shutil.which("mvn") is None or shutil.which("javac") is None, reason="no Java toolchain"),
]

EXCHANGE = JAVA / "src/test/java/interpulse/Exchange.java"
DIGESTS = ("CRC32", "MAC", "CRC32C", "DUMMY")
COUNT = 60
READ_BYTES_MAX = 1 << 20
POLL_SECONDS = 0.05
SECONDS_MAX = 120.0


class Both(NamedTuple):
    """A cluster of two of Apache's bookies, and one of ours that runs where the test starts it."""

    servers: str
    uri: str
    classpath: str
    java: list[JavaBookieProcess]
    ours: BookieProcess


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    need_zookeeper()
    directory = tmp_path_factory.mktemp("both")
    classpath = f"{java_classpath(directory)}:{directory}"
    run_tool(["javac", "-cp", classpath, "-d", str(directory), str(EXCHANGE)], directory, SECONDS_MAX)
    with ExitStack() as running:
        servers = running.enter_context(ZooKeeperProcess(directory / "zookeeper")).start().servers
        uri = f"zk+hierarchical://{servers}/ledgers"
        make_cluster(classpath, uri, directory)
        names = [directory / f"java-{number}" for number in range(2)]
        java = [running.enter_context(JavaBookieProcess(name, uri, classpath)).launch() for name in names]
        ours = running.enter_context(BookieProcess(directory / "ours", uri, "zkTimeout=2000"))
        yield Both(servers, uri, classpath, java, ours)


@asynccontextmanager
async def client_of(
    servers: str, ensemble: int, digest: str, *, use_version2: bool
) -> AsyncIterator[tuple[BookKeeper, NetworkBookies]]:
    store = await open_on(servers)
    bookies = NetworkBookies(store, use_version2=use_version2)
    ledgers = BookKeeper(bookies, store, BookKeeperSettings(ensemble, ensemble, ensemble, digest, "pw"), RealRng())
    try:
        await ledgers.initialise()
        await bookies.open()
        yield ledgers, bookies
    finally:
        await bookies.close()
        await ledgers.close()
        await store.close()


def payload(index: int) -> bytes:
    """Payload that Exchange.java writes."""
    return b"entry-%d-" % index * (index % 50)


async def write(ledgers: BookKeeper, *, is_closed: bool) -> LedgerWriter:
    writer = await ledgers.create({})
    await asyncio.gather(*(writer.append(batch_of((payload(index),))) for index in range(COUNT)))
    if is_closed:
        await writer.close()
    return writer


async def read(ledgers: BookKeeper, ledger_id: int) -> None:
    """A ledger that is open is recovered."""
    reader = await ledgers.open(ledger_id)
    assert reader.last_entry_id == COUNT - 1
    at = 0
    while at < COUNT:
        run = await reader.read(at, COUNT - at, READ_BYTES_MAX)
        for entry_id in range(at, at + run.count):
            assert bytes(run.payload(entry_id)) == payload(entry_id)
        at += run.count


async def until_known(bookies: NetworkBookies, *names: str) -> None:
    async with asyncio.timeout(SECONDS_MAX):
        while not {*names} <= {*bookies}:  # noqa: ASYNC110  # other processes, which tell when they are there
            await asyncio.sleep(POLL_SECONDS)


@pytest.mark.parametrize("use_version2", [True, False], ids=["v2", "v3"])
def test_our_client_writes_recovers_and_reads_on_apaches_bookies_alone(both: Both, use_version2: bool) -> None:
    async def scenario() -> None:
        both.ours.kill()
        java = [bookie.bookie_id for bookie in both.java]
        for digest in DIGESTS:
            for is_closed in (True, False):
                async with client_of(both.servers, 2, digest, use_version2=use_version2) as (ledgers, bookies):
                    await until_known(bookies, *java)
                    writer = await write(ledgers, is_closed=is_closed)
                    assert {*await ensemble(both.servers, writer.ledger_id)} == {*java}
                async with client_of(both.servers, 2, digest, use_version2=use_version2) as (ledgers, _):
                    await read(ledgers, writer.ledger_id)

    asyncio.run(scenario())


async def ensemble(servers: str, ledger_id: int) -> tuple[str, ...]:
    store = await open_on(servers)
    try:
        found = await store.get(ledger_path(ledger_id))
        assert found is not None
        return decode_ledger_metadata(found.value).segments[-1].bookies
    finally:
        await store.close()


@pytest.mark.parametrize("use_version2", [True, False], ids=["v2", "v3"])
def test_both_clients_exchange_ledgers_on_an_ensemble_of_both_kinds(both: Both, use_version2: bool) -> None:
    async def ours_writes(digest: str, *, is_closed: bool) -> int:
        async with client_of(both.servers, 3, digest, use_version2=use_version2) as (ledgers, bookies):
            await until_known(bookies, both.ours.bookie_id, *(bookie.bookie_id for bookie in both.java))
            return (await write(ledgers, is_closed=is_closed)).ledger_id

    async def ours_reads(digest: str, ledger_id: int) -> None:
        async with client_of(both.servers, 3, digest, use_version2=use_version2) as (ledgers, _):
            await read(ledgers, ledger_id)

    both.ours.kill()
    both.ours.start()
    ways = [(digest, closed) for digest in DIGESTS for closed in (True, False)]
    written = [f"{digest}:pw:{asyncio.run(ours_writes(digest, is_closed=closed))}" for digest, closed in ways]
    exchange(both, "read", written, use_version2)
    ids = exchange(both, "write", [f"{digest}:pw:{str(closed).lower()}" for digest, closed in ways], use_version2)
    for (digest, _), ledger_id in zip(ways, ids, strict=True):
        asyncio.run(ours_reads(digest, ledger_id))


def exchange(both: Both, what: str, ledgers: list[str], use_version2: bool) -> list[int]:
    """Apache's client in a process of its own; the ids that it prints."""
    java = ["java", "-Xmx256m", *QUICK_JAVA, "-cp", both.classpath]
    command = [*java, "interpulse.Exchange", both.uri, what, str(COUNT), *ledgers]
    settings = {"CLIENT_SETTINGS": f"useV2WireProtocol={str(use_version2).lower()}"}
    output = run_tool(command, JAVA, SECONDS_MAX, {**os.environ, **settings})
    return [int(word) for word in output.split() if word.isdigit()]
