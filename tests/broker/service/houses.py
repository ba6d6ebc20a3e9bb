"""Brokers that share one tree of metadata, each with topics that are fakes."""

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from broker.service.addresses import Advertised, broker_id
from broker.service.broker_service import BrokerService
from broker.service.load.board import LoadBoard
from broker.service.load.placement.choosing import ByHash, ByLoad, Chooser
from broker.service.load.placement.rules_driver import PlacementPolicies
from broker.service.neighbours.members import Members, broker_data, ownership_data
from broker.service.ownership.absent_owners import Refuses, nobody_refuses
from broker.service.ownership.bundles import Bundle
from broker.service.ownership.namespace_bundles import NamespaceBundles
from broker.service.ownership.own_nodes import OwnNodes
from broker.service.ownership.ownership_driver import BundleOwnership
from broker.service.settings import BrokerSettings
from broker.service.topic_name import TopicName
from metadata.memory import MemoryStore, SharedTree
from metadata.sessions import SessionEvent, SessionListener
from ports.clock import RealClock
from tests.broker.fake_topics import FakeTopics
from tests.managed_ledger.fake_ledgers import FakeLedgers, FakeLedgerStore
from tests.simulation.worlds import run


class FakeSessions:
    def __init__(self) -> None:
        self.listeners: list[SessionListener] = []

    def watch_session(self, listener: SessionListener) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    def tell(self, event: SessionEvent) -> None:
        for listener in list(self.listeners):
            listener(event)


class House:
    """One broker of a cluster."""

    def __init__(self, name: str, shared: SharedTree, *, by_load: bool = False) -> None:
        clock = RealClock()
        self.shared, self.sessions = shared, FakeSessions()
        self.store = MemoryStore(clock, shared, alone=False)
        self.topics = FakeTopics(self.store)
        self.service = BrokerService(BrokerSettings(), self.store, clock, self.topics, FakeLedgerStore(FakeLedgers()))
        self.advertised = Advertised(f"pulsar://{name}:6650", f"http://{name}:8080")
        data = broker_data(self.advertised, {}, "1")
        self.members = Members(self.store, self.sessions, broker_id(self.advertised), data)
        self.bundles = NamespaceBundles(self.store, 4)
        self.board = LoadBoard(self.store, clock)
        self.refuses: Refuses = nobody_refuses
        self.hand_over: Callable[[Bundle], Awaitable[None]] = self.service.load.hand_over
        self.policies = PlacementPolicies(self.store, "c", domains_enabled=True)
        self.chooser: Chooser = ByLoad(self.board, self.policies, 0.85) if by_load else ByHash(self.board)

    async def start(self) -> None:
        await self.service.catalogue.namespaces.bootstrap_standalone("c", 4, "", "")
        owners = BundleOwnership(
            OwnNodes(self.store, self.sessions, ownership_data(self.advertised, {})),
            self.members,
            self.bundles,
            self.chooser,
            self.service.lifecycle.close_topics,
            lambda bundle: self.hand_over(bundle),
            lambda address: self.refuses(address),
        )
        await self.service.start(self.advertised, owners)
        await self.members.join()

    async def stop(self) -> None:
        self.board.close()
        self.policies.close()
        await self.members.leave()
        await self.service.close()
        await self.store.close()

    async def follow(self, topic: TopicName, others: "dict[str, House]") -> "House":
        """Returns the house that serves the topic, found like a client does: here first."""
        house, authoritative = self, False
        for _ in range(3):
            answer = await house.service.lookup.find(topic, authoritative=authoritative)
            house, authoritative = others[answer.address.broker_url], answer.is_redirect
            if not answer.is_redirect:
                return house
        raise AssertionError("redirected for ever")

    async def load(self, topic: TopicName) -> None:
        await self.service.lifecycle.topic(topic, may_create=True)


@asynccontextmanager
async def a_cluster(count: int, *, by_load: bool = False) -> AsyncIterator[dict[str, House]]:
    shared = SharedTree()
    houses = {}
    for index in range(count):
        house = House(f"b{index}", shared, by_load=by_load)
        houses[house.advertised.broker_url] = house
        await house.start()
    try:
        yield houses
    finally:
        for house in houses.values():
            await house.stop()


def play(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    run(lambda _: scenario())


TOPICS = [TopicName.parse(f"persistent://public/default/t{index}") for index in range(24)]
