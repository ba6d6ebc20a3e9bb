"""The ZooKeeper that metadata tests share, and stores on it, each test below a root of its own."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator
from functools import partial

import pytest

from metadata.zookeeper.kazoo_session import KazooSession
from metadata.zookeeper.store import ZooKeeperStore
from tests.metadata.zookeeper.zookeeper_server import SESSION_SECONDS, ZooKeeperProcess, need_zookeeper

_roots = itertools.count()
_opened: list[tuple[asyncio.AbstractEventLoop, ZooKeeperStore]] = []

OpenZooKeeper = Callable[[], Awaitable[ZooKeeperStore]]


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperProcess]:
    """One server for all tests that only use it."""
    need_zookeeper()
    with ZooKeeperProcess(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server.start()
        assert server.stop() == 0, server.log.read_text()


async def open_on(servers: str, timeout_seconds: float = 20.0) -> ZooKeeperStore:
    store = await ZooKeeperStore.open(partial(KazooSession, servers, SESSION_SECONDS), timeout_seconds, servers)
    _opened.append((asyncio.get_running_loop(), store))
    return store


async def close_opened() -> None:
    """The stores of this test, whatever became of it: a thread or socket that is left fails the next test."""
    while _opened:
        loop, store = _opened.pop()
        if loop is asyncio.get_running_loop():  # a test with a loop of another kind closes its own
            await store.close()


@pytest.fixture
def open_zookeeper(zookeeper: ZooKeeperProcess) -> OpenZooKeeper:
    """Each call is another client of the same tree."""
    root = f"/test-{next(_roots)}"

    async def open_store() -> ZooKeeperStore:
        return await open_below(zookeeper, root)

    return open_store


async def open_below(server: ZooKeeperProcess, root: str) -> ZooKeeperStore:
    """A store whose root is a node of the server, made when it is missing."""
    whole = await open_on(server.servers)
    if not await whole.exists(root):
        await whole.put(root, b"")
    await whole.close()
    return await open_on(server.servers + root)
