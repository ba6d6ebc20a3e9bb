"""A topic with very many partitions is made in slices, and no client uses it before it is whole."""

import asyncio

import pytest

from broker.service.catalogue import partitions as partitions_module
from broker.service.catalogue.partitions import MARKS_AT_ONCE, PartitionedTopics, check_not_deleted
from broker.service.errors import PartitionsChanged, TopicConflict
from broker.service.topic_name import TopicName
from metadata.memory import MemoryStore
from metadata.store import StoreFull
from ports.clock import RealClock
from tests.cost import Counter

TOPIC = TopicName.parse("persistent://public/default/wide")


def _made(count: int) -> tuple[int, int]:
    """Steps of the longest turn of the loop, and of all."""

    async def scenario() -> tuple[int, int]:
        store = MemoryStore(RealClock())
        topics = PartitionedTopics(store, 0)
        with Counter() as counter:
            made = await topics.create(TOPIC, count, {})
        assert await topics.get(TOPIC) == made
        assert (made.partitions, made.is_deleted) == (count, False)
        assert len(await store.children("/managed-ledgers/public/default/persistent")) == count
        return counter.longest, counter.steps

    return asyncio.run(scenario())


def test_a_turn_of_the_loop_makes_some_of_the_partitions() -> None:
    longest, steps = _made(8 * MARKS_AT_ONCE)
    assert longest < steps / 4, f"{longest} of {steps} in one turn"


@pytest.mark.parametrize("count", [1, MARKS_AT_ONCE, MARKS_AT_ONCE + 1])
def test_all_partitions_are_there_however_many(count: int) -> None:
    _made(count)


def test_a_half_created_partitioned_topic_is_unusable_and_can_be_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions_module, "MARKS_AT_ONCE", 2)

    async def scenario() -> None:
        store = MemoryStore(RealClock())
        topics = PartitionedTopics(store, 0)
        commit, commits = store.commit, list[int]()

        async def failing(operations: object) -> object:
            commits.append(1)
            if len(commits) == 3:
                raise StoreFull("no room")
            return await commit(operations)  # type: ignore[arg-type]

        monkeypatch.setattr(store, "commit", failing)
        with pytest.raises(StoreFull):
            await topics.create(TOPIC, 9, {})
        found = await topics.get(TOPIC)
        assert found.is_deleted
        with pytest.raises(PartitionsChanged):
            check_not_deleted(TOPIC, found)
        with pytest.raises(TopicConflict):
            await topics.create(TOPIC, 9, {})
        assert (await topics.mark_deleted(TOPIC)).is_deleted

    asyncio.run(scenario())
