"""F46: a broker that is killed at any step of a compaction: the newest of each key is there, and no ledger is left."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest

from bookkeeper.ledgers import LedgerWriter
from broker.compaction.compacted_topic import COMPACTION_CURSOR, LEDGER_PROPERTY
from broker.topic.statistics.compaction_stats import CompactionState
from ports.loop.side_by_side import unbroken
from tests.broker.compaction.compaction_world import CompactedWorld, newest
from tests.broker.compaction.messages import single
from tests.broker.topic.topic_world import run

_STEP_S = 0.01


@pytest.mark.parametrize("steps", range(0, 40, 2))
def test_f46_a_crash_leaves_the_old_or_the_new(steps: int) -> None:
    async def scenario() -> None:
        world = CompactedWorld(_STEP_S)
        await world.open()
        for number in range(40):
            await world.publish(single(f"k{number % 9}", b"%d" % number))
        assert await world.compact() is CompactionState.SUCCESS
        for number in range(40, 60):
            await world.publish(single(f"k{number % 7}", b"" if number % 7 == 3 else b"%d" % number))
        table = newest(await world.read())
        world.topic.compaction.trigger()
        await asyncio.sleep(steps * _STEP_S + _STEP_S / 2)
        old = world.topic
        await world.restart()
        stopping = asyncio.create_task(old.compaction.stop())  # it may wait for an answer that died with its process
        await asyncio.sleep(1)
        stopping.cancel()
        current = world.log.cursors[COMPACTION_CURSOR].properties[LEDGER_PROPERTY]
        assert newest(await world.read()) == table
        extra = set(world.compacted_ledgers()) - {current}
        assert all(not world.storage.shared.ledgers[each].runs for each in extra), "only one that was never mentioned is left"
        assert await world.compact() is CompactionState.SUCCESS
        assert newest(await world.read()) == table

    run(scenario)


async def _made_whatever_becomes_of_who_asked(create: Callable[..., Coroutine[Any, Any, LedgerWriter]], *asked: Any) -> Any:
    return await unbroken(create(*asked))


@pytest.mark.parametrize("steps", range(24))
@pytest.mark.parametrize("end", ["unloaded", "deleted"])
def test_a_topic_that_ends_amid_a_compaction_leaves_no_ledger_that_nobody_knows(steps: int, end: str) -> None:
    """One that was made, and not named yet when the run was cancelled, stayed for ever."""

    async def scenario() -> None:
        world = CompactedWorld(_STEP_S)
        await world.open()
        store = world.storage.ledger_store
        store.create = partial(_made_whatever_becomes_of_who_asked, store.create)  # type: ignore[method-assign]  # as metadata are
        for number in range(20):
            await world.publish(single(f"k{number % 9}", b"%d" % number))
        world.topic.compaction.trigger()
        await asyncio.sleep(steps * _STEP_S + _STEP_S / 2)
        if end == "deleted":
            await world.topic.delete(force=True)
            await asyncio.sleep(1)
            assert world.compacted_ledgers() == []
            return
        await world.unload()
        await asyncio.sleep(1)
        current = world.log.cursors[COMPACTION_CURSOR].properties.get(LEDGER_PROPERTY)
        assert world.compacted_ledgers() == ([] if current is None else [current])

    run(scenario)
