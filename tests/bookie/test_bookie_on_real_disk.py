"""A bookie on the disk of this machine: what was added and fenced is there after a restart."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from bookie.bookie import Bookie
from bookie.upkeep.garbage import GarbageCollector
from bookie.web.app import bookie_app, port_of, serve_bookie_web
from bookie.web.routes import BookieRoutes
from metadata.memory import MemoryStore
from ports.clock import RealClock
from ports.disk.real_disk import RealDisk
from ports.rng import RealRng
from tests.bookie.real_bookie import small_settings
from tests.bookie.runs import KEY, entries_of, sealed
from wire.bookie.codes import BookieCode, BookieError


def with_bookies(path: Path, scenario: Callable[[Callable[[], Awaitable[Bookie]]], Awaitable[None]]) -> None:
    """`scenario` gets a call that starts a bookie on the directories, anew each time."""

    async def run() -> None:
        disk = RealDisk()
        settings = small_settings(path)

        async def start() -> Bookie:
            bookie = Bookie(disk, settings, RealClock(), RealRng())
            await bookie.start()
            return bookie

        try:
            await scenario(start)
        finally:
            disk.close()

    asyncio.run(run())


@pytest.mark.parametrize("clean", [True, False])
def test_added_entries_are_read_after_a_restart(tmp_path: Path, clean: bool) -> None:
    runs = [sealed(7, first, 10, 1000) for first in range(0, 1000, 10)]

    async def scenario(start: Callable[[], Awaitable[Bookie]]) -> None:
        bookie = await start()
        await asyncio.gather(*[bookie.add(run, KEY) for run in runs])
        if clean:
            await bookie.stop()
        again = await start()
        assert await again.last_entry_id(7) == 999
        found: dict[int, bytes] = {}
        while len(found) < 1000:
            run = await again.read(7, len(found), 1000, 1 << 20)
            found.update(entries_of(run))
        assert found == {entry_id: data for run in runs for entry_id, data in entries_of(run).items()}
        with pytest.raises(BookieError) as caught:
            await again.read(7, 1000, 1, 1)
        assert caught.value.code is BookieCode.ENOENTRY
        await again.stop()

    with_bookies(tmp_path, scenario)


def test_a_fence_survives_a_restart(tmp_path: Path) -> None:
    async def scenario(start: Callable[[], Awaitable[Bookie]]) -> None:
        bookie = await start()
        await bookie.add(sealed(7, 0, 5), KEY)
        assert (await bookie.fence(7, KEY))[16:24] == b"\xff" * 8  # -1: the last entry of the run says so
        again = await start()
        with pytest.raises(BookieError) as caught:
            await again.add(sealed(7, 5), KEY)
        assert caught.value.code is BookieCode.EFENCED
        await again.add(sealed(7, 5), KEY, recovery=True)
        assert await again.last_entry_id(7) == 5
        await again.stop()

    with_bookies(tmp_path, scenario)


def test_compaction_and_scrub_on_a_real_disk(tmp_path: Path) -> None:
    async def scenario(start: Callable[[], Awaitable[Bookie]]) -> None:
        bookie = await start()
        for entry_id in range(4):
            await asyncio.gather(*[bookie.add(sealed(ledger_id, entry_id, 1, 40_000), KEY) for ledger_id in (1, 2, 3, 4)])
            await bookie.flush()
        await bookie.delete([1, 2, 3])
        assert await bookie.compactor.run("major") >= 1
        for _ in range(2):
            assert await bookie.scrub.run_round() == []
            for entry_id in range(4):
                assert entries_of(await bookie.read(4, entry_id, 1, 1)) == entries_of(sealed(4, entry_id, 1, 40_000))
            await bookie.stop()
            bookie = await start()
        await bookie.stop()

    with_bookies(tmp_path, scenario)


def test_the_bookies_http_is_served_on_a_socket(tmp_path: Path) -> None:
    async def scenario(start: Callable[[], Awaitable[Bookie]]) -> None:
        bookie = await start()
        collector = GarbageCollector(bookie, MemoryStore(RealClock()), str, "/ledgers", 900)
        routes = BookieRoutes(bookie, collector, "host:3181", {}, lambda: 0)
        server = await serve_bookie_web(bookie_app(routes), "127.0.0.1", 0)
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port_of(server))
            try:
                writer.write(b"GET /heartbeat HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                async with asyncio.timeout(30):
                    answer = await reader.read()
            finally:
                writer.close()
                await writer.wait_closed()
            assert answer.startswith(b"HTTP/1.1 200")
            assert answer.endswith(b"OK\n")
        finally:
            server.close()
            await bookie.stop()

    with_bookies(tmp_path, scenario)
