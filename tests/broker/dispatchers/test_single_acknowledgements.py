"""One acknowledged entry, the lean way and as an event: both lead to the same state, or the lean way changes nothing."""

from copy import deepcopy
from typing import Any

import pytest
from pyroaring import BitMap

from broker.dispatchers.contract import Effect, EntriesAcknowledged, Event
from tests.broker.dispatchers.schedules import FIRST_SEED, SCHEDULES, Schedule
from tests.broker.dispatchers.test_dispatcher_properties import (
    ExclusiveSchedule,
    KeySharedSchedule,
    SharedSchedule,
    SingleActiveSchedule,
)
from wire.position import Position

KINDS = (SharedSchedule, SingleActiveSchedule, ExclusiveSchedule, KeySharedSchedule)


def state_of(thing: Any) -> Any:
    """The whole state of a machine, to be compared."""
    if isinstance(thing, BitMap):
        return list(thing)
    if isinstance(thing, dict):
        return [(state_of(key), state_of(value)) for key, value in thing.items()]
    if isinstance(thing, list | tuple | set):
        return [state_of(each) for each in thing]
    names = [
        *getattr(thing, "__dict__", ()),
        *(name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())),
    ]
    if not names or not type(thing).__module__.startswith("broker.dispatchers"):
        text = repr(thing)
        return type(thing).__name__ if " at 0x" in text else text
    return {name: state_of(getattr(thing, name, None)) for name in names}


def both_ways(kind: type[Schedule]) -> type[Any]:
    """The schedule with acknowledgements of one entry, each of which is tried the lean way first."""

    class BothWays(kind):  # type: ignore[misc, valid-type]
        taken = left = 0

        def acknowledge_entries(self, positions: list[Position], consumer: Any) -> None:
            for position in positions:
                super().acknowledge_entries([position], consumer)

        def judge(self, event: Event, effects: list[Effect]) -> None:
            super().judge(event, effects)
            self.effects = effects

        def feed(self, event: Event) -> None:
            if not isinstance(event, EntriesAcknowledged) or event.consumer is None:
                super().feed(event)
                return
            other = deepcopy(self.machine)
            before = state_of(other)
            assert before == state_of(self.machine)
            is_taken = other.entry_acknowledged(event.consumer, event.ledger_id, event.entry_ids[0])
            after = state_of(other)
            super().feed(event)
            if is_taken:
                type(self).taken += 1
                assert not self.effects, "an effect is lost"
                assert after == state_of(self.machine)
            else:
                type(self).left += 1
                assert after == before, "refused, and changed all the same"

    return BothWays


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_one_entry_is_acknowledged_as_the_event_would_do_it(kind: type[Schedule]) -> None:
    both = both_ways(kind)
    for seed in range(FIRST_SEED, FIRST_SEED + SCHEDULES // 20):
        both(seed).run(both.step_limit)
    assert both.left or kind is ExclusiveSchedule, "no schedule has an acknowledgement that is not plain"
    assert both.taken or kind is KeySharedSchedule, "no schedule has a plain acknowledgement"
