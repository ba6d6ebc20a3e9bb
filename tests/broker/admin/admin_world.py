"""A broker service with real topics on ledgers in memory, and its admin app, called as an ASGI server calls it."""

import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from broker.admin.app import admin_app
from broker.dispatchers.settings import DispatcherSettings
from broker.policies.topic_settings import TopicSettings
from broker.service.addresses import Advertised
from broker.service.broker_service import BrokerService
from broker.service.settings import BrokerSettings
from broker.service.topic_name import TopicName
from broker.topic.opening import Topics
from broker.transaction.snapshots.snapshots import Snapshots
from metadata.memory import MemoryStore
from ports.clock import RealClock
from tests.broker.topic.memory_ledger import MemoryLedger, MemoryLedgers
from tests.managed_ledger.fake_ledgers import FakeLedgers, FakeLedgerStore
from tests.simulation import worlds

ADVERTISED = Advertised("pulsar://broker:6650", "http://broker:8080")
TOPICS = "/admin/v2/persistent/public/default"
NAME = "persistent://public/default"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    """Header values by name in lower case."""
    body: bytes
    header_names: tuple[str, ...]
    """Header names as they go out."""

    @property
    def json(self) -> Any:
        assert self.headers["content-type"] == "application/json"
        return json.loads(self.body)

    @property
    def refused(self) -> tuple[int, str]:
        """Status and reason."""
        assert list(self.json) == ["reason"]
        return self.status, self.json["reason"]


class StoredMemoryLedgers(MemoryLedgers):
    """With the nodes in metadata by which the service knows what there is."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__()
        self._store = store

    async def open(self, name: str, *, create: bool = True) -> MemoryLedger:
        ledger = await super().open(name, create=create or await self._store.exists(f"/managed-ledgers/{name}"))
        await self._store.put(f"/managed-ledgers/{name}", b"stored")

        async def delete(beside: Callable[[], Awaitable[None]] | None = None) -> None:
            if beside is not None:
                await beside()
            del self.by_name[name]
            await self._store.delete(f"/managed-ledgers/{name}")

        ledger.delete = delete  # type: ignore[method-assign]  # what a stored ledger does beyond one in memory
        return ledger


class AdminWorld:
    """One broker. Paths in `topic` are below public/default."""

    headers: Sequence[tuple[bytes, bytes]] = ()
    """Headers of each request."""

    def __init__(self, settings: BrokerSettings | None = None, topic_settings: TopicSettings | None = None) -> None:
        clock = RealClock()
        self.store = MemoryStore(clock)
        ledgers = StoredMemoryLedgers(self.store)
        topics = Topics(ledgers, topic_settings or TopicSettings(), DispatcherSettings(), clock)
        self.service = BrokerService(settings or BrokerSettings(), self.store, clock, topics, FakeLedgerStore(FakeLedgers()))
        topics.persistent.store_snapshots_in(Snapshots(self.service, topic_settings or TopicSettings(), clock).of)
        self.app = admin_app(self.service, self.store, "9.8.7")

    async def call(self, method: str, path: str, body: Any = None, *, raw: bytes | None = None) -> Answer:
        path, _, query = path.partition("?")
        content = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        scope = {"type": "http", "method": method, "path": unquote(path), "raw_path": path.encode()}
        scope |= {
            "query_string": query.encode(),
            "headers": list(self.headers),
            "http_version": "1.1",
            "scheme": "http",
            "root_path": "",
        }
        unread = [{"type": "http.request", "body": part, "more_body": True} for part in (content[:3], content[3:])]
        unread.append({"type": "http.request", "body": b"", "more_body": False})
        sent: list[Any] = []

        async def receive() -> Any:
            return unread.pop(0)

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        names = tuple(key.decode() for key, _ in sent[0]["headers"])
        headers = {key.decode().lower(): value.decode("latin-1") for key, value in sent[0]["headers"]}
        return Answer(sent[0]["status"], headers, b"".join(part["body"] for part in sent[1:]), names)

    async def get(self, path: str) -> Answer:
        return await self.call("GET", path)

    async def topic(self, method: str, path: str, body: Any = None) -> Answer:
        return await self.call(method, f"{TOPICS}/{path}", body)

    async def done(self, method: str, path: str, body: Any = None) -> None:
        answer = await self.topic(method, path, body)
        assert (answer.status, answer.body) == (204, b"")

    async def loaded(self, topic: str) -> Any:
        return await self.service.lifecycle.topic(TopicName.parse(topic), may_create=True)


def play(
    scenario: Callable[[AdminWorld], Coroutine[Any, Any, None]],
    settings: BrokerSettings | None = None,
    topic_settings: TopicSettings | None = None,
) -> None:
    """Runs a scenario in virtual time, on a started broker."""

    async def whole() -> None:
        world = AdminWorld(settings, topic_settings)
        await world.service.bootstrap_standalone(ADVERTISED)
        await world.service.start(ADVERTISED)
        await scenario(world)
        await world.service.close()

    worlds.run(lambda _: whole())
