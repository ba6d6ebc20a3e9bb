"""RequestLimit: an HTTP application that answers so many requests a second, and refuses the others with 429.

As Apache's (RateLimitingFilter over Guava's RateLimiter): no request waits; the unused rest of a second may be used in the
next one; every path counts. Owns no socket.
"""

import asyncio
from collections.abc import Callable
from typing import Any

REFUSAL = b'{"reason":"Too Many Requests"}'
HEADERS = [(b"content-type", b"application/json"), (b"content-length", str(len(REFUSAL)).encode())]


class RequestRate:
    """Pure. A request that finds no permit may borrow one, and later requests are refused until that is paid back."""

    def __init__(self, per_second: float, now: float) -> None:
        self._per_second = per_second
        self._unused, self._free_at = 0.0, now

    def take(self, now: float) -> bool:
        if now < self._free_at:
            return False
        self._unused = min(self._per_second, self._unused + (now - self._free_at) * self._per_second)
        borrowed = max(0.0, 1 - self._unused)
        self._unused = max(0.0, self._unused - 1)
        self._free_at = now + borrowed / self._per_second
        return True


class RequestLimit:
    """Around an ASGI application. `refused` is called for every refused request."""

    def __init__(self, app: Any, per_second: float, refused: Callable[[], None]) -> None:
        self._app, self._refused = app, refused
        self._rate = RequestRate(per_second, asyncio.get_running_loop().time())

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or self._rate.take(asyncio.get_running_loop().time()):
            await self._app(scope, receive, send)
            return
        self._refused()
        await send({"type": "http.response.start", "status": 429, "headers": HEADERS})
        await send({"type": "http.response.body", "body": REFUSAL})
