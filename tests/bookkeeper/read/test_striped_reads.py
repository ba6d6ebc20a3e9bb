"""Ledgers striped over more bookies than store each entry: bookies are read side by side, each for its own entries alone.

Such a ledger was read an entry at a time, and over a socket each time with hundreds of others that were thrown away.
"""

import asyncio

import pytest

from bookkeeper.client import BookKeeper
from bookkeeper.ledgers import LedgerReader, LedgerUnreadable
from bookkeeper.read import striped_reads
from tests.bookkeeper.fake_bookies import Cluster, FakeBookie, batch, payloads_of
from tests.simulation.worlds import run as on_loop
from wire.bookie.codes import BookieCode
from wire.run import EntryRun

ANSWER_SECONDS = 0.01
COUNT = 300
STRIPED = pytest.mark.parametrize("sizes", [(3, 2, 2), (3, 1, 1), (4, 2, 2), (5, 3, 2)])


class FarBookie(FakeBookie):
    """Answers after a while; knows how many entries it was asked for that it does not have."""

    def __init__(self) -> None:
        super().__init__()
        self.asked_in_vain = 0

    async def read(self, ledger_id: int, first_entry_id: int, count_max: int, bytes_max: int) -> EntryRun:
        await asyncio.sleep(ANSWER_SECONDS)
        run = await super().read(ledger_id, first_entry_id, count_max, bytes_max)
        self.asked_in_vain += count_max - run.count
        return run


async def written(sizes: tuple[int, int, int]) -> tuple[dict[str, FarBookie], LedgerReader]:
    """Bookies in the order of the ensemble, and the closed ledger."""
    cluster = Cluster(*sizes)
    bookies = {name: FarBookie() for name in cluster.bookies}
    cluster.bookies = dict(bookies)
    client: BookKeeper = cluster.client()
    await client.initialise()
    writer = await client.create({})
    for number in range(COUNT):
        await writer.append(batch(b"%d" % number))
    await writer.close()
    return bookies, await client.open(writer.ledger_id)


async def read_all(reader: LedgerReader, count_max: int = COUNT, bytes_max: int = 1 << 30) -> int:
    """All of it, from the first entry on; how many reads that took."""
    found: list[bytes] = []
    reads = 0
    while len(found) < COUNT:
        run = await reader.read(len(found), count_max, bytes_max)
        assert run.first_entry_id == len(found)
        assert run.count <= count_max
        found += payloads_of(run)
        reads += 1
    assert found == [b"%d" % number for number in range(COUNT)]
    return reads


@STRIPED
def test_a_window_is_read_in_the_time_of_one_answer_and_no_bookie_is_asked_for_what_it_has_not(
    sizes: tuple[int, int, int],
) -> None:
    async def scenario() -> None:
        bookies, reader = await written(sizes)
        began = asyncio.get_running_loop().time()
        assert await read_all(reader) == 1
        assert asyncio.get_running_loop().time() - began < 2 * ANSWER_SECONDS
        assert sum(bookie.asked_in_vain for bookie in bookies.values()) == 0

    on_loop(lambda _: scenario())


@STRIPED
def test_all_is_read_whatever_the_bounds(sizes: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(striped_reads, "ENTRIES_MAX", 50)

    async def scenario() -> None:
        _, reader = await written(sizes)
        assert await read_all(reader) == COUNT / 50
        assert await read_all(reader, count_max=7) == -(-COUNT // 7)
        assert await read_all(reader, bytes_max=1) == COUNT
        run = await reader.read(4, 40, 1000)
        assert 10 < run.count < 40
        assert run.size_bytes <= 1000

    on_loop(lambda _: scenario())


@pytest.mark.parametrize("place", range(3))
def test_with_a_bookie_away_the_others_have_all_of_it(place: int) -> None:
    async def scenario() -> None:
        bookies, reader = await written((3, 2, 2))
        list(bookies.values())[place].failures["read"] = BookieCode.ETOOMANYREQUESTS
        assert await read_all(reader) == 1

    on_loop(lambda _: scenario())


def test_a_read_stops_before_an_entry_that_no_bookie_has_and_only_that_entry_fails() -> None:
    async def scenario() -> None:
        bookies, reader = await written((3, 2, 2))
        for bookie in bookies.values():
            if 100 in bookie.ledgers[reader.ledger_id].entries:
                bookie.lose(reader.ledger_id, 100)
        assert payloads_of(await reader.read(0, COUNT, 1 << 30)) == [b"%d" % number for number in range(100)]
        with pytest.raises(LedgerUnreadable):
            await reader.read(100, COUNT, 1 << 30)
        assert (await reader.read(101, COUNT, 1 << 30)).last_entry_id == COUNT - 1

    on_loop(lambda _: scenario())


def test_a_read_that_is_cancelled_leaves_no_reads_behind() -> None:
    async def scenario() -> None:
        _, reader = await written((3, 2, 2))
        others = asyncio.all_tasks()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(0, COUNT, 1 << 30), ANSWER_SECONDS / 2)
        assert asyncio.all_tasks() == others

    on_loop(lambda _: scenario())
