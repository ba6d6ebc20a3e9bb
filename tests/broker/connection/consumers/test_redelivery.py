"""Ids of a REDELIVER_UNACKNOWLEDGED_MESSAGES reach the consumer in slices, in their order in the log."""

import random

from broker.connection.consumers.redelivery import redelivered
from tests.broker.connection.peer import a_peer, play_for_real, redeliver
from wire.generated import pulsar_api_pb2 as api

AT_ONCE = 100


def handed_on(ids: list[tuple[int, int]], sub_type: api.CommandSubscribe.SubType) -> tuple[list[list[tuple[int, int]]], int]:
    """Slices that the consumer got, and the number of turns that others had meanwhile."""
    found: list[tuple[list[list[tuple[int, int]]], int]] = []

    async def scenario() -> None:
        async with a_peer() as peer:
            consumer = await peer.consume(sub_type=sub_type)
            asked = redeliver(1, *ids, consumer_epoch=3).redeliver_unacknowledged_messages
            turns = len(list(redelivered(consumer, asked, AT_ONCE)))
            assert {epoch for _, epoch in consumer.redeliveries} == {3}
            found.append(([[(each.ledger_id, each.entry_id) for each in part] for part, _ in consumer.redeliveries], turns))

    play_for_real(scenario)
    return found[0]


def test_ids_of_several_slices_are_handed_on_in_the_order_of_the_log() -> None:
    """Java's client sends them in the order of a HashSet: chunks came in another order, and their message was lost."""
    ids = [(number % 2, number) for number in range(3 * AT_ONCE + 1)]
    slices, turns = handed_on(random.Random(1).sample(ids, len(ids)), api.CommandSubscribe.Shared)
    assert [len(each) for each in slices] == [AT_ONCE, AT_ONCE, AT_ONCE, 1]
    assert [each for part in slices for each in part] == sorted(ids)
    assert turns >= len(slices) - 1, "others get their turn after each slice"


def test_ids_of_one_slice_are_handed_on_at_once() -> None:
    ids = [(7, number) for number in range(AT_ONCE)]
    assert handed_on(ids, api.CommandSubscribe.Key_Shared) == ([ids], 0)
    assert handed_on([], api.CommandSubscribe.Shared) == ([[]], 0), "without ids: all that the consumer has"


def test_a_consumer_that_receives_alone_goes_back_once_for_any_ids() -> None:
    ids = [(7, number) for number in range(4 * AT_ONCE)]
    assert handed_on(ids, api.CommandSubscribe.Exclusive) == ([ids[:AT_ONCE]], 0)
