"""Demands of a server on its interpreter: waiting threads get their turn soon, the cycle collector never works for long.

Owns both, for the process. The collector is off while a server starts. Later, objects that outlive two of its runs are set
aside (`gc.freeze`), so that a run looks only at new ones, however many the process holds. Objects set aside that become garbage
in cycles stay, until there may be so many that one run looks at all (docs/adr/0029). That takes a third of a second for a
million objects. A broker whose ended things leave memory by themselves never does it.
"""

import asyncio
import gc
import sys
from collections.abc import Callable, Mapping
from typing import Protocol

from .free_memory import give_back_when_things_end

SWITCH_SECONDS = 0.0005
"""Time that a thread waits for the interpreter before it asks for it (Python's own: 5 ms). The loop's thread gives it up for an
instant whenever it looks at its sockets: too short for another to wake up in, and the other's wait begins anew."""
YOUNG_OBJECTS, YOUNG_RUNS = 10_000, 1
"""Objects made before the newest are looked at, and runs of that kind before all that outlived one are looked at. Such a run
sees 30,000 objects at most; 70,000 took 20 to 27 ms, for which all waited. With 3000 new ones 100 busy topics cost more."""
RUNS_BETWEEN_COUNTS = 50
"""Runs between two counts where ended things are not counted. A count of objects set aside is slow too: a sixth of a second for
a million objects."""
GROWTH, GROWTH_OBJECTS = 0.5, 250_000
"""All is looked at when there may be so much garbage, as a share of what was left the last time, and at least so many."""
OBJECTS_OF_ONE = 100
"""Approximate objects of a topic or another thing that `ports.ends` counts; a part of those set aside goes without the
collector."""
STAY_SECONDS = 60.0
"""Ended things that are in memory for so long may be garbage. A topic with 30,000 subscriptions ends within seconds."""


class CycleCollector(Protocol):
    """The module `gc`, as far as it is used here."""

    def collect(self) -> int: ...
    def freeze(self) -> None: ...
    def unfreeze(self) -> None: ...
    def get_freeze_count(self) -> int: ...


class SettingAside:
    """A callback of the collector (`gc.callbacks`)."""

    def __init__(
        self,
        collector: CycleCollector,
        after: Callable[[float, Callable[[], None]], object],
        still_there: Callable[[], int] | None = None,
    ) -> None:
        """`after` calls after so many seconds, when the collector is not at work; it is asked from any thread. `still_there`
        counts large things that have ended and are in memory; None: they are not counted."""
        self._gc, self._after, self._still_there = collector, after, still_there
        self._runs = self._left = self._there_before = 0
        self._is_asked = False

    def look_at_all(self) -> None:
        """Collects garbage and sets the rest aside. A second for some million objects."""
        self._gc.unfreeze()
        self._gc.collect()
        self._gc.freeze()
        self._left, self._is_asked = self._gc.get_freeze_count(), False
        self._there_before = self._still_there() if self._still_there is not None else 0

    def __call__(self, phase: str, info: Mapping[str, int]) -> None:
        if phase != "stop" or info["generation"] == 0:
            return
        self._gc.freeze()
        self._runs += 1
        if self._is_asked:
            return
        if self._still_there is not None:
            if self._may_be_much():
                self._is_asked = True
                self._after(STAY_SECONDS, self._look_if_they_stay)
        elif self._runs % RUNS_BETWEEN_COUNTS == 0 and self._has_grown():
            self._is_asked = True
            self._after(0.0, self.look_at_all)

    def _look_if_they_stay(self) -> None:
        self._is_asked = False
        if self._may_be_much():
            if self._has_grown():
                self.look_at_all()
            elif self._still_there is not None:  # asked again only when as many have come since
                self._there_before = self._still_there()

    def _has_grown(self) -> bool:
        return self._gc.get_freeze_count() - self._left > self._much / 2

    @property
    def _much(self) -> float:
        return max(GROWTH * self._left, GROWTH_OBJECTS)

    def _may_be_much(self) -> bool:
        """Whether so many ended things have stayed since all was looked at."""
        there = 0 if self._still_there is None else self._still_there()
        self._there_before = min(self._there_before, there)
        return OBJECTS_OF_ONE * (there - self._there_before) >= self._much


def off_while_starting() -> None:
    """Turns the collector off before a server is imported: nothing of that is garbage, and looking is a tenth of a start."""
    gc.disable()


def settle(still_there: Callable[[], int] | None = None) -> None:
    """Sets all objects made until now aside, once the server is ready. On its loop. `still_there` as `SettingAside` has it."""
    loop = asyncio.get_running_loop()

    def after(seconds: float, call: Callable[[], None]) -> None:
        if not loop.is_closed():  # the process ends
            loop.call_soon_threadsafe(loop.call_later, seconds, call)

    sys.setswitchinterval(SWITCH_SECONDS)
    aside = SettingAside(gc, after, still_there)
    aside.look_at_all()
    gc.callbacks.append(aside)
    gc.set_threshold(YOUNG_OBJECTS, YOUNG_RUNS, YOUNG_RUNS)
    gc.enable()
    give_back_when_things_end(loop)
