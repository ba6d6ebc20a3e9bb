"""Autorecovery as processes: bookies are killed, and ledgers get their copies back; ours and Apache's repair each other's."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bookkeeper.repair.auditor.election import elected_auditor
from tests.clients.bookie_process import BookieProcess
from tests.clients.bookies.repaired_cluster import (
    AutoRecoveryProcess,
    JavaAutoRecovery,
    JavaProcess,
    Observer,
    java_classpath,
    observing,
)

pytestmark = [pytest.mark.clients, pytest.mark.timeout(290)]

DIGESTS = ("CRC32", "MAC", "CRC32C", "DUMMY")
COUNT = 60


@pytest.fixture
def running() -> Iterator[ExitStack]:
    """Processes that a test starts; they end with it."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture(scope="module")
def classpath(tmp_path_factory: pytest.TempPathFactory) -> str:
    return java_classpath(tmp_path_factory.mktemp("java"))


def our_bookies(running: ExitStack, directory: Path, servers: str, count: int, *settings: str) -> dict[str, BookieProcess]:
    uri = f"zk+hierarchical://{servers}/ledgers"
    bookies = [
        running.enter_context(BookieProcess(directory / f"bookie-{number}", uri, "zkTimeout=2000", *settings))
        for number in range(count)
    ]
    return {bookie.start().bookie_id: bookie for bookie in bookies}


async def some_ledgers(observer: Observer) -> dict[int, int]:
    """Ledgers of each digest, closed and open, striped, empty; with the number of entries of each."""
    counts = {}
    for digest in DIGESTS:
        counts[await observer.write((2, 2, 2), COUNT, digest, "pw")] = COUNT
    counts[await observer.write((3, 2, 2), COUNT)] = COUNT
    counts[await observer.write((2, 2, 2), COUNT, closed=False)] = COUNT
    counts[await observer.write((3, 3, 2), 0)] = 0
    counts[await observer.write((3, 3, 2), 0, closed=False)] = 0
    return counts


def test_ledgers_of_a_bookie_killed_with_nine_get_all_their_copies_back(
    tmp_path: Path, servers: str, running: ExitStack
) -> None:
    bookies = our_bookies(running, tmp_path, servers, 4)
    recovery = running.enter_context(AutoRecoveryProcess(tmp_path / "recovery", servers)).start()

    async def scenario() -> None:
        async with observing(servers) as observer:
            await observer.until_present(*bookies)
            counts = await some_ledgers(observer)
            lost = await observer.most_named(counts)
            bookies[lost].kill()
            await observer.until_none_names(lost, counts)
            await observer.until_whole(counts)

    asyncio.run(scenario())
    told = recovery.metrics()
    assert told["replication_worker_NUM_FULL_OR_PARTIAL_LEDGERS_REPLICATED"] > 0
    assert told["replication_worker_NUM_ENTRIES_WRITTEN"] >= COUNT
    assert told["auditor_NUM_UNDER_REPLICATED_LEDGERS"] > 0
    assert recovery.stop() == 0
    assert "level=critical" not in recovery.log.read_text()


def test_bookies_repair_the_ledgers_of_those_that_are_killed_also_of_the_auditors_own(
    tmp_path: Path, servers: str, running: ExitStack
) -> None:
    settings = "autoRecoveryDaemonEnabled=true", "openLedgerRereplicationGracePeriod=500"
    bookies = our_bookies(running, tmp_path, servers, 5, *settings)

    async def scenario() -> None:
        async with observing(servers) as observer:
            await observer.until_present(*bookies)
            counts = await some_ledgers(observer)
            for _ in range(2):
                auditor = await elected_auditor(observer.store)
                assert auditor is not None
                bookies.pop(auditor).kill()
                await observer.until_none_names(auditor, counts)
                await observer.until_whole(counts)

    asyncio.run(scenario())
    for bookie in bookies.values():
        assert bookie.stop() == 0
        assert "level=critical" not in bookie.log.read_text()


def test_apaches_autorecovery_repairs_ledgers_on_our_bookies(
    tmp_path: Path, servers: str, running: ExitStack, classpath: str
) -> None:
    bookies = our_bookies(running, tmp_path, servers, 4)
    java = running.enter_context(JavaAutoRecovery(tmp_path / "java", servers, classpath)).start()

    async def scenario() -> None:
        async with observing(servers) as observer:
            await observer.until_present(*bookies)
            await observer.until(lambda: _is_elected(observer, java.name))
            counts = await some_ledgers(observer)
            lost = await observer.most_named(counts)
            bookies[lost].kill()
            await observer.until_none_names(lost, counts)
            await observer.until_whole(counts)

    asyncio.run(scenario())


def test_our_autorecovery_repairs_ledgers_on_apaches_bookies(
    tmp_path: Path, servers: str, running: ExitStack, classpath: str
) -> None:
    first = our_bookies(running, tmp_path, servers, 1)  # makes the layout
    java = {}
    for number in range(3):
        bookie = running.enter_context(JavaProcess(tmp_path / f"java-{number}", servers, classpath)).start()
        java[bookie.name] = bookie
    running.enter_context(AutoRecoveryProcess(tmp_path / "recovery", servers)).start()

    async def scenario() -> None:
        async with observing(servers) as observer:
            await observer.until_present(*java)
            next(iter(first.values())).stop()
            await observer.until(lambda: _are(observer, set(java)))
            counts = {
                await observer.write((2, 2, 2), COUNT, digest, "pw", closed=closed): COUNT
                for digest in DIGESTS
                for closed in (True, False)
            }
            lost = await observer.most_named(counts)
            java[lost].kill()
            await observer.until_none_names(lost, counts)
            await observer.until_whole(counts)

    asyncio.run(scenario())


@pytest.mark.parametrize("first", ["ours", "apaches"])
def test_ours_and_apaches_elect_one_auditor_and_the_other_takes_over(
    tmp_path: Path, servers: str, running: ExitStack, classpath: str, first: str
) -> None:
    bookies = our_bookies(running, tmp_path, servers, 4)
    ours = AutoRecoveryProcess(tmp_path / "recovery", servers)
    java = JavaAutoRecovery(tmp_path / "java", servers, classpath)
    one: AutoRecoveryProcess | JavaAutoRecovery = ours if first == "ours" else java
    two: AutoRecoveryProcess | JavaAutoRecovery = java if first == "ours" else ours

    async def scenario() -> None:
        async with observing(servers) as observer:
            await observer.until_present(*bookies)
            running.enter_context(one)
            one.start()
            await observer.until(lambda: _is_elected(observer, one.name))
            running.enter_context(two)
            two.start()
            await observer.until(lambda: _votes(observer, 2))
            assert await elected_auditor(observer.store) == one.name
            counts = {await observer.write((2, 2, 2), COUNT): COUNT for _ in range(6)}
            lost, other = list(bookies)[:2]
            bookies[lost].kill()
            await observer.until_none_names(lost, counts)
            one.kill()
            await observer.until(lambda: _is_elected(observer, two.name))
            bookies[other].kill()
            await observer.until_none_names(other, counts)
            await observer.until_whole(counts)

    asyncio.run(scenario())


async def _is_elected(observer: Observer, name: str) -> bool:
    return await elected_auditor(observer.store) == name


async def _votes(observer: Observer, count: int) -> bool:
    return len(await observer.store.children("/ledgers/underreplication/auditorelection")) == count


async def _are(observer: Observer, names: set[str]) -> bool:
    return set(observer.bookies) == names
