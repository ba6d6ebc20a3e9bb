"""Demands of a server on its interpreter: waiting threads get their turn soon, the cycle collector never works for long.

Owns both, for the process. The collector is off while a server starts. Later what outlives two of its runs is set aside
(`gc.freeze`), so that a run looks only at what is new, however much the process holds. What is set aside and becomes garbage in
cycles stays, until there may be so much of it that all is looked at, once (docs/adr/0029).
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


class CycleCollector(Protocol):
    """The module `gc`, as far as it is used here."""

    def collect(self) -> int: ...
    def freeze(self) -> None: ...
    def unfreeze(self) -> None: ...
    def get_freeze_count(self) -> int: ...


class SettingAside:
    """A callback of the collector (`gc.callbacks`)."""

    def __init__(
        self, collector: CycleCollector, soon: Callable[[Callable[[], None]], object], ended: Callable[[], int] | None = None
    ) -> None:
        """`soon` calls it when the collector is not at work any more; it is asked from any thread. `ended`: how many large
        things have ended so far; None: nobody counts them."""
        self._gc, self._soon, self._ended = collector, soon, ended
        self._runs = self._left = self._ended_before = 0
        self._is_asked = False

    def look_at_all(self) -> None:
        """Collects garbage and sets the rest aside. A second for some million objects."""
        self._gc.unfreeze()
        self._gc.collect()
        self._gc.freeze()
        self._left, self._is_asked = self._gc.get_freeze_count(), False
        self._ended_before = self._ended() if self._ended is not None else 0

    def __call__(self, phase: str, info: Mapping[str, int]) -> None:
        if phase != "stop" or info["generation"] == 0:
            return
        self._gc.freeze()
        self._runs += 1
        if not self._is_asked and self._may_be_much() and self._gc.get_freeze_count() - self._left > self._much / 2:
            self._is_asked = True
            self._soon(self.look_at_all)

    @property
    def _much(self) -> float:
        return max(GROWTH * self._left, GROWTH_OBJECTS)

    def _may_be_much(self) -> bool:
        """Asked again only when as much may have come since."""
        if self._ended is None:
            return self._runs % RUNS_BETWEEN_COUNTS == 0
        ended = self._ended()
        if OBJECTS_OF_ONE * (ended - self._ended_before) < self._much:
            return False
        self._ended_before = ended
        return True


def off_while_starting() -> None:
    """Before a server is imported: nothing of that is garbage, and looking for it is a tenth of a start."""
    gc.disable()


def settle(ended: Callable[[], int] | None = None) -> None:
    """Sets all objects made until now aside, once the server is ready. On its loop. `ended` as `SettingAside` has it."""
    loop = asyncio.get_running_loop()

    def soon(call: Callable[[], None]) -> None:
        if not loop.is_closed():  # the process ends
            loop.call_soon_threadsafe(call)

    sys.setswitchinterval(SWITCH_SECONDS)
    aside = SettingAside(gc, soon, ended)
    aside.look_at_all()
    gc.callbacks.append(aside)
    gc.set_threshold(YOUNG_OBJECTS, YOUNG_RUNS, YOUNG_RUNS)
    gc.enable()
    give_back_when_things_end(loop)
