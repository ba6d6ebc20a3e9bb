"""A disk that is full or fails refuses single writes of the embedded store, and the store goes on."""

import asyncio
import errno
import os
import random
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import pytest

from metadata.embedded import EmbeddedStore
from metadata.sqlite_rows import LoadedRows, RowsRefused, SqliteRows
from metadata.store import MUST_NOT_EXIST, BadVersion, MetadataError, NoNode, Notification, Stat, StoreFull
from metadata.tree import Node
from ports.clock import RealClock
from ports.kept_room import BYTES_MAX, KeptRoom
from simulation.disk import SimDisk
from simulation.loop import SimLoop


class FullRows:
    """Rows on a disk that takes writes only while `has_room`; `stored` is what a start would find."""

    def __init__(self) -> None:
        self.has_room = True
        self.stored: dict[str, Node] = {}
        self.counters: dict[str, int] = {}

    async def write(self, nodes: Mapping[str, Node | None], counters: Mapping[str, int]) -> None:
        await asyncio.sleep(0)
        if not self.has_room:
            raise RowsRefused("database or disk is full")
        for path, node in nodes.items():
            if node is None:
                self.stored.pop(path, None)
            else:
                self.stored[path] = node
        self.counters.update(counters)

    async def close(self) -> None:
        pass


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scenario)


def test_a_write_that_the_disk_refuses_fails_alone_and_leaves_nothing() -> None:
    async def scenario() -> None:
        rows, ended, heard = FullRows(), list[str](), list[Notification]()
        store = EmbeddedStore(rows, LoadedRows([], {}), RealClock(), ended.append)
        await store.put("/a", b"1")
        store.watch("/", heard.append)
        rows.has_room = False
        refused = [store.put("/a", b"2"), store.put("/a/b", b""), store.delete("/a", 1), store.put("/q/", b"", sequential=True)]
        for answer in await asyncio.gather(*refused, return_exceptions=True):
            assert isinstance(answer, StoreFull)
            assert "make room on its disk" in str(answer)
        found = await store.get("/a")
        assert found is not None
        assert (found.value, found.stat.version) == (b"1", 0)
        assert await store.children("/") == ["a"]
        assert not heard
        assert not ended
        rows.has_room = True
        assert (await store.put("/a", b"3", 0)).version == 1
        assert (await store.put("/q/", b"", sequential=True)).path == "/q/0000000000"
        await store.close()

    run(scenario())


def test_a_write_judged_by_one_that_the_disk_refuses_is_refused_with_it() -> None:
    async def scenario() -> None:
        rows = FullRows()
        store = EmbeddedStore(rows, LoadedRows([], {}), RealClock())
        rows.has_room = False
        first = asyncio.ensure_future(store.put("/a", b"", MUST_NOT_EXIST))
        await asyncio.sleep(0)
        second = asyncio.ensure_future(store.put("/a", b"", MUST_NOT_EXIST))  # BadVersion, were the first one there
        answers = await asyncio.gather(first, second, return_exceptions=True)
        assert [type(answer) for answer in answers] == [StoreFull, StoreFull]
        rows.has_room = True
        assert (await store.put("/a", b"", MUST_NOT_EXIST)).version == 0

    run(scenario())


@pytest.mark.parametrize("seed", range(20))
def test_what_is_answered_is_stored_and_what_is_refused_is_not(seed: int) -> None:
    """Beside a plain dictionary that only knows the answers."""

    async def scenario() -> None:
        rng, rows, expected = random.Random(seed), FullRows(), dict[str, bytes]()
        store = EmbeddedStore(rows, LoadedRows([], {}), RealClock())

        async def one(path: str, value: bytes | None) -> None:
            try:
                if value is None:
                    await store.delete(path)
                else:
                    await store.put(path, value)
            except (NoNode, BadVersion, StoreFull):
                return
            if value is None:
                del expected[path]
            else:
                expected[path] = value

        for round_number in range(60):
            rows.has_room = rng.random() < 0.6
            works = [one(f"/n{rng.randrange(4)}", rng.choice((None, b"%d" % round_number))) for _ in range(rng.randint(1, 6))]
            await asyncio.gather(*works)
            assert {path: node.value for path, node in rows.stored.items() if path != "/"} == expected
        rows.has_room = True
        await store.put("/end", b"")
        assert await store.children("/") == sorted([*(path[1:] for path in expected), "end"])

    run(scenario())


def test_a_full_database_refuses_and_takes_writes_again_when_there_is_room(tmp_path: Path) -> None:
    async def scenario() -> None:
        rows, loaded = await SqliteRows.open(str(tmp_path / "metadata"))
        store = EmbeddedStore(rows, loaded, RealClock())
        await store.put("/small", b"1")
        connection = rows._connection
        connection.execute("PRAGMA max_page_count = 12")
        large = [
            await asyncio.gather(store.put(f"/large{number}", b"x" * 4000), return_exceptions=True) for number in range(50)
        ]
        assert isinstance(large[0][0], Stat)
        assert isinstance(large[-1][0], StoreFull)
        kept = [name for name in await store.children("/") if name.startswith("large")]
        await store.delete(f"/{kept[0]}")
        await store.put("/small", b"2")
        connection.execute("PRAGMA max_page_count = 1000000")
        await store.put("/afterwards", b"")
        await store.close()
        again = await EmbeddedStore.open(str(tmp_path / "metadata"))
        assert await again.children("/") == sorted(["afterwards", "small", *kept[1:]])
        await again.close()

    run(scenario())


def test_damage_still_ends_the_store(tmp_path: Path) -> None:
    async def scenario() -> None:
        rows, loaded = await SqliteRows.open(str(tmp_path / "metadata"))
        ended: list[str] = []
        store = EmbeddedStore(rows, loaded, RealClock(), ended.append)
        rows._connection.execute("DROP TABLE counters")
        with pytest.raises(MetadataError, match="closed"):
            await store.put("/a", b"")
        assert len(ended) == 1

    run(scenario())


def on_small_disk(work: Callable[[SimDisk], Coroutine[Any, Any, None]]) -> None:
    loop = SimLoop(random.Random(1))
    disk = SimDisk(loop, random.Random(2))
    disk.capacity_bytes = BYTES_MAX

    async def main() -> None:
        await disk.make_directories("/data")
        await work(disk)

    loop.run_until_complete(main())
    loop.close()


def test_room_kept_back_is_a_share_of_the_disk_and_is_given_up_once() -> None:
    async def scenario(disk: SimDisk) -> None:
        room = KeptRoom(disk, "/data")
        assert await room.keep()
        assert disk.free_bytes() == BYTES_MAX - BYTES_MAX // 64
        has_given_up = await room.give_up()
        assert has_given_up
        assert disk.free_bytes() == BYTES_MAX
        assert not await room.give_up()
        filler = await disk.open("/data/filler", create=True)
        await filler.allocate(BYTES_MAX - BYTES_MAX // 32)
        assert not await room.keep()
        assert not await disk.exists("/data/kept-room")
        with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
            await filler.allocate(BYTES_MAX + 4096)

    on_small_disk(scenario)


def test_the_room_kept_back_is_what_a_full_disk_has_for_one_write_more() -> None:
    async def scenario(disk: SimDisk) -> None:
        rows, room = FullRows(), KeptRoom(disk, "/data")
        store = EmbeddedStore(rows, LoadedRows([], {}), RealClock(), None, room)
        await store.put("/a", b"1")
        assert room.is_kept
        full_write = rows.write

        async def write(nodes: Mapping[str, Node | None], counters: Mapping[str, int]) -> None:
            rows.has_room = not room.is_kept
            await full_write(nodes, counters)

        rows.write = write  # type: ignore[method-assign]
        await store.put("/a", b"2")
        assert not await disk.exists("/data/kept-room")
        await asyncio.sleep(5)  # virtual
        await store.put("/a", b"3")
        assert await disk.exists("/data/kept-room"), "there is room again, so some of it is kept"

    on_small_disk(scenario)
