"""DiskWeights: how likely each bookie is chosen, by the free space of its disks, which it is asked for now and then.

As BookKeeper's diskWeightBasedPlacementEnabled (BookieInfoReader, WeightedRandomSelection): the weight is the free bytes; a
bookie that says nothing, or is full, has the smallest weight there is; none has more than MULTIPLE_MAX times the median.
Works beside version 2 of the protocol too. Bounds: ASKED_AT_ONCE_MAX bookies are asked at once, each within its client's
time-out.
"""

import asyncio
import logging
import statistics
from collections.abc import Mapping

from bookkeeper.ports import BookieClient, ExtendedBookie
from ports.logs import line
from wire.bookie.codes import BookieError

MULTIPLE_MAX = 3
"""BookKeeper's default of bookieMaxMultipleForWeightBasedPlacement."""
ASKED_AT_ONCE_MAX = 16

_log = logging.getLogger(__name__)


def weights_by_free_space(free_bytes: Mapping[str, int]) -> Mapping[str, float]:
    """Weight of each bookie, more than 0. Pure."""
    if not any(free_bytes.values()):
        return dict.fromkeys(free_bytes, 1.0)
    least = min(free for free in free_bytes.values() if free > 0)
    most = statistics.median(free_bytes.values()) * MULTIPLE_MAX
    return {name: min(float(free or least), most or float("inf")) for name, free in free_bytes.items()}


class DiskWeights:
    """Weights of the bookies that take new entries. `open` first, `close` last; equal before the first answers."""

    def __init__(self, bookies: Mapping[str, BookieClient], interval_seconds: float, retry_seconds: float) -> None:
        self._bookies, self._interval, self._retry = bookies, interval_seconds, retry_seconds
        self._known: dict[str, tuple[float, int]] = {}
        """Time of the last answer of each bookie, and its free bytes."""
        self._weights: Mapping[str, float] = {}
        self._least = 1.0
        self._task: asyncio.Task[None] | None = None

    def weight_of(self, bookie: str) -> float:
        return self._weights.get(bookie, self._least)

    def open(self) -> None:
        self._task = asyncio.create_task(self._ask_again(), name="free space of bookies")

    async def close(self) -> None:
        """Closing twice is fine."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def _ask_again(self) -> None:
        """New bookies, and those that did not answer, are asked after the shorter time."""
        while True:
            await self.refresh()
            await asyncio.sleep(min(self._retry, self._interval))

    async def refresh(self) -> None:
        """Ask those whose answer is old, or is not there."""
        now = asyncio.get_running_loop().time()
        names = list(self._bookies)
        self._known = {name: self._known[name] for name in names if name in self._known}
        due = [name for name in names if name not in self._known or now - self._known[name][0] >= self._interval]
        for at in range(0, len(due), ASKED_AT_ONCE_MAX):
            await asyncio.gather(*map(self._ask, due[at : at + ASKED_AT_ONCE_MAX]))
        self._weights = weights_by_free_space({name: free for name, (_, free) in self._known.items()})
        self._least = min(self._weights.values(), default=1.0)

    async def _ask(self, name: str) -> None:
        bookie = self._bookies.get(name)
        if not isinstance(bookie, ExtendedBookie):
            return
        try:
            space = await bookie.disk_space()
        except BookieError as error:
            _log.warning(line("free space of a bookie unknown", bookie=name, reason=error))
        else:
            self._known[name] = asyncio.get_running_loop().time(), space.free_bytes
