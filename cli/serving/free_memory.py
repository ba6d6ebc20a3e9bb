"""Free memory of a server, given back to the system when many things have ended.

Decides when; `ports.allocator` does it. Python's own allocator keeps a megabyte as long as one object is in it; the C library's
(`PYTHONMALLOC=malloc`, an operator's choice, docs/adr/0036) returns single pages, and only when it is asked.
A request holds up threads that allocate, so there are many small requests while things end, and none comes without an end.
Python keeps some thousand freed tuples for the next ones, each in a page of its own perhaps: a collection releases them first.
While things end, Python collects nothing by itself: each freed object counts against a new one. The new ones are looked at here
meanwhile, or the first collection after 30,000 ends would look at all of them, for 65 ms.
"""

import asyncio
import gc
from collections.abc import Callable

from ports.allocator import give_back_free_memory
from ports.ends import ENDS
from ports.loop.slices import aside

TICK_SECONDS, IDLE_TICK_SECONDS = 0.05, 0.5
"""Time between two looks while things end and until all is given back, and otherwise: an idle server wakes up rarely."""
ENDS_AT_ONCE = 200
"""Ends after which memory is given back while more is ending: some megabytes, if these were subscriptions."""
ENDS_MIN = 20
"""Fewer ends are no reason: a server with little to do does nothing."""
CALM_TICKS = (3, 60, 1500)
"""Ticks after the last end at which the rest is given back. Some of what belonged to an ended thing goes later, and messages of
other topics that came meanwhile hold a page each until a bookie's flush: 75 seconds are more than `flushInterval`."""
_NEW, _ALL = 1, 2
"""Generations of the collector: objects made since the last run of this kind, and all. Both leave out those set aside."""
PAUSE_TIMES = 4
"""Pause after a request, as a multiple of the time that the request took."""


class FreeMemory:
    """Machine that decides at each tick. `ended` is the count of all ends so far."""

    def __init__(self, ended: int) -> None:
        self._seen = self._asked_at = self._calm_at = self._looked_at = ended
        """Ends at the last tick, at the last request, when the last request of `CALM_TICKS` was made, and at the last look."""
        self._calm_ticks = self._calm_requests = 0
        self._pause_until = 0.0
        self.is_calm = False
        """Whether nothing has ended at this tick."""

    def is_due(self, ended: int, now: float) -> bool:
        """Whether to ask for a request at this tick."""
        self.is_calm, self._seen = ended == self._seen, ended
        self._calm_ticks = self._calm_ticks + 1 if self.is_calm else 0
        if not self.is_calm:
            self._calm_requests = 0
        if now < self._pause_until:
            return False
        if ended - self._asked_at >= ENDS_AT_ONCE or self._is_calm_due(ended):
            self._asked_at = ended
            return True
        return False

    def is_look_due(self, ended: int) -> bool:
        """Whether to look at new objects at this tick, also in a pause."""
        is_due = ended - self._looked_at >= ENDS_AT_ONCE
        if is_due:
            self._looked_at = ended
        return is_due

    def _is_calm_due(self, ended: int) -> bool:
        if ended - self._calm_at < ENDS_MIN or self._calm_ticks < CALM_TICKS[self._calm_requests]:
            return False
        self._calm_requests += 1
        if self._calm_requests == len(CALM_TICKS):
            self._calm_at, self._calm_requests = ended, 0
        return True

    @property
    def tick_seconds(self) -> float:
        """Time until the next look."""
        return IDLE_TICK_SECONDS if self.is_calm and self._seen - self._calm_at < ENDS_MIN else TICK_SECONDS

    def answered(self, seconds: float, now: float) -> None:
        """The request took so long."""
        self._pause_until = now + PAUSE_TIMES * seconds


def give_back_when_things_end(
    loop: asyncio.AbstractEventLoop,
    collect: Callable[[int], object] = gc.collect,
    give_back: Callable[[], None] = give_back_free_memory,
) -> None:
    """Looks at the count of ends from now on, until the loop is closed. A request runs in a thread: the loop goes on.
    `collect` skips objects that are set aside (`interpreter`), so it takes some ms."""
    machine = FreeMemory(ENDS.count)
    under_way: asyncio.Task[None] | None = None

    async def request() -> None:
        began = loop.time()
        await aside(give_back, is_long=True)
        machine.answered(loop.time() - began, loop.time())
        loop.call_later(machine.tick_seconds, tick)

    def tick() -> None:
        nonlocal under_way
        if machine.is_look_due(ENDS.count):
            collect(_NEW)
        if machine.is_due(ENDS.count, loop.time()):
            if machine.is_calm:
                collect(_ALL)
            under_way = loop.create_task(request(), name="free memory goes back")
        else:
            loop.call_later(machine.tick_seconds, tick)

    loop.call_later(TICK_SECONDS, tick)
