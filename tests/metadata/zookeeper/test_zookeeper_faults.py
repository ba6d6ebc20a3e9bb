"""A real ZooKeeper that is stopped, continued, killed and restarted, and connections through a proxy that drops them."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from metadata.claim import Hold
from metadata.claim_driver import Claim, ClaimBusy, acquire_lock
from metadata.sessions import SessionEvent
from metadata.store import BadVersion, Change, MetadataError, Notification, OutcomeUnknown, SessionExpired, StoreUnavailable
from metadata.zookeeper.store import COMMIT_BYTES_MAX, ZooKeeperStore
from tests.metadata.conftest import OpenZooKeeper, close_opened, open_below, open_on
from tests.metadata.test_store import run
from tests.metadata.zookeeper.zookeeper_server import SESSION_SECONDS, ZooKeeperProcess, need_zookeeper

_numbers = itertools.count()


class Proxy:
    """Between client and server: `cut` ends the connections, `is_open` false refuses new ones, `is_mute` swallows all bytes."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._writers: list[asyncio.StreamWriter] = []
        self._connections: set[asyncio.Task[None]] = set()
        self.is_open, self.is_mute = True, False
        self.port = 0

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Proxy"]:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            self.is_open = False
            server.close()
            self.cut()
            await asyncio.gather(*self._connections)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)
        self._writers.append(writer)
        with contextlib.suppress(OSError):
            if self.is_open:
                their_reader, their_writer = await asyncio.open_connection("127.0.0.1", self._target)
                self._writers.append(their_writer)
                if writer.is_closing():  # cut meanwhile
                    their_writer.transport.abort()
                await asyncio.gather(self._pass(reader, their_writer), self._pass(their_reader, writer))
        writer.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if not self.is_mute:
                    writer.write(data)
        writer.close()

    def cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()


class Heard:
    """Notifications of a store, and waiting for them."""

    def __init__(self, store: ZooKeeperStore, prefix: str = "/") -> None:
        self.changes: list[tuple[Change, str]] = []
        self.events: list[SessionEvent] = []
        self._news = asyncio.Event()
        store.watch(prefix, self._on_notification)
        store.watch_session(self._on_event)

    def _on_notification(self, notification: Notification) -> None:
        self.changes.append((notification.change, notification.path))
        self._news.set()

    def _on_event(self, event: SessionEvent) -> None:
        self.events.append(event)
        self._news.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._news.clear()
            await self._news.wait()

    async def until_event(self, event: SessionEvent) -> None:
        await self.until(lambda: event in self.events)

    async def until_changed(self, change: Change, path: str) -> None:
        await self.until(lambda: (change, path) in self.changes)


@contextlib.asynccontextmanager
async def behind_proxy(server: ZooKeeperProcess, name: str) -> AsyncIterator[tuple[ZooKeeperStore, ZooKeeperStore, Proxy]]:
    """A store whose connection may be cut, another on the same tree whose may not, and the proxy."""
    root = f"/{name}-{next(_numbers)}"
    steady = await open_below(server, root)
    async with Proxy(server.port).running() as proxy:
        try:
            yield await open_on(f"127.0.0.1:{proxy.port}{root}"), steady, proxy
        finally:
            await close_opened()


def test_changes_missed_during_a_cut_are_told_after_it(zookeeper: ZooKeeperProcess) -> None:
    async def scenario() -> None:
        async with behind_proxy(zookeeper, "cut") as (store, steady, proxy):
            await store.put("/w/stays", b"1")
            await store.put("/w/changes", b"1")
            await store.put("/w/goes/deep", b"1")
            heard = Heard(store, "/w")
            assert await store.children("/w") == ["changes", "goes", "stays"]
            assert await store.exists("/w/goes/deep")
            await store.put("/mine", b"", ephemeral=True)
            proxy.is_open = False
            proxy.cut()
            await heard.until_event(SessionEvent.CONNECTION_LOST)
            await steady.put("/w/changes", b"2")
            await steady.delete("/w/goes/deep")
            await steady.put("/w/new", b"1")
            asked = asyncio.ensure_future(store.get("/w/new"))
            proxy.is_open = True
            await heard.until(lambda: len(heard.changes) >= 3)
            assert sorted(heard.changes, key=str) == sorted(
                [(Change.MODIFIED, "/w/changes"), (Change.DELETED, "/w/goes/deep"), (Change.CREATED, "/w/new")], key=str
            )
            assert heard.events == [SessionEvent.CONNECTION_LOST, SessionEvent.RECONNECTED]
            found = await asked
            assert found is not None
            await steady.put("/w/after", b"")
            await heard.until_changed(Change.CREATED, "/w/after")
            assert await steady.exists("/mine")

    run(scenario())


def test_a_session_that_expires_is_told_lost_before_the_server_lets_others_have_its_nodes(zookeeper: ZooKeeperProcess) -> None:
    async def scenario() -> None:
        async with behind_proxy(zookeeper, "expiry") as (store, steady, proxy):
            heard, others = Heard(store, "/w"), Heard(steady, "/w")
            await store.put("/w/mine", b"", ephemeral=True)
            await others.until_changed(Change.CREATED, "/w/mine")
            first_session = store.session_id
            proxy.is_mute = True
            await heard.until_event(SessionEvent.SESSION_LOST)
            assert (Change.DELETED, "/w/mine") not in others.changes
            made_late = asyncio.ensure_future(store.put("/w/late", b"", ephemeral=True))
            await others.until_changed(Change.DELETED, "/w/mine")
            proxy.is_mute = False
            proxy.cut()
            await heard.until_event(SessionEvent.SESSION_REESTABLISHED)
            assert store.session_id != first_session
            with pytest.raises((SessionExpired, OutcomeUnknown)):
                await made_late
            assert not await steady.exists("/w/late")
            await heard.until_changed(Change.DELETED, "/w/mine")
            await store.put("/w/mine", b"", ephemeral=True)

    run(scenario())


def test_compare_and_set_by_two_clients_through_cuts_loses_and_doubles_nothing(zookeeper: ZooKeeperProcess) -> None:
    async def scenario() -> None:
        async with behind_proxy(zookeeper, "cas") as (store, steady, proxy):
            await store.put("/log", b"")
            acknowledged: list[bytes] = []
            refused: list[bytes] = []

            async def write(client: ZooKeeperStore, name: bytes) -> None:
                for count in range(60):
                    word = b"%s%d " % (name, count)
                    found = await client.get("/log")
                    assert found is not None
                    try:
                        await client.put("/log", found.value + word, found.stat.version)
                    except BadVersion:
                        refused.append(word)
                    except OutcomeUnknown:
                        continue
                    else:
                        acknowledged.append(word)
                    if count % 15 == 10:
                        proxy.cut()

            await asyncio.gather(write(store, b"a"), write(steady, b"b"))
            found = await steady.get("/log")
            assert found is not None
            words = [word + b" " for word in found.value.split()]
            assert len(words) == len(set(words)) == found.stat.version
            assert set(acknowledged) <= set(words)
            assert not set(refused) & set(words)

    run(scenario())


def test_a_lock_passes_on_when_its_session_ends_and_a_second_owner_is_refused(open_zookeeper: OpenZooKeeper) -> None:
    async def scenario() -> None:
        first, second = await open_zookeeper(), await open_zookeeper()
        losses: list[str] = []
        lock = await acquire_lock(first, first, "/locks/one", b"first", lambda: losses.append("first"))
        with pytest.raises(ClaimBusy, match="held by first"):
            await acquire_lock(second, second, "/locks/one", b"second", lambda: losses.append("second"))
        waiting = Claim(second, second, "/locks/one", b"second", lambda hold, holder: None)
        waiting.want()
        assert await waiting.until_decided() is Hold.BUSY
        await first.close()
        await waiting.until_held()
        assert (waiting.hold, waiting.holder) == (Hold.HELD, b"second")
        await waiting.close()
        assert not await second.exists("/locks/one")
        await second.close()
        assert lock.hold is not Hold.FREE
        assert losses == []

    run(scenario())


def test_writes_that_zookeeper_would_refuse_by_hanging_up_are_refused_with_a_reason(open_zookeeper: OpenZooKeeper) -> None:
    async def scenario() -> None:
        store = await open_zookeeper()
        await store.put("/big", b"x" * (COMMIT_BYTES_MAX - 1000))
        with pytest.raises(MetadataError, match="/big: a write of"):
            await store.put("/big", b"x" * (COMMIT_BYTES_MAX + 1))
        with pytest.raises(MetadataError, match="ZooKeeper refused"):
            await store.put("/a/../b", b"")
        await store.put("/ok", b"")
        await store.close()

    run(scenario())


def test_a_server_that_does_not_answer_is_named_with_the_remedy() -> None:
    async def scenario() -> None:
        with pytest.raises(StoreUnavailable, match=r"no answer from 127\.0\.0\.1:1 in 0\.5 s.*interpulse zookeeper"):
            await open_on("127.0.0.1:1", timeout_seconds=0.5)

    run(scenario())


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperProcess]:
    """A server that tests may stop and kill, and leave running."""
    need_zookeeper()
    with ZooKeeperProcess(tmp_path_factory.mktemp("own-zookeeper")) as server:
        yield server.start()


def test_kill_9_of_the_server_and_its_return_lose_nothing(own_server: ZooKeeperProcess) -> None:
    async def scenario() -> None:
        store = await open_on(own_server.servers)
        heard = Heard(store, "/w")
        await store.put("/w/durable", b"1")
        await store.put("/w/mine", b"", ephemeral=True)
        await asyncio.to_thread(own_server.kill)
        await heard.until_event(SessionEvent.CONNECTION_LOST)
        waiting = asyncio.ensure_future(store.put("/w/later", b"", ephemeral=False))
        await asyncio.to_thread(own_server.start)
        await waiting
        found = await store.get("/w/durable")
        assert found is not None
        assert found.value == b"1"
        await heard.until_changed(Change.CREATED, "/w/later")
        await store.close()

    run(scenario())


def test_a_server_that_stands_still_is_noticed_and_found_again(own_server: ZooKeeperProcess) -> None:
    async def scenario() -> None:
        store = await open_on(own_server.servers)
        heard = Heard(store, "/p")
        await store.put("/p/a", b"1")
        own_server.pause()
        begun = asyncio.get_running_loop().time()
        write = asyncio.ensure_future(store.put("/p/a", b"2", 0))
        await heard.until_event(SessionEvent.SESSION_LOST)
        assert asyncio.get_running_loop().time() - begun < SESSION_SECONDS
        own_server.go_on()
        await heard.until_event(SessionEvent.SESSION_REESTABLISHED)
        try:
            stat = await write
            assert stat.version == 1
        except OutcomeUnknown:
            assert await store.exists("/p/a")
        await store.put("/p/b", b"")
        await heard.until_changed(Change.CREATED, "/p/b")
        await store.close()

    run(scenario())
