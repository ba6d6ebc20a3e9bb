"""Rates as token buckets: taken tokens may run a bucket into debt, which time pays back. Pure; `now` is in seconds. Apache's
AsyncTokenBucket: a bucket begins full and holds the tokens of one period. Decided on whole runs, so that one may overshoot; the
excess is waited for afterwards, and the mean is the rate.
"""

WAIT_SECONDS_MIN = 0.01
"""Shortest wait: a low limit does not wake for each token."""


class TokenBucket:
    """`tokens` in each period of `seconds`."""

    __slots__ = ("_at", "_capacity", "_per_second", "_tokens")

    def __init__(self, tokens: float, seconds: float, now: float) -> None:
        self._capacity = float(tokens)
        self._per_second = tokens / seconds
        self._tokens = float(tokens)
        self._at = now

    def take(self, tokens: float, now: float) -> None:
        """Takes tokens, also ones that are not there."""
        self._tokens = self.available(now) - tokens
        self._at = now

    def change(self, tokens: float, now: float) -> None:
        """Sets another rate from now on; taken tokens stay taken."""
        self.take(0, now)
        self._per_second *= tokens / self._capacity
        self._capacity = float(tokens)

    def available(self, now: float) -> float:
        """Below 0: debt."""
        return min(self._capacity, self._tokens + (now - self._at) * self._per_second)

    def wait_seconds(self, now: float) -> float:
        """Seconds until there is a whole token; 0 when there is one."""
        missing = 1 - self.available(now)
        return max(WAIT_SECONDS_MIN, missing / self._per_second) if missing > 0 else 0.0


class RateLimiter:
    """Messages and bytes, each limited if it is more than 0; an exhausted one is waited for."""

    def __init__(self, messages: int, size: int, seconds: float, now: float) -> None:
        self.messages = TokenBucket(messages, seconds, now) if messages > 0 else None
        self.bytes = TokenBucket(size, seconds, now) if size > 0 else None

    def take(self, messages: int, size: int, now: float) -> None:
        if self.messages is not None:
            self.messages.take(messages, now)
        if self.bytes is not None:
            self.bytes.take(size, now)

    def change(self, messages: int, size: int, now: float) -> None:
        """Changes the rates of the buckets that are limited."""
        if self.messages is not None:
            self.messages.change(messages, now)
        if self.bytes is not None:
            self.bytes.change(size, now)

    def wait_seconds(self, now: float) -> float:
        """0: there is room for something."""
        return max((bucket.wait_seconds(now) for bucket in (self.messages, self.bytes) if bucket is not None), default=0.0)
