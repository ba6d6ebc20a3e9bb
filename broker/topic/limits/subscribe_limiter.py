"""Rate of one consumer's subscribe requests (Apache: SubscribeRateLimiter). Pure; `now` is in seconds."""

from ...policies.policies import SubscribeRate

_CONSUMERS_MAX = 10_000
"""Counted at once; beyond them the one that came first is forgotten."""


class SubscribeLimiter:
    """Counts in periods: each begins with the first subscribe after the last one's end."""

    def __init__(self) -> None:
        self._rate = SubscribeRate()
        self._ends = 0.0
        self._counts: dict[tuple[str, str, int], int] = {}

    def takes(self, rate: SubscribeRate, host: str, name: str, consumer_id: int, now: float) -> bool:
        """Whether this consumer may subscribe now; if so it is counted."""
        if not rate.is_limited:
            return True
        if rate != self._rate or now >= self._ends:
            self._rate, self._ends = rate, now + rate.period_seconds
            self._counts.clear()
        key = (host, name, consumer_id)
        count = self._counts.get(key, 0)
        if count >= rate.per_consumer:
            return False
        if len(self._counts) >= _CONSUMERS_MAX and not count:
            del self._counts[next(iter(self._counts))]
        self._counts[key] = count + 1
        return True
