"""A disk that is full or fails refuses single writes of the embedded store, and the store goes on."""

import asyncio
import random
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from metadata.embedded import EmbeddedStore
from metadata.sqlite_rows import KEPT_BYTES_MAX, LoadedRows, RowsRefused, SqliteRows
from metadata.store import MUST_NOT_EXIST, BadVersion, MetadataError, NoNode, Notification, Stat, StoreFull
from metadata.tree import Node
from ports.clock import RealClock
from tests.bookie.disk_proofs.mounts import LoopMount, need_loop_mounts


class FullRows:
    """Rows on a disk that takes writes only while `has_room`; `stored` is what a start would find."""

    def __init__(self) -> None:
        self.has_room = True
        self.stored: dict[str, Node] = {}
        self.counters: dict[str, int] = {}

    async def write(self, nodes: Mapping[str, Node | None], counters: Mapping[str, int], *, grows: bool) -> None:
        await asyncio.sleep(0)
        if not self.has_room:
            raise RowsRefused("database or disk is full")
        for path, node in nodes.items():
            if node is None:
                self.stored.pop(path, None)
            else:
                self.stored[path] = node
        self.counters.update(counters)

    async def keep_room(self) -> None:
        pass

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
        works = [store.put("/a", b"2"), store.put("/a/b", b""), store.delete("/a", 1), store.put("/q/", b"", sequential=True)]
        *refused, judged_again, last = await asyncio.gather(*works, return_exceptions=True)
        assert isinstance(judged_again, BadVersion), "judged by what is stored, not by a put that was refused"
        for answer in (*refused, last):
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


class NoGrowthRows(FullRows):
    """Rows that have only kept room: `grows` is refused."""

    async def write(self, nodes: Mapping[str, Node | None], counters: Mapping[str, int], *, grows: bool) -> None:
        self.has_room = not grows
        await super().write(nodes, counters, grows=grows)


def test_a_write_that_adds_a_node_is_refused_alone_among_those_that_end_save_and_delete() -> None:
    async def scenario() -> None:
        rows = NoGrowthRows()
        nodes = [(path, Node(b"", 0, 0, 0)) for path in ("/ledger", "/cursor", "/gone", "/later")]
        store = EmbeddedStore(rows, LoadedRows(nodes, {}), RealClock())
        works = [store.put("/new", b""), store.put("/ledger", b"ended", 0), store.put("/new2", b""), store.delete("/gone", 0)]
        first = [asyncio.ensure_future(work) for work in works]
        await asyncio.sleep(0)
        second = [
            asyncio.ensure_future(work) for work in (store.put("/cursor", b"7"), store.get("/ledger"), store.put("/later", b""))
        ]
        answers = await asyncio.gather(*first, *second, return_exceptions=True)
        assert [type(answer) for answer in answers[:3:2]] == [StoreFull, StoreFull]
        assert not [answer for answer in (answers[1], *answers[3:]) if isinstance(answer, BaseException)]
        assert {path: node.value for path, node in rows.stored.items()} == {"/ledger": b"ended", "/cursor": b"7", "/later": b""}
        assert await store.children("/") == ["cursor", "later", "ledger"]
        assert store.refused_because
        await store.close()

    run(scenario())


def test_calls_are_committed_in_their_order_after_a_refusal() -> None:
    async def scenario() -> None:
        store = EmbeddedStore(NoGrowthRows(), LoadedRows([("/a", Node(b"", 0, 0, 0))], {}), RealClock())
        works = [store.put("/new", b"")] + [store.put("/a", b"%d" % number, number) for number in range(50)]
        tasks = [asyncio.ensure_future(work) for work in works]
        await asyncio.wait(tasks[:1])
        tasks += [asyncio.ensure_future(store.put("/a", b"%d" % number, number)) for number in range(50, 100)]
        refused, *stats = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(refused, StoreFull)
        assert [stat.version for stat in stats if isinstance(stat, Stat)] == list(range(1, 101))

    run(scenario())


@pytest.mark.parametrize("seed", range(20))
def test_answered_writes_are_stored_and_refused_ones_are_not(seed: int) -> None:
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
            await asyncio.gather(store.put(f"/large{number}", b"x" * 40_000), return_exceptions=True) for number in range(100)
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
        await store.close()

    run(scenario())


def fill(path: Path) -> None:
    """Somebody else takes what is free, to the last block."""
    with path.open("ab", buffering=0) as file:
        for size in (1 << 20, 1 << 16, 4096, 1):
            with suppress(OSError):
                while file.write(bytes(size)):
                    pass


async def keep_room_now(store: EmbeddedStore) -> None:
    store._keep_room()
    assert store._keeping is not None
    await store._keeping


def test_the_metadata_are_written_while_nothing_is_free_and_over_clean_stops(tmp_path: Path) -> None:
    """Somebody takes at once whatever becomes free."""
    need_loop_mounts()

    async def scenario(mount: Path) -> None:
        directory = str(mount / "metadata")
        store = await EmbeddedStore.open(directory)
        await store.put("/old", b"x" * 3000)
        await keep_room_now(store)
        for life in range(4):
            for number in range(100):
                fill(mount / "filler")
                await store.put("/changed", b"%d %d" % (life, number) * 300)
            await store.put(f"/made{life}", b"x" * 3000)
            await store.close()
            fill(mount / "filler")
            store = await EmbeddedStore.open(directory)
            assert await store.children("/") == ["changed", *(f"made{each}" for each in range(life + 1)), "old"]
            assert store.refused_because == ""
        await store.close()

    with LoopMount(32) as mount:
        run(scenario(mount.path))


def test_a_disk_that_is_filled_right_after_the_first_start_lets_nodes_change_and_go(tmp_path: Path) -> None:
    """No new node takes what ledgers that end, cursors and deletes need; not one block becomes free meanwhile."""
    need_loop_mounts()

    async def scenario(mount: Path) -> None:
        store = await EmbeddedStore.open(str(mount / "metadata"))
        await asyncio.gather(*(store.put(f"/ledger{number}", b"x" * 200) for number in range(50)))
        fill(mount / "filler")
        made = 0

        async def make() -> None:
            nonlocal made
            for made in range(10_000):
                await store.put(f"/made{made}", b"x" * 3000)

        with pytest.raises(StoreFull, match="room that is kept is for"):
            await make()
        assert made >= 10
        for number in range(400):
            fill(mount / "filler")
            await store.put(f"/ledger{number % 50}", b"%d" % number * 60)
        more = [store.put(f"/more{number}", b"x" * 3000) for number in range(200)]
        ended = [store.put(f"/ledger{number}", b"ended" * 40) for number in range(50)]
        gone = [store.delete(f"/made{number}") for number in range(made)]
        answers = await asyncio.gather(*more, *ended, *gone, return_exceptions=True)
        assert isinstance(answers[0], StoreFull)
        assert not [answer for answer in answers[len(more) :] if isinstance(answer, BaseException)]
        (mount / "filler").unlink()
        await store.put("/made", b"there is room")
        await store.close()

    with LoopMount(32) as mount:
        run(scenario(mount.path))


def test_room_is_kept_again_when_what_was_kept_is_used_and_there_is_some(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = await EmbeddedStore.open(str(tmp_path / "metadata"))
        await store.put("/small", b"1")
        await keep_room_now(store)
        connection = store._rows._connection  # type: ignore[attr-defined]

        def free_pages() -> int:
            return int(connection.execute("PRAGMA freelist_count").fetchone()[0])

        kept = free_pages()
        assert kept * 4096 >= KEPT_BYTES_MAX - 4096
        await asyncio.gather(*[store.put(f"/large{number}", b"x" * 4000) for number in range(kept)])
        assert free_pages() < kept // 2
        await keep_room_now(store)
        assert free_pages() >= kept
        await store.close()
        log = tmp_path / "metadata" / "metadata.sqlite-wal"
        assert log.stat().st_size >= KEPT_BYTES_MAX, "a log that is empty, with its room"
        assert not any(log.read_bytes()[:32])

    run(scenario())


@pytest.mark.parametrize("is_log_there", [False, True])
def test_a_log_that_a_stop_left_under_its_second_name_is_put_back_empty_or_removed(tmp_path: Path, is_log_there: bool) -> None:
    async def scenario() -> None:
        directory = tmp_path / "metadata"
        store = await EmbeddedStore.open(str(directory))
        await store.put("/a", b"1")
        log, kept = directory / "metadata.sqlite-wal", directory / "metadata.sqlite-wal-kept"
        content = log.read_bytes()
        await store.close()
        if not is_log_there:
            log.unlink()
        kept.write_bytes(content)
        store = await EmbeddedStore.open(str(directory))
        assert not kept.exists()
        assert await store.children("/") == ["a"]
        await store.put("/b", b"2")
        await store.close()

    run(scenario())
