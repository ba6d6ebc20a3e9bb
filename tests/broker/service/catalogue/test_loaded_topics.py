"""A topic is loaded once at a time, however many callers ask, also while it fails, closes or is removed."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from broker.errors import BrokerError, ServerError
from broker.service.catalogue.loaded_topics import LoadedTopics
from broker.service.topic_name import TopicName
from broker.topic.contract import Topic
from metadata.memory import MemoryStore
from ports.clock import RealClock
from tests.broker.fake_topics import FakeTopic, FakeTopics
from tests.simulation.worlds import run

NAME = TopicName.parse("t")


class House:
    def __init__(self, loads_max: int = 10) -> None:
        self.store = MemoryStore(RealClock())
        self.topics = FakeTopics(self.store)
        self.loaded = LoadedTopics(loads_max, 60)

    async def load(self, *, create: bool = True, name: TopicName = NAME) -> FakeTopic:
        def opened() -> Awaitable[Topic]:
            return self.topics(str(name), name.managed_ledger_name, name.partition_index, create=create)

        topic = await self.loaded.load(name, opened)
        assert isinstance(topic, FakeTopic)
        return topic


def play(scenario: Any) -> None:
    run(lambda _: scenario())


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_those_who_ask_at_the_same_time_get_the_same_topic() -> None:
    async def scenario() -> None:
        house = House()
        found = await asyncio.gather(*(house.load() for _ in range(10)))
        assert len(dict.fromkeys(map(id, found))) == 1
        assert house.topics.opened == [str(NAME)]
        assert await house.load() is found[0]

    play(scenario)


def test_a_load_that_may_create_is_not_refused_with_one_that_may_not() -> None:
    async def scenario() -> None:
        house = House()
        modest, bold = await asyncio.gather(house.load(create=False), house.load(), return_exceptions=True)
        assert isinstance(modest, BrokerError)
        assert isinstance(bold, FakeTopic)
        assert len(house.topics.opened) == 2

    play(scenario)


def test_a_failed_load_fails_all_who_joined_it_and_the_next_tries_again() -> None:
    async def scenario() -> None:
        house = House()
        house.topics.failures.append(BrokerError(ServerError.PERSISTENCE, "disk"))
        found = await asyncio.gather(*(house.load() for _ in range(3)), return_exceptions=True)
        assert [type(each) for each in found] == [BrokerError] * 3
        assert (await house.load()).name == str(NAME)

    play(scenario)


def test_a_load_goes_on_when_the_one_who_began_it_leaves() -> None:
    async def scenario() -> None:
        house = House()
        house.topics.wait = asyncio.Event()
        first, second = asyncio.create_task(house.load()), asyncio.create_task(house.load())
        await settle()
        first.cancel()
        await settle()
        house.topics.wait.set()
        assert (await second).name == str(NAME)
        assert len(house.topics.opened) == 1

    play(scenario)


def test_a_load_that_takes_too_long_is_answered_and_goes_on() -> None:
    async def scenario() -> None:
        house = House()
        house.topics.wait = asyncio.Event()
        with pytest.raises(BrokerError) as caught:
            await house.load()
        assert caught.value.code is ServerError.SERVICE_NOT_READY
        house.topics.wait.set()
        await house.load()
        assert len(house.topics.opened) == 1

    play(scenario)


def test_a_topic_that_closed_itself_is_closed_for_good_and_loaded_again() -> None:
    async def scenario() -> None:
        house = House()
        old = await house.load()
        old.is_closed = True
        assert house.loaded.get(str(NAME)) is None
        new = await house.load()
        assert (new is old, old.close_count) == (False, 1)

    play(scenario)


def test_a_load_waits_for_the_end_of_the_topic_before() -> None:
    async def scenario() -> None:
        house = House()
        old = await house.load()
        gate = asyncio.Event()

        async def delete_slowly(topic: Any) -> None:
            await gate.wait()
            await topic.delete(force=True)
            await house.store.delete(NAME.managed_ledger_path)

        removal = asyncio.create_task(house.loaded.remove(str(NAME), delete_slowly))
        await settle()
        assert house.loaded.get(str(NAME)) is None
        again, modest = asyncio.create_task(house.load()), asyncio.create_task(house.load(create=False))
        await settle()
        assert not again.done()
        gate.set()
        assert await removal
        assert await again is not old
        await asyncio.gather(modest, return_exceptions=True)
        assert old.deletions == [True]

    play(scenario)


def test_a_refused_removal_leaves_the_topic_and_those_who_waited_get_it() -> None:
    async def scenario() -> None:
        house = House()
        old = await house.load()
        old.failure = BrokerError(ServerError.NOT_ALLOWED, "in use")
        removal = asyncio.create_task(house.loaded.remove(str(NAME), lambda topic: topic.delete(force=False)))
        await asyncio.sleep(0)
        waiting = asyncio.create_task(house.load())
        with pytest.raises(BrokerError, match="in use"):
            await removal
        assert await waiting is old
        assert not await house.loaded.remove("persistent://public/default/other", lambda topic: topic.close())

    play(scenario)


def test_a_removal_waits_for_the_load_under_way() -> None:
    async def scenario() -> None:
        house = House()
        house.topics.wait = asyncio.Event()
        loading = asyncio.create_task(house.load())
        await settle()
        removal = asyncio.create_task(house.loaded.remove(str(NAME), lambda topic: topic.delete(force=True)))
        await settle()
        house.topics.wait.set()
        assert await removal
        assert (await loading).deletions == [True]
        assert house.loaded.get(str(NAME)) is None

    play(scenario)


def test_a_load_that_is_refused_is_no_failure_of_the_removal_that_waited_for_it() -> None:
    async def scenario() -> None:
        house = House()
        house.topics.wait = asyncio.Event()
        house.topics.failures.append(BrokerError(ServerError.SERVICE_NOT_READY, "elsewhere"))
        loading = asyncio.create_task(house.load())
        await settle()
        removal = asyncio.create_task(house.loaded.remove(str(NAME), lambda topic: topic.close()))
        await settle()
        house.topics.wait.set()
        with pytest.raises(BrokerError, match="elsewhere"):
            await loading
        assert not await removal, "there was nothing to remove"

    play(scenario)


def test_a_removal_does_not_wait_for_ever() -> None:
    async def scenario() -> None:
        house = House()
        house.topics.wait = asyncio.Event()
        loading = asyncio.create_task(house.load())
        await settle()
        with pytest.raises(BrokerError, match="took more than 60 s"):
            await house.loaded.remove(str(NAME), lambda topic: topic.close())
        house.topics.wait.set()
        await asyncio.gather(loading, return_exceptions=True)

    play(scenario)


def test_no_more_than_so_many_are_loaded_at_the_same_time() -> None:
    async def scenario() -> None:
        house = House(loads_max=2)
        house.topics.wait = asyncio.Event()
        loads = [asyncio.create_task(house.load(name=TopicName.parse(f"t{index}"))) for index in range(5)]
        await settle()
        assert len(house.topics.opened) == 2
        house.topics.wait.set()
        await asyncio.gather(*loads)
        assert len(house.topics.opened) == 5

    play(scenario)


def test_closing_unloads_everything_and_loads_nothing_more() -> None:
    async def scenario() -> None:
        house = House()
        topic = await house.load()
        house.topics.wait = asyncio.Event()
        late = asyncio.create_task(house.load(name=TopicName.parse("late")))
        await settle()
        closing = asyncio.create_task(house.loaded.close())
        await settle()
        house.topics.wait.set()
        assert await closing == []
        assert (await late).is_closed
        assert topic.is_closed
        with pytest.raises(BrokerError, match="stopping"):
            await house.load()

    play(scenario)
