"""Acknowledgements in a transaction, and redeliveries, cost time linear in their ids and words, whatever sizes they name."""

from collections.abc import Callable
from typing import Any

import pytest

from broker.connection.recently_closed import RecentlyClosed
from broker.dispatchers.contract import ConsumerId, RedeliveryRequested
from broker.topic.transactions.pending_acks import (
    BATCH_MESSAGES_MAX,
    Acked,
    PendingAcks,
    number_of,
    out_of_proportion,
    words_of,
)
from tests.broker.topic.test_acknowledging_costs import ENTRIES, Place
from tests.cost import assert_linear
from wire.position import Position
from wire.transactions import TxnAction, TxnId

TXN = TxnId(1, 2)


@pytest.mark.parametrize("ack_set", [(), (1,)])
@pytest.mark.parametrize("ledgers", [1, 10_000])
def test_a_transaction_acknowledges_in_linear_time(ack_set: tuple[int, ...], ledgers: int) -> None:
    def work(n: int) -> Callable[[], Any]:
        place, pending = Place(4).cursor, PendingAcks()
        acked = [Acked(Position(100 + each % ledgers, each), ack_set, 10 if ack_set else 0) for each in range(n)]

        def whole() -> None:
            assert pending.conflict(TXN, acked, place) is None
            pending.add(TXN, acked)
            pending.take(TXN, TxnAction.COMMIT)

        return whole

    assert_linear(work, 200)


def test_an_ack_set_of_many_words_is_read_and_written_in_linear_time() -> None:
    assert_linear(lambda n: lambda: words_of(number_of([(1 << 64) - 1] * n), n), 500)


def test_a_batch_size_that_its_ack_set_does_not_reach_is_refused_beyond_a_bound() -> None:
    assert out_of_proportion(Acked(Position(1, 1), (1,), BATCH_MESSAGES_MAX)) is None
    assert out_of_proportion(Acked(Position(1, 1), (1,) * 1000, 64_000)) is None
    assert "is the most" in str(out_of_proportion(Acked(Position(1, 1), (1,), BATCH_MESSAGES_MAX + 1)))
    assert out_of_proportion(Acked(Position(1, 1), (), 1 << 20)) is None, "a whole entry"


def test_a_redelivery_of_ids_in_many_ledgers_is_linear() -> None:
    def work(n: int) -> Callable[[], Any]:
        place = Place(n // 2)
        positions = [Position(2 * (each // 2), each % ENTRIES) for each in range(n)]
        return lambda: place.dispatcher.handle(RedeliveryRequested(ConsumerId(1), positions, None), 0)

    assert_linear(work, 200)


def test_producers_that_are_closed_together_are_remembered_in_linear_time() -> None:
    def work(n: int) -> Callable[[], Any]:
        def close_all() -> None:
            closed = RecentlyClosed(30.0)
            for each in range(n):
                closed.add(each, 0.001 * each)

        return close_all

    assert_linear(work, 200)


def test_ids_are_forgotten_when_their_time_is_over_however_often_they_were_closed() -> None:
    closed = RecentlyClosed(30.0)
    closed.add(1, 0.0)
    closed.add(2, 10.0)
    closed.add(1, 20.0)
    closed.add(3, 45.0)
    assert (closed.has(1, 45.0), closed.has(2, 45.0), closed.has(3, 45.0)) == (True, False, True)
    closed.add(4, 60.0)
    assert sorted(closed._until) == [3, 4]
