"""An acknowledgement costs time linear in its ids, whatever they name."""

import random
from array import array
from collections.abc import Callable
from typing import Any

import pytest
from pyroaring import BitMap

from broker.dispatchers.contract import ConsumerAdded, ConsumerId, Event
from broker.dispatchers.entry_sets import EntrySet
from broker.dispatchers.settings import DispatcherSettings
from broker.dispatchers.shared import SharedDispatcher
from broker.topic.acknowledging import Acknowledging
from broker.topic.contract import Acknowledgement
from managed_ledger.cursor.acknowledgements import Acknowledgements
from managed_ledger.cursor.cursor_driver import MemoryCursor
from managed_ledger.cursor.cursor_host import HostedCursor
from managed_ledger.errors import ManagedLedgerFenced
from managed_ledger.ledgers.sequence import LedgerSequence
from tests.broker.topic.topic_world import ack_run
from tests.cost import assert_linear, steps
from wire.position import Position

CONSUMER = ConsumerId(1)
ENTRIES = 10
"""Entries in each ledger; the ids of ledgers are even."""

Ids = list[tuple[int, int]]


class Place:
    """A cursor on so many ledgers that has passed the first ones, and a dispatcher whose consumer has half of the entries."""

    def __init__(self, ledgers: int, passed: int = 1) -> None:
        self.sequence = LedgerSequence()
        for number in range(ledgers):
            self.sequence.add_closed(2 * number, ENTRIES, 1000, 0)
        mark_delete = Position(2 * passed, 0)
        self.cursor: Any = MemoryCursor(self, "s", Acknowledgements(self.sequence, mark_delete))
        self.dispatcher = SharedDispatcher(DispatcherSettings())
        self.dispatcher.handle(ConsumerAdded(CONSUMER, "c", 0, True), 0)
        receiver = self.dispatcher._receivers.get(CONSUMER)
        assert receiver is not None
        waiting = EntrySet()
        for number in range(passed + 1, ledgers):
            self.dispatcher._receivers.delivered(receiver, 2 * number, BitMap(range(0, ENTRIES, 2)), None, ENTRIES // 2)
            waiting.add(2 * number, BitMap(range(1, ENTRIES, 2)))
        self.dispatcher._came_due(waiting)
        self.acknowledging = Acknowledging(self, self.cursor, "t s", self.handle, lambda: None, batch_indexes=True)  # type: ignore[arg-type]

    def handle(self, event: Event) -> None:
        self.dispatcher.handle(event, 0)

    @property
    def last_confirmed(self) -> Position:
        return self.sequence.last_confirmed

    def previous_position(self, position: Position) -> Position:
        return self.sequence.previous_position(position)

    def mark_moved(self, old: Position, new: Position) -> None: ...
    def fenced(self, error: ManagedLedgerFenced) -> None: ...
    def cursor_closed(self, cursor: HostedCursor) -> None: ...
    def went_back(self, cursor: object) -> None: ...


def _shuffled(ids: Ids) -> Ids:
    random.Random(1).shuffle(ids)
    return ids


CASES: dict[str, Callable[[int], tuple[Place, Ids]]] = {
    "each of another ledger beyond the end": lambda n: (Place(4), [(1000 + each, 0) for each in range(n)]),
    "each of another ledger that cannot be": lambda n: (Place(4), [((1 << 63) + each, 0) for each in range(n)]),
    "each of another ledger that is acknowledged": lambda n: (Place(n, n - 2), [(2 * each, 0) for each in range(n - 2)]),
    "each of another ledger that is gone": lambda n: (Place(n), [(2 * each + 1, 0) for each in range(n)]),
    "each of another ledger that is there": lambda n: (Place(n), [(2 * each, 5) for each in range(n)]),
    "each of another ledger, in no order": lambda n: (Place(n), _shuffled([(2 * each, 5) for each in range(n)])),
    "every entry of every ledger": lambda n: (Place(n // 10), [(2 * (each // 10), each % 10) for each in range(n)]),
    "every entry, the last first": lambda n: (Place(n // 10), [(2 * (each // 10), each % 10) for each in reversed(range(n))]),
    "beyond the end of the last ledger": lambda n: (Place(4), [(6, each + 10) for each in range(n)]),
    "entries that cannot be": lambda n: (Place(4), [(6, (1 << 40) + each) for each in range(n)]),
    "of two ledgers in turns": lambda n: (Place(4), [(4 + 2 * (each % 2), each % 10) for each in range(n)]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_run_of_acknowledgements_is_linear(name: str) -> None:
    def work(n: int) -> Callable[[], Any]:
        place, ids = CASES[name](n)
        return lambda: place.acknowledging.run(CONSUMER, ack_run(*ids))

    assert_linear(work, 300)


@pytest.mark.parametrize("ack_set", [(), (1,)])
@pytest.mark.parametrize("name", CASES)
def test_an_acknowledgement_that_the_kernel_leaves_is_linear(name: str, ack_set: tuple[int, ...]) -> None:
    def work(n: int) -> Callable[[], Any]:
        place, ids = CASES[name](n)
        command = Acknowledgement(False, tuple(Position(*each) for each in ids), (ack_set,) * len(ids), (0,) * len(ids))
        return lambda: place.acknowledging.command(CONSUMER, command)

    assert_linear(work, 300)


def test_the_ordinary_run_costs_the_same_however_many_entries_it_has() -> None:
    def cost(entries: int) -> int:
        sequence_end = array("Q", range(1, entries))
        place = Place(2)
        place.sequence.open(100)
        place.sequence.confirm(1 << 16, 1)
        run = ack_run(*[(100, each) for each in sequence_end])
        return steps(lambda: place.acknowledging.run(CONSUMER, run))

    assert cost(8000) < cost(1000) + 8 * 8000
