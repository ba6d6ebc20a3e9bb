"""Timer for topics whose messages have a time to live: due when the oldest unacknowledged message has outlived it.

A message published after a look cannot be due before a whole time to live has passed, so that an idle topic is checked once in
that time, a topic without a time to live never, and publishes and acknowledgements cost nothing. A message published with a
time in the past, or brought back by a seek, may have to wait for the broker's round (messageExpiryCheckIntervalInMinutes, which
is all that Apache has).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from broker.errors import BrokerError
from ports.clock import Clock
from ports.logs import line

log = logging.getLogger(__name__)

SLACK_SECONDS = 0.5
"""Delay after the oldest message is due: messages that become due meanwhile go with it, and all within a second."""
_RETRY_SECONDS_MAX = 60.0


def look_after_seconds(now_ms: int, ttl_seconds: float, oldest_ms: int | None) -> float:
    """Seconds until the next look; `oldest_ms` is when the oldest message was published, None without a backlog."""
    since_ms = now_ms if oldest_ms is None else min(oldest_ms, now_ms)
    return max(0.0, since_ms / 1000 + ttl_seconds - now_ms / 1000) + SLACK_SECONDS


class ExpiryTimer:
    """Timer of one topic. `look` acknowledges expired messages, and returns the publish time of the oldest one left."""

    def __init__(
        self,
        name: str,
        look: Callable[[], Awaitable[int | None]],
        run_task: Callable[[Coroutine[Any, Any, None]], None],
        clock: Clock,
    ) -> None:
        self._name = name
        self._look = look
        self._run_task = run_task
        self._clock = clock
        self._ttl_seconds = 0
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    def set_ttl(self, seconds: int) -> None:
        """Sets the time to live from now on; 0 or less: nothing expires."""
        if seconds != self._ttl_seconds:
            self._ttl_seconds = seconds
            self._look_after(SLACK_SECONDS)

    def close(self) -> None:
        self._is_closed = True
        self._cancel()

    def _look_after(self, seconds: float) -> None:
        self._cancel()
        if self._ttl_seconds > 0 and not self._is_closed:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._due)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _due(self) -> None:
        self._run_task(self._expire())

    async def _expire(self) -> None:
        seconds = min(self._ttl_seconds, _RETRY_SECONDS_MAX)
        try:
            oldest_ms = await self._look()
            seconds = look_after_seconds(self._clock.now_ms(), self._ttl_seconds, oldest_ms)
        except BrokerError as error:
            log.warning(line("expiring messages failed", topic=self._name, error=error))
        except Exception:
            log.exception(line("expiring messages failed", topic=self._name))
        self._look_after(seconds)
