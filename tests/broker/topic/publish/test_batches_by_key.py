"""Batches by key, whose ids lie between those of each other and which say only the first: none is lost, none comes twice."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.topic.publish.batches_by_key import has_gaps
from tests.broker.topic.publish.test_deduplication_driver import (
    NOWHERE,
    again,
    body,
    contents,
    receipts,
    with_messages,
    world_with,
)
from tests.broker.topic.topic_world import run, send_run, settle
from wire.compression import compress
from wire.generated.pulsar_api_pb2 import CompressionType, EncryptionKeys, MessageMetadata, SingleMessageMetadata
from wire.payloads import payload_section
from wire.position import Position
from wire.run import SendRun

NONE, LZ4 = CompressionType.NONE, CompressionType.LZ4


def payload_of(ids: Sequence[int], *, tells: bool = True) -> bytes:
    found = bytearray()
    for each in ids:
        single = SingleMessageMetadata(partition_key="k", payload_size=3)
        if tells:
            single.sequence_id = each
        data = single.SerializeToString()
        found += len(data).to_bytes(4) + data + b"abc"
    return bytes(found)


def batch(
    ids: Sequence[int], compression: "CompressionType" = NONE, *, tells: bool = True, cut: int = 0, **fields: object
) -> bytes:
    """A batch as the C++ client sends it: with the first id, and no highest."""
    payload = payload_of(ids, tells=tells)
    metadata = MessageMetadata(producer_name="p", sequence_id=ids[0], publish_time=1, **fields)  # type: ignore[arg-type]
    metadata.num_messages_in_batch, metadata.partition_key = len(ids), "k"
    metadata.compression, metadata.uncompressed_size = compression, len(payload)
    return payload_section(metadata, compress(compression, payload)[: len(payload) - cut])


def by_key(*batches: Sequence[int]) -> SendRun:
    bodies = [batch(ids) if len(ids) > 1 else body("p", ids[0], partition_key="k") for ids in batches]
    return with_messages(send_run([ids[0] for ids in batches], bodies), sum(map(len, batches)))


def test_a_batch_between_the_ids_of_another_batch_is_stored_once() -> None:
    async def scenario() -> None:
        world = await world_with()
        producer, sink = await world.producer()
        producer.publish(by_key((0, 2, 3)))
        await settle()
        producer.publish(by_key((1,), (4, 5, 6)))
        producer.publish(by_key((7, 10), (8, 11), (9,)))
        await settle()
        producer.publish(by_key((8, 11), (9,)))
        await settle()
        assert receipts(sink)[-1] == ([8, 9], NOWHERE)
        world = await again(world)
        producer, sink = await world.producer()
        producer.publish(by_key((8, 11), (9,), (12,)))
        await settle()
        assert receipts(sink) == [([8, 9], NOWHERE), ([12], Position(3, 6))]
        assert [first for _, first in await contents(world)] == [0, 1, 4, 7, 8, 9, 12]

    run(scenario)


@pytest.mark.parametrize("compression", [NONE, LZ4])
@given(ids=st.lists(st.integers(0, 30), min_size=2, max_size=8, unique=True).map(sorted))
def test_a_batch_has_gaps_when_ids_are_missing(ids: list[int], compression: "CompressionType") -> None:
    assert has_gaps(batch(ids, compression)) == (ids != list(range(ids[0], ids[0] + len(ids))))


@pytest.mark.parametrize("first", [(1 << 63) - 5, (1 << 63) - 4])
def test_the_largest_ids_are_looked_at_too(first: int) -> None:
    assert not has_gaps(batch(range(first, first + 4)))
    assert has_gaps(batch([first, first + 1, first + 3]))


def test_a_batch_without_ids_has_no_gaps_and_an_unreadable_one_counts_as_having_gaps() -> None:
    assert not has_gaps(batch((3, 5), tells=False))
    assert not has_gaps(body("p", 3, num_messages_in_batch=5)), "without a key"
    assert has_gaps(batch((3, 4), encryption_keys=[EncryptionKeys(key="k", value=b"v")]))
    assert has_gaps(batch((3, 4), cut=20))
    assert has_gaps(batch((3, 4), LZ4, cut=20))


def test_a_producer_is_told_an_id_above_which_nothing_is_stored_under_way_or_lost() -> None:
    async def scenario() -> None:
        world = await world_with()
        producer, _ = await world.producer()
        producer.publish(by_key((0, 1, 2), (3, 5), (4, 6)))
        await asyncio.sleep(0)
        await settle()
        assert producer.last_sequence_id == 4, "of batches by key the first id, as by Apache"

    run(scenario)
