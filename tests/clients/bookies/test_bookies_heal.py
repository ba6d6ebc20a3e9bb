"""A bookie process whose entry logs are damaged: readers get what is right, and its scrub heals it from the others."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bookkeeper.client import BookKeeper
from bookkeeper.network.network_bookies import NetworkBookies
from bookkeeper.settings import BookKeeperSettings
from ports.rng import RealRng
from tests.clients.bookie_process import BookieProcess
from tests.clients.bookies_under_fire import READ_BYTES_MAX, payload
from tests.metadata.conftest import open_on
from tests.metadata.zookeeper.zookeeper_server import ZooKeeperProcess, need_zookeeper
from wire.run import batch_of

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]

COUNT = 300
POLL_SECONDS = 0.05
SECONDS_MAX = 60.0
SCRUB = ("localScrubInterval=1", "localScrubRateLimit=0")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[BookieProcess]]]:
    need_zookeeper()
    with ExitStack() as running:
        servers = running.enter_context(ZooKeeperProcess(tmp_path / "zookeeper")).start().servers
        uri = f"zk+hierarchical://{servers}/ledgers"
        names = [tmp_path / f"bookie-{number}" for number in range(3)]
        yield servers, [running.enter_context(BookieProcess(name, uri, "zkTimeout=2000", *SCRUB)).start() for name in names]


def damage(bookie: BookieProcess) -> int:
    """Every 30,000th byte of its entry logs is another; how many."""
    count = 0
    for path in (bookie.directory / "ledgers").rglob("*.log"):
        data = bytearray(path.read_bytes())
        for offset in range(10_000, len(data), 30_000):
            data[offset] ^= 0x10
            count += 1
        path.write_bytes(data)
    return count


def test_a_damaged_bookie_serves_nothing_wrong_and_is_healed_by_the_others(cluster: tuple[str, list[BookieProcess]]) -> None:
    servers, bookies = cluster
    one, *others = bookies

    async def scenario() -> None:
        store = await open_on(servers)
        known = NetworkBookies(store)
        ledgers = BookKeeper(known, store, BookKeeperSettings(3, 3, 3), RealRng())
        try:
            await ledgers.initialise()
            await known.open()
            writer = await ledgers.create({})
            await asyncio.gather(*(writer.append(batch_of((payload(index),))) for index in range(COUNT)))
            await writer.close()
            assert one.stop() == 0
            assert damage(one) > 5
            one.start()
            await read_all(ledgers, writer.ledger_id)
            await until_repaired(one)
            for bookie in others:
                bookie.kill()
            await read_all(ledgers, writer.ledger_id)
        finally:
            await known.close()
            await ledgers.close()
            await store.close()

    asyncio.run(scenario())


async def read_all(ledgers: BookKeeper, ledger_id: int) -> None:
    reader = await ledgers.open(ledger_id)
    at = 0
    while at < COUNT:
        run = await reader.read(at, COUNT - at, READ_BYTES_MAX)
        for entry_id in range(at, at + run.count):
            assert bytes(run.payload(entry_id)) == payload(entry_id)
        at += run.count


async def until_repaired(bookie: BookieProcess) -> None:
    """Waits for the line in the bookie's log, which alone tells of the repair."""
    async with asyncio.timeout(SECONDS_MAX):
        while "damage is repaired" not in bookie.log.read_text():  # noqa: ASYNC110  # another process
            await asyncio.sleep(POLL_SECONDS)
