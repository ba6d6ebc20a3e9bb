"""Liveness: whether a peer is still there, asked when another client wants its name or role.

A client whose machine is gone leaves its connection open for as long as the keep-alive takes. Until then its successor would be
refused, with an error that clients take as final. The old peer therefore gets a PING, and a silent peer loses its connection
(Apache's ServerCnx.checkConnectionLiveness). Unlike there, any byte counts as a sign of life, and a peer that we do not read
ourselves (back-pressure) counts as alive. Owns the one check under way and its timer; knows no frames.
"""

import asyncio
from collections.abc import Callable


class Liveness:
    """Liveness of the peer of one connection. `end` must lead to `ended` before it returns."""

    def __init__(
        self, ping: Callable[[], None], end: Callable[[str], None], is_listening: Callable[[], bool], timeout_ms: int
    ) -> None:
        self._ping = ping
        self._end = end
        self._is_listening = is_listening
        self._timeout_ms = timeout_ms
        self._answer: asyncio.Future[bool] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._has_ended = False

    async def check(self) -> bool:
        """Concurrent callers share one PING. True at once when the check is off."""
        if self._has_ended:
            return False
        if self._timeout_ms <= 0:
            return True
        if self._answer is None:
            loop = asyncio.get_running_loop()
            self._answer = loop.create_future()
            self._timer = loop.call_later(self._timeout_ms / 1000, self._expired)
            self._ping()
        return await asyncio.shield(self._answer)

    def heard(self) -> None:
        """Something has come; called for every read."""
        if self._answer is not None:
            self._settle(is_alive=True)

    def _expired(self) -> None:
        if self._is_listening():
            self._end(f"no answer to PING within {self._timeout_ms} ms, and another client wants its place")
        else:
            self._settle(is_alive=True)

    def ended(self) -> None:
        """The connection is gone, and everything on it is closed."""
        self._has_ended = True
        self._settle(is_alive=False)

    def _settle(self, *, is_alive: bool) -> None:
        answer, self._answer = self._answer, None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if answer is not None:
            answer.set_result(is_alive)
