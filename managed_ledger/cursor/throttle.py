"""Throttle: time of a changed cursor's save, at most so many a second, and not later than the flush interval. Pure.

Apache (ManagedCursorImpl) writes a mark when the rate allows it and leaves what came too soon to the next mark or the periodic
flush; here what came too soon is written as soon as the rate allows, so that less is delivered again after a crash.
"""


class MarkRate:
    """Rate that all cursors of a managed ledger share: a change costs the same, however many they are."""

    __slots__ = ("interval_s",)

    def __init__(self, marks_per_second: float) -> None:
        self.limit(marks_per_second)

    def limit(self, marks_per_second: float) -> None:
        """Limit the rate from the next write of each cursor on; 0: no limit."""
        self.interval_s = 1.0 / marks_per_second if marks_per_second > 0 else 0.0


class MarkThrottle:
    """Times are seconds of the loop. At most one write is planned or under way."""

    __slots__ = ("_flush_s", "_is_busy", "_next_at", "_rate", "_stored_version")

    def __init__(self, rate: MarkRate, flush_s: float, stored_version: int = 0) -> None:
        self._rate = rate
        self._flush_s = flush_s
        self._next_at = 0.0
        self._is_busy = False
        self._stored_version = stored_version

    def changed(self, version: int, now: float) -> float | None:
        """Time of the write; None: nothing to do, or a write is planned or under way already."""
        if self._is_busy or version == self._stored_version:
            return None
        self._is_busy = True
        return min(max(now, self._next_at), now + self._flush_s)

    def write_started(self, now: float) -> None:
        self._is_busy = True
        self._next_at = now + self._rate.interval_s

    def write_ended(self, stored_version: int | None) -> None:
        """None: it failed. Ask `changed` for the next one."""
        self._is_busy = False
        if stored_version is not None:
            self._stored_version = max(stored_version, self._stored_version)

    def is_stored(self, version: int) -> bool:
        return version <= self._stored_version
