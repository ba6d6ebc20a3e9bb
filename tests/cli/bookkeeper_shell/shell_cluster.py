"""A cluster for the shell's tests, and what they do with it: ledgers written, commands waited for, HTTP asked."""

import asyncio
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

from bookkeeper.client import BookKeeper
from bookkeeper.ledgers import LedgerWriter
from bookkeeper.network.network_bookies import NetworkBookies
from bookkeeper.settings import BookKeeperSettings
from metadata.zookeeper.kazoo_session import KazooSession
from metadata.zookeeper.store import ZooKeeperStore
from ports.rng import RealRng
from tests.bookie.runs import sealed
from tests.clients.bookie_process import BookieProcess
from wire.run import EntryBatch

T = TypeVar("T")
SETTLE_SECONDS_MAX = 60.0
TICK_MS = 1500
"""Twenty of them are the longest session: a machine that is busy must not lose a bookie."""


class Result(NamedTuple):
    """Result of one command."""

    code: int
    out: str
    err: str


class Cluster(NamedTuple):
    """Processes that run."""

    servers: str
    bookies: list[BookieProcess]
    web_port: int
    """HTTP port of the first bookie; the second's has metrics alone."""
    metrics_port: int

    @property
    def uri(self) -> str:
        return f"zk+hierarchical://{self.servers}/ledgers"


Shell = Callable[..., Result]


async def with_store(servers: str, work: Callable[[ZooKeeperStore], Awaitable[T]]) -> T:
    store = await ZooKeeperStore.open(partial(KazooSession, servers, 30.0), 60.0, servers)
    try:
        return await work(store)
    finally:
        await store.close()


def on_store(cluster: Cluster, work: Callable[[ZooKeeperStore], Awaitable[T]]) -> T:
    return asyncio.run(with_store(cluster.servers, work))


async def with_ledgers(
    store: ZooKeeperStore, work: Callable[[BookKeeper], Awaitable[T]], quorum: int = 2, password: str = ""
) -> T:
    bookies = NetworkBookies(store, 60.0)
    settings = BookKeeperSettings(quorum, quorum, quorum, "CRC32", password, bookkeeper_client_rackaware_policy_enabled=False)
    ledgers = BookKeeper(bookies, store, settings, RealRng())
    try:
        await ledgers.initialise()
        await bookies.open()
        return await work(ledgers)
    finally:
        await bookies.close()
        await ledgers.close()


def a_batch(entry_id: int) -> EntryBatch:
    run = sealed(0, entry_id, 1, 30)
    return EntryBatch(bytearray(run.buffer), run.offsets, run.header_bytes, 1)


def payload(entry_id: int) -> bytes:
    return bytes(sealed(0, entry_id, 1, 30).payload(entry_id))


async def write(ledgers: BookKeeper, count: int) -> LedgerWriter:
    writer = await ledgers.create({"application": b"test"})
    for entry_id in range(count):
        await writer.append(a_batch(entry_id))
    return writer


def a_ledger(cluster: Cluster, count: int = 5, quorum: int = 2, password: str = "") -> int:
    """A closed one."""

    async def work(ledgers: BookKeeper) -> int:
        writer = await write(ledgers, count)
        await writer.close()
        return writer.ledger_id

    return on_store(cluster, lambda store: with_ledgers(store, work, quorum, password))


def entry_ids(result: Result) -> list[int]:
    return [int(entry_id) for entry_id in re.findall(r"Eid=(\d+)", result.out)]


def until(is_so: Callable[[], bool]) -> None:
    """Each call of `is_so` runs a command, which takes long enough."""
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    while not is_so():
        assert time.monotonic() < deadline


def ask(cluster: Cluster, path: str, body: object = None, method: str = "") -> tuple[int, str]:
    """GET, or PUT when there is a body: the status, and the answer's text."""
    data = None if body is None else json.dumps(body).encode()
    url = f"http://127.0.0.1:{cluster.web_port}/api/v1/{path}"
    request = urllib.request.Request(url, data, method=method or ("GET" if body is None else "PUT"))
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def told(cluster: Cluster, path: str, body: object = None, method: str = "") -> Any:
    status, text = ask(cluster, path, body, method)
    assert status == 200, text
    return json.loads(text)
