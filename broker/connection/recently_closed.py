"""Ids of producers and consumers that the broker has closed, for as long as the peer may not know it yet. Pure."""


class RecentlyClosed:
    """Forgets an id after a time; look-ups are rare, so that it cleans up when an id is added."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until: dict[int, float] = {}
        """The oldest first."""

    def add(self, closed_id: int, now: float) -> None:
        self._until.pop(closed_id, None)
        self._until[closed_id] = now + self._seconds
        while self._until[oldest := next(iter(self._until))] <= now:
            del self._until[oldest]

    def forget(self, closed_id: int) -> None:
        """The id is in use again."""
        self._until.pop(closed_id, None)

    def has(self, closed_id: int, now: float) -> bool:
        return self._until.get(closed_id, now) > now
