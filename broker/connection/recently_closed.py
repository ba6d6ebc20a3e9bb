"""Ids of producers and consumers that the broker has closed, for as long as the peer may not have heard of it. Pure."""


class RecentlyClosed:
    """Forgets an id after a time; what is asked for comes seldom, so that it cleans up when something is added."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until: dict[int, float] = {}

    def add(self, closed_id: int, now: float) -> None:
        expired = [known for known, until in self._until.items() if until <= now]
        for known in expired:
            del self._until[known]
        self._until[closed_id] = now + self._seconds

    def forget(self, closed_id: int) -> None:
        """The id is in use again."""
        self._until.pop(closed_id, None)

    def has(self, closed_id: int, now: float) -> bool:
        return self._until.get(closed_id, now) > now
