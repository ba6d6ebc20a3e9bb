"""AwaitedReturn: a reader that has sought is waited for, so that its place is there when it comes back. Owns the timer."""

import asyncio
from collections.abc import Callable

_SECONDS_MAX = 60.0
"""Apache keeps the place until the topic is unloaded."""


class AwaitedReturn:
    """Timer of one subscription, in memory only while a reader is awaited. `give_up`: the reader did not come back."""

    def __init__(self, give_up: Callable[[], None]) -> None:
        self._give_up = give_up
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Wait from now on."""
        self.end()
        self._timer = asyncio.get_running_loop().call_later(_SECONDS_MAX, self._give_up)

    def end(self) -> None:
        """Stops the timer: the reader is back, or is awaited no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
