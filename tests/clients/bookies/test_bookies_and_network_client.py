"""Bookies as processes on a real ZooKeeper, and our client of the wire on ours and on Apache's."""

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bookkeeper.client import BookKeeper
from bookkeeper.ledger_metadata.codec import decode_ledger_metadata
from bookkeeper.ledger_metadata.paths import ledger_path
from bookkeeper.ledgers import LedgerError, LedgerWriter
from bookkeeper.network.network_bookies import NetworkBookies
from bookkeeper.settings import BookKeeperSettings
from metadata.zookeeper.store import ZooKeeperStore
from ports.rng import RealRng
from tests.bookie.runs import sealed
from tests.clients.bookie_process import BookieDidNotStart, BookieProcess
from tests.clients.java_bookie_process import JAVA, JavaBookieProcess, java_classpath
from tests.metadata.conftest import open_on
from tests.toolchain import QUICK_JAVA
from wire.run import EntryBatch, batch_of

pytestmark = [pytest.mark.clients, pytest.mark.timeout(180)]

COUNT, BYTES = 500, 200
POLL_SECONDS = 0.05


@pytest.fixture
def bookies(tmp_path: Path, servers: str) -> Iterator[list[BookieProcess]]:
    uri = f"zk+hierarchical://{servers}/ledgers"
    processes = [BookieProcess(tmp_path / f"bookie-{number}", uri, "zkTimeout=2000") for number in range(3)]
    try:
        for bookie in processes:
            bookie.start()
        yield processes
    finally:
        for bookie in processes:
            bookie.kill()


@asynccontextmanager
async def client_of(
    servers: str, ensemble: int, ack: int, digest: str = "CRC32C", password: str = "", timeout_seconds: float = 10.0
) -> AsyncIterator[tuple[BookKeeper, NetworkBookies, ZooKeeperStore]]:
    store = await open_on(servers)
    bookies = NetworkBookies(store, timeout_seconds)
    settings = BookKeeperSettings(ensemble, ensemble, ack, digest, password)
    ledgers = BookKeeper(bookies, store, settings, RealRng())
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


def test_acknowledged_entries_survive_kill_9_of_all_three_bookies(servers: str, bookies: list[BookieProcess]) -> None:
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


@pytest.fixture(scope="module")
def classpath(tmp_path_factory: pytest.TempPathFactory) -> str:
    return java_classpath(tmp_path_factory.mktemp("java"))


@pytest.fixture
def java_bookie(tmp_path: Path, servers: str, bookies: list[BookieProcess], classpath: str) -> Iterator[str]:
    """Id of Apache's bookie. The cluster is there already: our bookies have made its layout."""
    with JavaBookieProcess(tmp_path / "java", f"zk+hierarchical://{servers}/ledgers", classpath) as bookie:
        yield bookie.launch().bookie_id


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


# With Apache's client


WAYS = [
    (digest, password, closed)
    for digest in ("CRC32", "MAC", "CRC32C", "DUMMY")
    for password in ("", "pw")
    for closed in (True, False)
]
EXCHANGED = 60


def java_payload(index: int) -> bytes:
    return b"entry-%d-" % index * (index % 50)


def exchange(classpath: str, servers: str, what: str, ledgers: list[str]) -> list[int]:
    """Apache's client in a process of its own; the ids that it prints."""
    uri = f"zk+hierarchical://{servers}/ledgers"
    program = JAVA / "src/test/java/interpulse/Exchange.java"
    command = ["java", "-Xmx256m", *QUICK_JAVA, "-cp", classpath, str(program), uri, what, str(EXCHANGED), *ledgers]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return [int(word) for word in done.stdout.split()]


def test_apaches_client_and_ours_read_what_the_other_wrote_with_every_digest_and_password(
    classpath: str, servers: str, bookies: list[BookieProcess]
) -> None:
    async def read(ledger_id: int, digest: str, password: str) -> None:
        async with client_of(servers, 3, 2, digest, password) as (ledgers, _, _):
            reader = await ledgers.open(ledger_id)
            assert reader.last_entry_id == EXCHANGED - 1
            at = 0
            while at < EXCHANGED:
                run = await reader.read(at, EXCHANGED, 1 << 20)
                for entry_id in range(at, at + run.count):
                    assert bytes(run.payload(entry_id)) == java_payload(entry_id)
                at += run.count

    async def write(digest: str, password: str, is_closed: bool) -> int:
        async with client_of(servers, 3, 2, digest, password) as (ledgers, _, _):
            writer = await ledgers.create({})
            await asyncio.gather(*(writer.append(batch_of((java_payload(index),))) for index in range(EXCHANGED)))
            if is_closed:
                await writer.close()
            return writer.ledger_id

    async def ours() -> list[str]:
        ids = exchange(
            classpath, servers, "write", [f"{digest}:{password}:{str(closed).lower()}" for digest, password, closed in WAYS]
        )
        for ledger_id, (digest, password, _) in zip(ids, WAYS, strict=True):
            await read(ledger_id, digest, password)
        with pytest.raises(LedgerError, match="managedLedgerPassword"):
            await read(ids[2], "CRC32", "guess")
        return [f"{digest}:{password}:{await write(digest, password, closed)}" for digest, password, closed in WAYS]

    exchange(classpath, servers, "read", asyncio.run(ours()))


# Under load


class Load:
    """Appends of ten entries, a window of them under way; how long each took."""

    WINDOW = 20

    def __init__(self, writer: LedgerWriter) -> None:
        self.acknowledged = 0
        self.longest_seconds = 0.0
        self._writer, self._is_stopped = writer, False
        self._progress = asyncio.Condition()
        self._tasks = [asyncio.create_task(self._append()) for _ in range(self.WINDOW)]

    async def _append(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._is_stopped:
            began = loop.time()
            run = await self._writer.append(a_batch(self._writer.next_entry_id, 10))
            self.longest_seconds = max(self.longest_seconds, loop.time() - began)
            async with self._progress:
                self.acknowledged = max(self.acknowledged, run.last_entry_id + 1)
                self._progress.notify_all()

    async def more(self, count: int) -> None:
        """Waits until so many more entries are acknowledged. A failed append is raised."""
        goal = self.acknowledged + count
        progress = asyncio.ensure_future(self._reached(goal))
        try:
            await asyncio.wait([progress, *self._tasks], return_when=asyncio.FIRST_COMPLETED, timeout=90)
            assert progress.done(), [task.exception() for task in self._tasks if task.done()]
        finally:
            progress.cancel()

    async def _reached(self, goal: int) -> None:
        async with self._progress:
            await self._progress.wait_for(lambda: self.acknowledged >= goal)

    async def stop(self) -> None:
        self._is_stopped = True
        await asyncio.gather(*self._tasks)


ANSWER_SECONDS_MAX = 6.0
SPIKE_SECONDS_MAX = 40.0
"""The time-out and a change of the ensemble, on a machine that may be busy."""


@pytest.mark.parametrize("ack", [2, 3])
def test_bookies_killed_and_stopped_under_load_lose_nothing_and_hold_appends_up_for_a_bounded_time(
    tmp_path: Path, servers: str, bookies: list[BookieProcess], ack: int
) -> None:
    async def scenario(spare: BookieProcess) -> None:
        async with client_of(servers, 3, ack, timeout_seconds=ANSWER_SECONDS_MAX) as (ledgers, known, store):
            writer = await ledgers.create({})
            load = Load(writer)
            await load.more(2000)
            ensemble = await last_ensemble(store, writer.ledger_id)
            one, two = (bookie for bookie in bookies_of((*bookies, spare), ensemble[:2]))
            one.kill()
            await load.more(2000)
            one.start()
            async with asyncio.timeout(60):
                while one.bookie_id not in list(known):  # noqa: ASYNC110  # another process, which tells when it is there
                    await asyncio.sleep(POLL_SECONDS)
            two.pause()
            await load.more(2000)
            ensemble = await last_ensemble(store, writer.ledger_id)
            assert two.bookie_id not in ensemble or ack == 2
            two.go_on()
            await load.more(500)
            await load.stop()
            assert load.longest_seconds < SPIKE_SECONDS_MAX
            await check(ledgers, writer.ledger_id, load.acknowledged)

    spare = BookieProcess(tmp_path / "spare", f"zk+hierarchical://{servers}/ledgers", "zkTimeout=2000").start()
    try:
        asyncio.run(scenario(spare))
    finally:
        spare.kill()


def bookies_of(all_of_them: Iterable[BookieProcess], names: Iterable[str]) -> Iterator[BookieProcess]:
    by_name = {bookie.bookie_id: bookie for bookie in all_of_them}
    yield from (by_name[name] for name in names)


async def last_ensemble(store: ZooKeeperStore, ledger_id: int) -> tuple[str, ...]:
    found = await store.get(ledger_path(ledger_id))
    assert found is not None
    return decode_ledger_metadata(found.value).segments[-1].bookies
