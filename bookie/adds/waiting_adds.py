"""WaitingAdds: adds that found both memtables full, in order. Pure but for the futures that it carries.

Bound: `bytes_max` of entries. Beyond it an add keeps its place, without its entries, and is refused when its turn comes: the
answers of a ledger stay in order.
"""

import asyncio
from collections import deque
from typing import NamedTuple

from wire.run import EntryMix, EntryRun


class WaitingAdd(NamedTuple):
    """An add; without its run: too much waited already when it came."""

    ledger_id: int
    run: EntryRun | EntryMix | None
    master_key: bytes
    recovery: bool
    future: "asyncio.Future[None]"


class WaitingAdds:
    """A queue. False when nothing waits."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._adds: deque[WaitingAdd] = deque()

    def __bool__(self) -> bool:
        return bool(self._adds)

    def __len__(self) -> int:
        return len(self._adds)

    def append(self, add: WaitingAdd) -> None:
        size_bytes = 0 if add.run is None else add.run.size_bytes
        if self._bytes + size_bytes > self._bytes_max and self._adds:
            add, size_bytes = add._replace(run=None), 0
        self._adds.append(add)
        self._bytes += size_bytes

    def take_all(self) -> deque[WaitingAdd]:
        """Everything; nothing waits any more."""
        adds, self._adds, self._bytes = self._adds, deque(), 0
        return adds

    def check_invariants(self) -> None:
        """Check the invariants, for tests and simulations."""
        sizes = [add.run.size_bytes for add in self._adds if add.run is not None]
        assert self._bytes == sum(sizes)
        assert self._bytes <= self._bytes_max or not any(sizes[1:]), "one add alone may be larger than the bound"
