"""F46: what is compacted of a topic with transactions: nothing that was aborted, and nothing beyond one that is open."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from broker.topic.statistics.compaction_stats import CompactionState
from tests.broker.compaction.compaction_world import CompactedWorld, newest
from tests.broker.compaction.messages import Single, batched, single
from tests.broker.topic.topic_world import run, send_run
from tests.broker.topic.transactions.transaction_world import ONE, THREE, TWO
from wire.transactions import TxnAction, TxnId


async def _published(world: CompactedWorld, *messages: Single, txn_id: TxnId | None = None, is_batched: bool = False) -> None:
    """Each producer is a new one, so that sequence ids say nothing."""
    fields: dict[str, Any] = {} if txn_id is None else dict(zip(("txnid_most_bits", "txnid_least_bits"), txn_id, strict=True))
    sections = [batched(messages, **fields)] if is_batched else [single(*each, **fields) for each in messages]
    producer, _ = await world.producer()
    for number, section in enumerate(sections):
        producer.publish(replace(send_run([number], [section]), txn_id=txn_id))
    await asyncio.sleep(1)
    producer.close()


async def _read(world: CompactedWorld, *, compacted: bool = True) -> dict[str | None, bytes]:
    return newest(await world.read(compacted=compacted))


@pytest.mark.parametrize("is_batched", [False, True])
@pytest.mark.parametrize("is_killed", [False, True])
def test_f46_what_was_aborted_removes_nothing_and_is_not_there(is_batched: bool, is_killed: bool) -> None:
    async def scenario() -> None:
        world = CompactedWorld()
        await world.open()
        await world.topic.create_subscription("keeps the log", from_earliest=True, properties={})
        await _published(world, ("a", b"old"), ("b", b"old"), ("c", b"old"), is_batched=is_batched)
        await _published(world, ("a", b"aborted"), ("b", b""), ("d", b"aborted"), txn_id=ONE, is_batched=is_batched)
        await _published(world, ("c", b""), ("e", b"committed"), txn_id=TWO, is_batched=is_batched)
        await world.topic.end_transaction(ONE, TxnAction.ABORT, -1)
        await world.topic.end_transaction(TWO, TxnAction.COMMIT, -1)
        expected = {"a": b"old", "b": b"old", "e": b"committed"}
        if is_killed:
            await world.restart()
        assert await world.compact() is CompactionState.SUCCESS
        assert await _read(world) == expected
        assert await _read(world, compacted=False) == expected, "what is known of aborted ones is not lost by a compaction"
        await world.topic.delete_subscription("keeps the log", force=False)
        await world.topic.trim()
        await world.restart()
        assert await _read(world) == expected
        await _published(world, ("f", b"after"))
        assert await world.compact() is CompactionState.SUCCESS
        assert await _read(world) == {**expected, "f": b"after"}

    run(scenario)


def test_f46_a_compaction_stops_before_what_is_not_decided_and_goes_on_once_it_is() -> None:
    async def scenario() -> None:
        world = CompactedWorld()
        await world.open()
        await _published(world, ("a", b"old"), ("b", b"old"))
        await _published(world, ("a", b"open"), txn_id=THREE)
        await _published(world, ("b", b"after"))
        assert await world.compact() is CompactionState.SUCCESS
        assert await _read(world) == {"a": b"old", "b": b"old"}, "nobody sees beyond it"
        await world.topic.end_transaction(THREE, TxnAction.COMMIT, -1)
        assert await _read(world) == {"a": b"open", "b": b"after"}
        assert await world.compact() is CompactionState.SUCCESS
        assert await _read(world) == {"a": b"open", "b": b"after"}
        assert len(await world.read()) == 2, "the older ones are gone"

    run(scenario)
