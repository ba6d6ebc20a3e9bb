"""Default partitions of topics without storage, the same whichever broker is asked first: over a socket."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import NoReturn

import pytest

from broker.connection.listener import Listener
from broker.connection.settings import ConnectionSettings
from broker.errors import BrokerError, ServerError
from broker.service.addresses import Advertised, Answer
from broker.service.broker_service import BrokerService
from broker.service.errors import BundleUnsettled
from broker.service.ownership.owners import SoleOwner
from broker.service.settings import BrokerSettings
from broker.service.topic_name import TopicName
from metadata.memory import MemoryStore, SharedTree
from ports.clock import RealClock
from tests.broker.connection.peer import play_for_real
from tests.broker.fake_topics import FakeTopics
from tests.managed_ledger.fake_ledgers import FakeLedgers, FakeLedgerStore

PASSING = TopicName.parse("non-persistent://public/default/t")
PARTITIONED = BrokerSettings(allow_auto_topic_creation_type="partitioned", default_num_partitions=3)
NONE_PASSING = BrokerSettings(enable_non_persistent_topics=False)


@dataclass
class Elsewhere(SoleOwner):
    """Every topic is at the other broker."""

    other: Advertised
    is_redirect: bool = False
    asked: list[TopicName] = field(default_factory=list)

    def serves(self, topic: TopicName) -> bool:
        return False

    async def find(self, topic: TopicName, listener: str, *, authoritative: bool) -> Answer:
        self.asked.append(topic)
        return Answer(self.other, self.is_redirect)


@dataclass
class Two:
    """`asked` serves nothing, `owner` everything; it listens."""

    asked: BrokerService
    owner: BrokerService
    listener: Listener
    elsewhere: Elsewhere


async def started(running: AsyncExitStack, shared: SharedTree, settings: BrokerSettings) -> tuple[BrokerService, Listener]:
    clock = RealClock()
    store = MemoryStore(clock, shared, alone=False)
    service = BrokerService(settings, store, clock, FakeTopics(store), FakeLedgerStore(FakeLedgers()))
    listener = Listener(service, ConnectionSettings())
    await listener.listen("127.0.0.1", 0)
    running.push_async_callback(listener.close)
    advertised = Advertised(f"pulsar://127.0.0.1:{listener.port}", f"http://127.0.0.1:{listener.port + 1}")
    await service.bootstrap_standalone(advertised)
    await service.start(advertised)
    running.push_async_callback(service.close)
    return service, listener


def play(scenario: Callable[[Two], Awaitable[None]], of_owner: BrokerSettings = PARTITIONED) -> None:
    async def whole() -> None:
        async with asyncio.timeout(60), AsyncExitStack() as running:
            shared = SharedTree()
            owner, listener = await started(running, shared, of_owner)
            asked, _ = await started(running, shared, PARTITIONED)
            asked.lookup.owners = elsewhere = Elsewhere(owner.lookup.advertised)
            await scenario(Two(asked, owner, listener, elsewhere))

    play_for_real(whole)


@pytest.mark.parametrize("is_redirect", [False, True])
def test_a_topic_that_stores_nothing_gets_its_partitions_from_whoever_serves_it(is_redirect: bool) -> None:
    async def scenario(two: Two) -> None:
        two.elsewhere.is_redirect = is_redirect
        for _ in range(2):
            assert (await two.asked.creation.partitions(PASSING, may_create=True)).partitions == 3
        assert (await two.owner.catalogue.partitioned_topics.get(PASSING)).partitions == 3
        assert two.elsewhere.asked.count(PASSING) == 1, "what is stored needs no question"

    play(scenario)


def test_one_that_is_there_without_partitions_stays_so() -> None:
    async def scenario(two: Two) -> None:
        await two.owner.lifecycle.topic(PASSING, may_create=True)
        assert (await two.asked.creation.partitions(PASSING, may_create=True)).partitions == 0
        assert (await two.owner.catalogue.partitioned_topics.get(PASSING)).partitions == 0

    play(scenario)


def test_a_partitions_request_that_may_not_create_creates_nothing() -> None:
    async def scenario(two: Two) -> None:
        assert (await two.asked.creation.partitions(PASSING, may_create=False)).partitions == 0
        assert (await two.owner.catalogue.partitioned_topics.get(PASSING)).partitions == 0
        assert PASSING not in two.elsewhere.asked

    play(scenario)


def test_a_refusal_is_told_with_its_code() -> None:
    async def scenario(two: Two) -> None:
        with pytest.raises(BrokerError, match="unable to load non-persistent") as refused:
            await two.asked.creation.partitions(PASSING, may_create=True)
        assert refused.value.code is ServerError.NOT_ALLOWED

    play(scenario, NONE_PASSING)


async def not_ready(topic: TopicName, *, may_create: bool) -> NoReturn:
    raise BrokerError(ServerError.SERVICE_NOT_READY, "The broker is stopping")


@pytest.mark.parametrize("why", ["nobody listens", "it has no port for this", "it is not ready"])
def test_an_owner_that_cannot_be_asked_makes_clients_ask_again_and_not_leave(why: str) -> None:
    async def scenario(two: Two) -> None:
        match why:
            case "nobody listens":
                await two.listener.close()
            case "it has no port for this":
                two.elsewhere.other = Advertised("", "http://127.0.0.1:1", "pulsar+ssl://127.0.0.1:2")
            case _:
                two.owner.creation.partitions = not_ready  # type: ignore[method-assign]
        with pytest.raises(BundleUnsettled) as refused:
            await two.asked.creation.partitions(PASSING, may_create=True)
        assert refused.value.code is ServerError.METADATA

    play(scenario)
