"""ReadsInFlight: how many bytes are being read from ledgers at a time, over all managed ledgers of a process. Pure.

A read without room waits in line, and the line is bounded. Owns no reads: callers give back the bytes that they took
(Apache: InflightReadsLimiter; managedLedgerMaxReadsInFlightSizeInMB and its two companions).
"""

from collections import deque
from collections.abc import Callable


class _Waiting:
    __slots__ = ("granted", "size")

    def __init__(self, size: int, granted: Callable[[], None]) -> None:
        self.size = size
        self.granted = granted


class ReadsInFlight:
    """`bytes_max` 0: no bound. A read larger than the bound counts as the bound: it goes alone."""

    def __init__(self, bytes_max: int, waiting_max: int) -> None:
        self.bytes_max = bytes_max
        self.waiting_max = waiting_max
        self.size_bytes = 0
        self._waiting: deque[_Waiting] = deque()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def try_take(self, size: int) -> bool:
        """Take room if there is some and no read waits; whether it was taken."""
        size = self._counted(size)
        if self._waiting or not self._fits(size):
            return False
        self.size_bytes += size
        return True

    def wait(self, size: int, granted: Callable[[], None]) -> _Waiting | None:
        """Stand in line: `granted` is called once it is taken. None: the line is full."""
        if len(self._waiting) >= self.waiting_max:
            return None
        waiting = _Waiting(self._counted(size), granted)
        self._waiting.append(waiting)
        return waiting

    def leave(self, waiting: _Waiting) -> None:
        """Leave the line before the grant. Reads behind may fit now."""
        self._waiting.remove(waiting)
        self._grant()

    def give_back(self, size: int) -> None:
        self.size_bytes -= self._counted(size)
        self._grant()

    def _grant(self) -> None:
        waiting = self._waiting
        while waiting and self._fits(waiting[0].size):
            first = waiting.popleft()
            self.size_bytes += first.size
            first.granted()

    def _counted(self, size: int) -> int:
        return min(size, self.bytes_max) if self.bytes_max else size

    def _fits(self, size: int) -> bool:
        return not self.bytes_max or self.size_bytes + size <= self.bytes_max

    def check_invariants(self) -> None:
        """Check the invariants, for tests and simulations."""
        assert self.size_bytes >= 0
        assert self.size_bytes <= self.bytes_max or not self.bytes_max
        assert len(self._waiting) <= self.waiting_max
        assert not (self._waiting and self._fits(self._waiting[0].size)), "the first one waits though there is room"
