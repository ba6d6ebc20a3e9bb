"""Redelivery counts."""

from array import array
from collections.abc import Callable

from pyroaring import BitMap

from broker.dispatchers.redeliveries import Redeliveries
from tests.cost import assert_linear
from wire.position import Position
from wire.run import EntryRun


def counts(redeliveries: Redeliveries, ledger_id: int, count: int) -> list[int] | None:
    return redeliveries.of(EntryRun(ledger_id, 0, b"", array("I", bytes(4 * count + 4))), range(count))


def test_counts_beyond_the_mark_delete_stay() -> None:
    redeliveries = Redeliveries()
    redeliveries.count(2, BitMap([8]))
    redeliveries.count(3, BitMap([2, 4, 5]))
    redeliveries.forget_up_to(Position(3, 4))
    assert counts(redeliveries, 2, 9) is None
    assert counts(redeliveries, 3, 6) == [0, 0, 0, 0, 0, 1]


def test_forgetting_counts_one_by_one_takes_time_linear_in_their_number() -> None:
    def one_by_one(count: int) -> Callable[[], None]:
        redeliveries, entries = Redeliveries(), [BitMap([entry_id]) for entry_id in range(count)]
        redeliveries.count(3, BitMap(range(count)))

        def forget() -> None:
            for each in entries:
                redeliveries.forget(3, each)

        return forget

    assert_linear(one_by_one, 50)


def test_forgetting_very_many_entries_costs_no_more_than_those_counted() -> None:
    def many(count: int) -> Callable[[], None]:
        redeliveries, gone = Redeliveries(), BitMap(range(count))
        redeliveries.count(3, BitMap([7]))
        return lambda: redeliveries.forget(3, gone)

    assert_linear(many, 8000, bound=2.0)
