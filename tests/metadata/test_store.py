"""Promises of every metadata store, for each of its forms; then those that the embedded one adds."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from metadata.embedded import EmbeddedStore
from metadata.memory import MemoryStore, SharedTree
from metadata.sqlite_rows import LoadedRows, RowsFailed
from metadata.store import (
    MUST_NOT_EXIST,
    BadVersion,
    Change,
    Delete,
    MetadataError,
    MetadataStore,
    NoNode,
    NotEmpty,
    Notification,
    Put,
    StoreClosed,
    absent,
)
from metadata.tree import Node
from tests.metadata.conftest import close_opened


class TickingClock:
    def __init__(self) -> None:
        self.ms = 1000

    def now_ms(self) -> int:
        self.ms += 1
        return self.ms


Open = Callable[[], Awaitable[MetadataStore]]


@pytest.fixture(params=["memory", "embedded", "zookeeper"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Each call is another life of the process that owns the store."""
    shared, clock = SharedTree(), TickingClock()

    async def memory() -> MetadataStore:
        return MemoryStore(clock, shared)

    async def embedded() -> MetadataStore:
        return await EmbeddedStore.open(str(tmp_path / "metadata"), clock)

    if request.param == "zookeeper":
        on_zookeeper: Open = request.getfixturevalue("open_zookeeper")
        return on_zookeeper
    return memory if request.param == "memory" else embedded


def run(work: Awaitable[None]) -> None:
    async def bounded() -> None:
        try:
            async with asyncio.timeout(90):
                await work
        finally:
            await close_opened()

    asyncio.run(bounded())


def test_values_versions_and_times_outlive_the_process(open_store: Open) -> None:
    async def scenario() -> None:
        store = await open_store()
        first = await store.put("/a/b", b"1")
        second = await store.put("/a/b", b"2", first.version)
        assert (first.version, second.version) == (0, 1)
        assert (
            second.created_ms == first.created_ms <= second.modified_ms
        )  # ZooKeeper's clock is the machine's: maybe the same ms
        await store.close()
        store = await open_store()
        found = await store.get("/a/b")
        assert found is not None
        assert (found.value, found.stat) == (b"2", second)
        made = await store.get("/a")
        assert made is not None
        assert made.value == b""
        assert await store.children("/a") == ["b"]
        assert await store.children("/") == ["a"]
        assert not await store.exists("/c")
        assert await store.get("/c") is None
        assert await store.children("/c") == []
        await store.close()

    run(scenario())


def test_a_version_that_does_not_fit_is_refused(open_store: Open) -> None:
    async def scenario() -> None:
        store = await open_store()
        await store.put("/a/b", b"", MUST_NOT_EXIST)
        for refused, error in (
            (store.put("/a/b", b"", MUST_NOT_EXIST), BadVersion),
            (store.put("/a/b", b"", 1), BadVersion),
            (store.put("/x", b"", 0), BadVersion),
            (store.delete("/a/b", 7), BadVersion),
            (store.delete("/a"), NotEmpty),
            (store.delete("/x"), NoNode),
            (store.put("x", b""), MetadataError),
        ):
            with pytest.raises(error):
                await refused
        await store.delete("/a/b", 0)
        await store.delete("/a")
        await store.close()

    run(scenario())


def test_a_commit_is_all_or_nothing(open_store: Open) -> None:
    async def scenario() -> None:
        store = await open_store()
        with pytest.raises(NoNode):
            await store.commit([Put("/a", b"1"), Delete("/b")])
        assert not await store.exists("/a")
        stats = await store.commit([Put("/a", b"1"), Put("/b", b"2"), Delete("/b")])
        assert [stat and stat.path for stat in stats] == ["/a", "/b", None]
        await store.close()
        store = await open_store()
        assert await store.children("/") == ["a"]
        await store.close()

    run(scenario())


def test_a_commit_can_demand_that_a_node_is_not_there_and_leaves_none(open_store: Open) -> None:
    async def scenario() -> None:
        store = await open_store()
        await store.commit([*absent("/others/t"), Put("/mine/t", b"1", MUST_NOT_EXIST)])
        assert await store.get("/others/t") is None
        with pytest.raises(BadVersion):
            await store.commit([*absent("/mine/t"), Put("/others/t", b"2", MUST_NOT_EXIST)])
        found = await store.get("/mine/t")
        assert (found is not None and found.value, await store.exists("/others/t")) == (b"1", False)
        with pytest.raises(BadVersion):
            await store.commit([*absent("/others/t"), Put("/mine/t", b"3", MUST_NOT_EXIST)])
        await store.close()

    run(scenario())


def test_numbers_go_on_after_a_restart_and_ephemeral_nodes_do_not(open_store: Open) -> None:
    async def scenario() -> None:
        store = await open_store()
        paths = [(await store.put("/q/n-", b"", ephemeral=True, sequential=True)).path for _ in range(3)]
        assert paths == ["/q/n-0000000000", "/q/n-0000000001", "/q/n-0000000002"]
        await store.delete(paths[0])
        with pytest.raises(MetadataError):
            await store.put(f"{paths[1]}/child", b"")
        await store.close()
        store = await open_store()
        assert await store.children("/q") == []
        assert (await store.put("/q/n-", b"", sequential=True)).path == "/q/n-0000000003"
        await store.close()
        store = await open_store()
        assert await store.children("/q") == ["n-0000000003"]
        await store.close()

    run(scenario())


def test_watchers_hear_of_changes_at_and_below_their_prefix_in_order(open_store: Open) -> None:
    async def scenario() -> None:
        store = await open_store()
        heard: list[Notification] = []
        end = store.watch("/a", heard.append)
        await asyncio.gather(store.put("/a/b", b"1"), store.put("/ab", b""), store.put("/a/b", b"2"), store.delete("/a/b"))
        await asyncio.sleep(0)
        assert [(each.change, each.path) for each in heard] == [
            (Change.CREATED, "/a"),
            (Change.CREATED, "/a/b"),
            (Change.MODIFIED, "/a/b"),
            (Change.DELETED, "/a/b"),
        ]
        end()
        await store.put("/a/c", b"")
        await asyncio.sleep(0)
        assert len(heard) == 4
        await store.close()

    run(scenario())


def test_a_closed_store_refuses_and_closing_twice_is_fine(open_store: Open) -> None:
    async def scenario() -> None:
        store = await open_store()
        write = asyncio.ensure_future(store.put("/a", b""))
        await asyncio.sleep(0)
        await store.close()
        await store.close()
        assert (await write).version == 0
        for call in (store.put("/b", b""), store.get("/a"), store.children("/"), store.exists("/a"), store.delete("/a")):
            with pytest.raises(StoreClosed):
                await call

    run(scenario())


def test_sessions_on_a_shared_tree_end_on_their_own_and_hear_of_each_other() -> None:
    async def scenario() -> None:
        shared, clock = SharedTree(), TickingClock()
        one, two = MemoryStore(clock, shared, alone=False), MemoryStore(clock, shared, alone=False)
        heard: list[Notification] = []
        two.watch("/s", heard.append)
        await one.put("/s/one", b"", ephemeral=True)
        await two.put("/s/two", b"", ephemeral=True)
        shared.end_session(one.session, clock.now_ms())
        await asyncio.sleep(0)
        assert await two.children("/s") == ["two"]
        assert (heard[-1].change, heard[-1].path) == (Change.DELETED, "/s/one")
        restarted = MemoryStore(clock, shared)  # alone: what those before left behind is over
        assert await restarted.children("/s") == []

    run(scenario())


def test_answers_that_are_delayed_keep_the_order_of_the_writes() -> None:
    async def scenario() -> None:
        delays = iter([0.01, 0.0, 0.005])
        store = MemoryStore(TickingClock(), answer_delay=lambda: next(delays))
        answered: list[int] = []

        async def put(number: int) -> None:
            await store.put("/a", b"%d" % number)
            answered.append(number)

        await asyncio.gather(*(put(number) for number in range(3)))
        assert answered == [0, 1, 2]

    run(scenario())


class HeldRows:
    """Rows whose commits wait to be let through, or fail."""

    def __init__(self) -> None:
        self.commits: list[tuple[Mapping[str, Node | None], Mapping[str, int]]] = []
        self.gates: list[asyncio.Future[None]] = []

    async def write(self, nodes: Mapping[str, Node | None], counters: Mapping[str, int], *, grows: bool) -> None:
        self.commits.append((dict(nodes), dict(counters)))
        self.gates.append(asyncio.get_running_loop().create_future())
        await self.gates[-1]

    async def keep_room(self) -> None:
        pass

    async def close(self) -> None:
        pass


async def held_store() -> tuple[EmbeddedStore, HeldRows, list[str]]:
    rows, failures = HeldRows(), list[str]()
    return EmbeddedStore(rows, LoadedRows([], {}), TickingClock(), failures.append), rows, failures


async def ticks() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_nothing_is_told_before_it_is_durable() -> None:
    """No answer, no watch, no read, and no refusal that follows from it."""

    async def scenario() -> None:
        store, rows, _ = await held_store()
        heard: list[Notification] = []
        store.watch("/", heard.append)
        early = [asyncio.ensure_future(store.put("/a/b", b"1"))]
        await ticks()
        late = [
            asyncio.ensure_future(work)
            for work in (store.get("/a/b"), store.children("/a"), store.exists("/a"), store.put("/a/b", b"", MUST_NOT_EXIST))
        ]
        await ticks()
        assert not any(task.done() for task in early + late)
        assert not heard
        assert await store.get("/elsewhere") is None
        rows.gates[0].set_result(None)
        await ticks()
        found, children, exists, refused = await asyncio.gather(*late, return_exceptions=True)
        assert (found.value, children, exists) == (b"1", ["b"], True)  # type: ignore[union-attr]
        assert isinstance(refused, BadVersion)
        assert len(heard) == 2
        assert early[0].done()

    run(scenario())


def test_writes_that_wait_during_a_commit_form_one_commit() -> None:
    async def scenario() -> None:
        store, rows, _ = await held_store()
        first = [asyncio.ensure_future(store.put(f"/a/{number}", b"")) for number in range(100)]
        await ticks()
        second = [asyncio.ensure_future(store.put("/b", b"%d" % number)) for number in range(900)]
        await ticks()
        assert len(rows.commits) == 1
        rows.gates[0].set_result(None)
        await asyncio.gather(*first)
        await ticks()
        assert not any(task.done() for task in second)
        assert len(rows.commits) == 2
        assert list(rows.commits[1][0]) == ["/b"]
        rows.gates[1].set_result(None)
        assert [stat.version for stat in await asyncio.gather(*second)] == list(range(900))

    run(scenario())


def test_a_failed_commit_ends_the_store_and_fails_all_that_wait() -> None:
    async def scenario() -> None:
        store, rows, failures = await held_store()
        tasks = [asyncio.ensure_future(store.put("/a", b"1"))]
        await ticks()
        tasks += [asyncio.ensure_future(store.put("/b", b"1")), asyncio.ensure_future(store.put("/c", b"1"))]
        read = asyncio.ensure_future(store.get("/a"))
        await ticks()
        rows.gates[0].set_exception(RowsFailed("disk full"))
        for answer in await asyncio.gather(*tasks, read, return_exceptions=True):
            assert isinstance(answer, StoreClosed)
            assert "disk full" in str(answer)
        with pytest.raises(StoreClosed, match="disk full"):
            await store.get("/b")
        assert len(failures) == 1
        assert len(rows.commits) == 1
        await store.close()

    run(scenario())


def test_ephemeral_nodes_cost_no_commit_when_they_go() -> None:
    async def scenario() -> None:
        store, rows, _ = await held_store()
        made = asyncio.ensure_future(store.put("/q/n-", b"", ephemeral=True, sequential=True))
        await ticks()
        ((nodes, counters),) = rows.commits
        assert (list(nodes), counters) == (["/q"], {"/q": 1})
        rows.gates[0].set_result(None)
        await store.delete((await made).path)
        assert len(rows.commits) == 1

    run(scenario())


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = await EmbeddedStore.open(str(tmp_path / "metadata"))
        await store.put("/a", b"")
        with pytest.raises(MetadataError, match="in use by another process"):
            await EmbeddedStore.open(str(tmp_path / "metadata"))
        await store.close()

    run(scenario())


def test_a_file_that_lacks_a_table_is_refused_with_that_reason_each_time_it_is_opened(tmp_path: Path) -> None:
    async def scenario() -> None:
        path = tmp_path / "metadata" / "metadata.sqlite"
        store = await EmbeddedStore.open(str(path.parent))
        await store.close()
        connection = sqlite3.connect(path)
        connection.execute("DROP TABLE nodes")
        connection.close()
        reasons = []
        for _ in range(2):
            with pytest.raises(MetadataError) as refused:
                await EmbeddedStore.open(str(path.parent))
            reasons.append(refused.value)  # with its traceback: nothing may be open that this keeps alive
        assert ["no such table: nodes" in str(reason) for reason in reasons] == [True, True], reasons

    run(scenario())


def test_a_file_that_is_no_database_or_of_a_later_version_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        path = tmp_path / "metadata" / "metadata.sqlite"
        store = await EmbeddedStore.open(str(path.parent))
        await store.close()
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA user_version = 2")
        connection.close()
        with pytest.raises(MetadataError, match="later version"):
            await EmbeddedStore.open(str(path.parent))
        path.write_bytes(b"not a database" * 100)
        with pytest.raises(MetadataError, match="cannot be opened"):
            await EmbeddedStore.open(str(path.parent))

    run(scenario())
