"""Group commit: which records are written together, and when. Pure.

One write is in flight at a time. A journal at rest writes each record at once, so that a lone publisher waits for nothing.
Records that come while a write is in flight gather; if any has gathered when it ends, the journal is under load, and waits
until `group_bytes` or the age `wait_seconds` is reached (journalBufferedWritesThreshold, journalMaxGroupWaitMSec) before the
next write: a wait of a millisecond, in which ten adds share a write and its fsync instead of paying one each.
BookKeeper's journal waits also at rest, unless journalFlushWhenQueueEmpty is set; here that is so from the start, and `false`
makes this one wait as well: fewer writes, and a lone add takes up to journalMaxGroupWaitMSec longer.
"""

from typing import Generic, TypeVar

from wire.record import record

T = TypeVar("T")


@record(frozen=True, slots=True)
class Write(Generic[T]):
    """Write these together now; answer with `on_written`."""

    items: list[T]


@record(frozen=True, slots=True)
class WaitUntil:
    """Ask again at this time, or when `on_queued` says so."""

    time: float


class GroupCommit(Generic[T]):
    """The items that wait, in order. Their bytes are bounded by the memtables that hold them too."""

    def __init__(self, *, group_bytes: int, group_bytes_max: int, wait_seconds: float, waits_at_rest: bool = False) -> None:
        self._group_bytes = group_bytes
        self._group_bytes_max = max(group_bytes, group_bytes_max)
        self._wait_seconds = wait_seconds
        self._waits_at_rest = waits_at_rest
        self._waiting: list[T] = []
        self._sizes: list[int] = []
        """Sizes of the waiting items, in bytes."""
        self._waiting_bytes = 0
        self._oldest_at = 0.0
        self._in_flight = False
        self._under_load = False

    @property
    def waiting_bytes(self) -> int:
        return self._waiting_bytes

    @property
    def waiting_count(self) -> int:
        return len(self._waiting)

    @property
    def is_idle(self) -> bool:
        """Nothing waits, and nothing is being written."""
        return not (self._in_flight or self._waiting)

    @property
    def oldest_at(self) -> float:
        """Time at which the oldest waiting record was queued."""
        return self._oldest_at

    def on_queued(self, item: T, size_bytes: int, now: float) -> bool:
        """Whether `next` should be asked now; otherwise the answer is the one it gave last."""
        first = not self._waiting
        if first:
            self._oldest_at = now
        self._waiting.append(item)
        self._sizes.append(size_bytes)
        self._waiting_bytes += size_bytes
        return not self._in_flight and (first or self._waiting_bytes >= self._group_bytes)

    def next(self, now: float) -> Write[T] | WaitUntil | None:
        """Next action; None: nothing until an event."""
        if self._in_flight or not self._waiting:
            return None
        due = self._oldest_at + self._wait_seconds
        if (self._under_load or self._waits_at_rest) and self._waiting_bytes < self._group_bytes and now < due:
            return WaitUntil(due)
        self._in_flight = True
        return Write(self._take())

    def on_written(self) -> None:
        """The write in flight ended."""
        self._in_flight = False
        self._under_load = bool(self._waiting)

    def drain(self) -> list[T]:
        """Everything that waits; nothing does any more."""
        items = self._waiting
        self._waiting, self._sizes, self._waiting_bytes = [], [], 0
        return items

    def check_invariants(self) -> None:
        """Check the invariants, for tests and simulations."""
        assert len(self._sizes) == len(self._waiting)
        assert self._waiting_bytes == sum(self._sizes)

    def _take(self) -> list[T]:
        """Take records in order, up to `group_bytes_max`, at least one. The rest keeps the oldest's age: due at once."""
        if self._waiting_bytes <= self._group_bytes_max:
            return self.drain()
        taken = count = 0
        for size_bytes in self._sizes:
            if count and taken + size_bytes > self._group_bytes_max:
                break
            taken += size_bytes
            count += 1
        items = self._waiting[:count]
        del self._waiting[:count], self._sizes[:count]
        self._waiting_bytes -= taken
        return items
