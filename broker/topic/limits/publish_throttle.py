"""Publishing over a rate: producers over the rate are not read until there is room again (Apache: PublishRateLimiterImpl). Owns
the waiting producers of one rate, a topic's or the whole broker's. Messages read already are stored all the same: nothing is
lost, and the excess is waited for. There is no PublishThrottle without a limit.
"""

import asyncio
from typing import Protocol

from .token_buckets import RateLimiter


class Publishing(Protocol):
    """A producer that may have to wait, compared by identity."""

    def hold_reading(self) -> None:
        """Once more: it is read from again after as many `resume_reading`."""

    def resume_reading(self) -> None: ...


class PublishThrottle:
    """Throttle of one rate; `close` lets all producers go on."""

    def __init__(self, messages: int, size: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._limiter = RateLimiter(messages, size, 1.0, self._loop.time())
        self._waiting: dict[Publishing, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    def published(self, by: Publishing, messages: int, size: int) -> bool:
        """Whether that was too much, and `by` has to wait because of it."""
        now = self._loop.time()
        self._limiter.take(messages, size, now)
        wait_seconds = self._limiter.wait_seconds(now)
        if wait_seconds <= 0 or self._is_closed:
            return False
        if by not in self._waiting:
            self._waiting[by] = None
            by.hold_reading()
        if self._timer is None:
            self._timer = self._loop.call_later(wait_seconds, self._fired)
        return True

    def close(self) -> None:
        """Ends the rate."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._resume()

    def _fired(self) -> None:
        self._timer = None
        wait_seconds = self._limiter.wait_seconds(self._loop.time())
        if wait_seconds > 0:
            self._timer = self._loop.call_later(wait_seconds, self._fired)
        else:
            self._resume()

    def _resume(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for each in waiting:
            each.resume_reading()
