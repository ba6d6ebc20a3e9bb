"""Readers of ledgers that are written: what they see, when, and from whom."""

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest

from bookkeeper.client import BookKeeper
from bookkeeper.ledgers import LedgerError, NoSuchEntry
from bookkeeper.network.network_bookie import NetworkBookie
from bookkeeper.ports import PolledLac
from bookkeeper.settings import BookKeeperSettings
from metadata.memory import MemoryStore, SharedTree
from ports.network.read_buffer import SharedRoom
from tests.bookie.server.client import Served, served
from tests.bookkeeper.fake_bookies import Cluster, FixedClock, batch, payloads_of, run
from tests.simulation.worlds import run as on_loop
from wire.bookie.codes import BookieCode
from wire.bookie.digests import DigestType, lac_record

DIGESTS = pytest.mark.parametrize("digest", ["CRC32", "MAC", "CRC32C", "DUMMY"])


def on_one_bookie(
    scenario: Callable[[Served, BookKeeper, BookKeeper, NetworkBookie], Coroutine[Any, Any, None]],
    interval_ms: int = 100,
    digest: str = "CRC32C",
) -> None:
    """With the client of the writer, that of the reader, and the bookie."""

    async def run_it(at: Served) -> None:
        shared = SharedTree()
        settings = BookKeeperSettings(
            1, 1, 1, digest, managed_ledger_password="pw", bookkeeper_explicit_lac_interval_in_mills=interval_ms
        )
        bookies = [NetworkBookie("b1", "localhost", at.listener.port, SharedRoom(), 5.0) for _ in range(2)]
        clients = [
            BookKeeper({"b1:3181": bookie}, MemoryStore(FixedClock(), shared, alone=False), settings, Random(number))
            for number, bookie in enumerate(bookies)
        ]
        await clients[0].initialise()
        try:
            await scenario(at, clients[0], clients[1], bookies[1])
        finally:
            for bookie in bookies:
                await bookie.close()

    served(run_it)


@DIGESTS
def test_a_reader_of_an_open_ledger_sees_the_last_entry_when_its_writer_rests(digest: str) -> None:
    async def scenario(at: Served, writing: BookKeeper, reading: BookKeeper, bookie: NetworkBookie) -> None:
        writer = await writing.create({})
        for number in range(3):
            await writer.append(batch(b"%d" % number))
        reader = await reading.follow(writer.ledger_id)
        assert await reader.refresh() == 1, "what the last entry's header says"
        with pytest.raises(NoSuchEntry):
            await reader.read(2, 1, 1000)
        await asyncio.sleep(0.2)
        assert await reader.refresh() == 2
        assert payloads_of(await reader.read(0, 3, 1 << 20)) == [b"0", b"1", b"2"]
        assert not reader.is_closed
        await writer.append(batch(b"3"))
        await writer.close()
        assert (await reader.refresh(), reader.is_closed) == (3, True)

    on_one_bookie(scenario, digest=digest)


def test_a_reader_that_waits_is_told_as_soon_as_more_is_confirmed() -> None:
    async def scenario(at: Served, writing: BookKeeper, reading: BookKeeper, bookie: NetworkBookie) -> None:
        loop = asyncio.get_running_loop()
        writer = await writing.create({})
        await writer.append(batch(b"0"))
        await asyncio.sleep(0.2)
        reader = await reading.follow(writer.ledger_id)
        assert await reader.refresh() == 0
        waiting = asyncio.ensure_future(reader.wait(20_000))
        await asyncio.sleep(10)
        await writer.append(batch(b"1"))
        began = loop.time()
        assert await waiting == 1
        assert loop.time() - began < 0.2, "the interval, and the way"
        assert await reader.wait(3_000) == 1
        assert 3 <= loop.time() - began < 4
        waiting = asyncio.ensure_future(reader.wait(60_000))
        await asyncio.sleep(1)
        await writer.close()
        began = loop.time()
        await waiting
        assert reader.is_closed
        assert loop.time() - began < 6

    on_one_bookie(scenario)


def test_without_explicit_word_the_last_entry_is_seen_with_the_next_one_or_at_the_end() -> None:
    async def scenario(at: Served, writing: BookKeeper, reading: BookKeeper, bookie: NetworkBookie) -> None:
        writer = await writing.create({})
        reader = await reading.follow(writer.ledger_id)
        assert await reader.refresh() == -1
        for number in range(2):
            await writer.append(batch(b"%d" % number))
            await asyncio.sleep(1)
            assert await reader.refresh() == number - 1
        await writer.close()
        assert await reader.refresh() == 1

    on_one_bookie(scenario, interval_ms=0)


def test_an_explicit_word_with_another_digest_is_not_believed() -> None:
    async def scenario(at: Served, writing: BookKeeper, reading: BookKeeper, bookie: NetworkBookie) -> None:
        writer = await writing.create({})
        await writer.append(batch(b"0"))
        key = writing._master_key
        await bookie.write_lac(writer.ledger_id, 9, key, lac_record(writer.ledger_id, 9, DigestType.CRC32C)[:-1] + b"!")
        reader = await reading.follow(writer.ledger_id)
        with pytest.raises(LedgerError, match="digest"):
            await reader.refresh()

    on_one_bookie(scenario, interval_ms=0)


def test_a_writer_that_has_failed_tells_nobody_any_more() -> None:
    async def scenario(at: Served, writing: BookKeeper, reading: BookKeeper, bookie: NetworkBookie) -> None:
        writer = await writing.create({})
        await writer.append(batch(b"0"))
        await reading.open(writer.ledger_id)
        with pytest.raises(LedgerError):
            await writer.append(batch(b"1"))
        await asyncio.sleep(1)
        assert not [task for task in asyncio.all_tasks() if "explicit" in task.get_name()]

    on_one_bookie(scenario)


def test_a_writer_that_rests_or_was_let_go_of_has_no_timer_and_the_next_entry_is_told_again() -> None:
    async def scenario(at: Served, writing: BookKeeper, reading: BookKeeper, bookie: NetworkBookie) -> None:
        writer = await writing.create({})
        for number in range(2):
            await writer.append(batch(b"%d" % number))
            await asyncio.sleep(1)
            assert await (await reading.follow(writer.ledger_id)).refresh() == number
            assert not [task for task in asyncio.all_tasks() if "explicit" in task.get_name()]

    on_one_bookie(scenario)


def test_bookies_that_speak_no_version_3_are_read_all_the_same_and_one_that_fails_keeps_nobody() -> None:
    async def scenario() -> None:
        cluster = Cluster(3, 2, 2)
        writer = await cluster.writer()
        reader = await cluster.client().follow(writer.ledger_id)
        assert await reader.refresh() == -1
        for number in range(5):
            await writer.append(batch(b"%d" % number))
        cluster.all[0].failures["last_entry_id"] = BookieCode.EIO
        assert await reader.refresh() == 3
        found = [payload for at in range(4) for payload in payloads_of(await reader.read(at, 1, 100))]
        assert found == [b"0", b"1", b"2", b"3"]
        assert await reader.wait(1) == 3
        for bookie in cluster.all:
            bookie.failures["last_entry_id"] = BookieCode.EIO
        with pytest.raises(LedgerError, match="not known"):
            await reader.refresh()
        await writer.close()
        assert await reader.refresh() == 4

    run(scenario())


def test_a_bookie_that_hangs_holds_no_reader_up_for_long() -> None:
    async def scenario() -> None:
        cluster = Cluster(3, 3, 2)
        writer = await cluster.writer()
        for number in range(3):
            await writer.append(batch(b"%d" % number))
        cluster.all[0].hangs.add("read")
        reader = await cluster.client().follow(writer.ledger_id)
        loop = asyncio.get_running_loop()
        began = loop.time()
        assert await reader.refresh() == 1
        assert loop.time() - began < 2
        assert len(asyncio.all_tasks()) <= 4, "nobody waits for it any more"
        cluster.all[1].failures["last_entry_id"] = cluster.all[2].failures["last_entry_id"] = BookieCode.EIO
        asking = asyncio.ensure_future(reader.refresh())
        await asyncio.sleep(5)
        assert not asking.done(), "its own time-out ends this, where nobody else can tell"
        asking.cancel()
        await asyncio.wait([asking])

    on_loop(lambda _: scenario())


def test_a_wait_is_over_in_time_though_a_bookie_hangs() -> None:
    async def scenario(at: Served, writing: BookKeeper, reading: BookKeeper, bookie: NetworkBookie) -> None:
        writer = await writing.create({})
        await writer.append(batch(b"0"))
        reader = await reading.follow(writer.ledger_id)
        hung: asyncio.Future[PolledLac] = asyncio.get_running_loop().create_future()

        async def hang(ledger_id: int, previous_lac: int, timeout_ms: int) -> PolledLac:
            return await asyncio.shield(hung)

        bookie.wait_lac = hang  # type: ignore[method-assign]  # of this test alone
        began = asyncio.get_running_loop().time()
        assert await reader.wait(3_000) == -1
        assert asyncio.get_running_loop().time() - began < 6
        hung.cancel()

    on_one_bookie(scenario, interval_ms=0)
