"""HoleCache: segments of all cursors that stay in memory: those used last, within a bound. Pure.

Only stored segments can be evicted. Others stay, beyond the bound if need be, until the next save.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Protocol

from wire.position import Position


class SegmentOwner(Protocol):
    """The holes of one cursor."""

    def evict(self, start: Position) -> bool:
        """Let go of the segment that begins there, if it is still there; False: it changed and is not stored."""


class HoleCache:
    """`bytes_max`: managedCursorHoleCacheSizeMB, of the whole process."""

    __slots__ = ("_bytes_max", "_used", "evictions", "size_bytes")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._used: OrderedDict[tuple[SegmentOwner, Position], int] = OrderedDict()
        self.size_bytes = 0
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._used)

    def used(self, owner: SegmentOwner, start: Position, weight: int) -> None:
        key = (owner, start)
        self.size_bytes += weight - self._used.pop(key, 0)
        self._used[key] = weight

    def touched(self, owner: SegmentOwner, starts: Iterable[Position]) -> None:
        """Somebody asked for these segments, which are in memory."""
        for start in starts:
            if (owner, start) in self._used:
                self._used.move_to_end((owner, start))

    def drop(self, owner: SegmentOwner, starts: Iterable[Position]) -> None:
        """There is nothing in these segments any more."""
        for start in starts:
            self.size_bytes -= self._used.pop((owner, start), 0)

    def forget(self, owner: SegmentOwner) -> None:
        """Forget an owner that was closed."""
        for key in [key for key in self._used if key[0] is owner]:
            self.size_bytes -= self._used.pop(key)

    def shrink(self, keep: int = 0) -> None:
        """Evict until within the bound. The last `keep` used segments stay all the same: their caller needs them now."""
        refused: list[tuple[SegmentOwner, Position, int]] = []
        while self.size_bytes > self._bytes_max and len(self._used) > keep:
            (owner, start), weight = self._used.popitem(last=False)
            self.size_bytes -= weight
            if owner.evict(start):
                self.evictions += 1
            else:
                refused.append((owner, start, weight))
        for owner, start, weight in refused:
            self.used(owner, start, weight)

    def check_invariants(self) -> None:
        """Check the invariants, for tests and simulations."""
        assert self.size_bytes == sum(self._used.values())
