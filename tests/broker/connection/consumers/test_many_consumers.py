"""Very many consumers of one connection, which closes."""

from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

from broker.connection.consumers.consumers import Consumers
from tests.cost import steps


def test_the_end_of_very_many_consumers_begins_without_a_look_at_each_and_closes_them_in_order() -> None:
    closed = list[int]()

    class Attached:
        def __init__(self, number: int) -> None:
            self.consumer = None if number % 10 == 9 else SimpleNamespace(close=partial(closed.append, number))

    def begun(count: int) -> tuple[int, Iterator[Callable[[], None]]]:
        consumers = object.__new__(Consumers)
        consumers._handles = {number: cast(Any, Attached(number)) for number in range(count)}
        found = list[Iterator[Callable[[], None]]]()
        return steps(lambda: found.append(consumers.ends())), found[0]

    (few, _), (many, ends) = begun(100), begun(800)
    assert many - few <= 3 * 700, "copies of a list, and no bytecodes for each"
    for end in ends:
        end()
    assert closed == [number for number in range(800) if number % 10 != 9]
