"""AwaitedReturn: a reader that has sought is waited for, so that its place is there when it comes back. Owns the timer."""

import asyncio
from collections.abc import Callable

_SECONDS_MAX = 60.0
"""Apache keeps the place until the topic is unloaded."""


class AwaitedReturn:
    """Of one subscription, which nothing keeps in memory when nobody is waited for. `give_up`: it did not come back."""

    def __init__(self, give_up: Callable[[], None]) -> None:
        self._give_up = give_up
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Wait from now on."""
        self.end()
        self._timer = asyncio.get_running_loop().call_later(_SECONDS_MAX, self._give_up)

    def end(self) -> None:
        """It is back, or nobody is waited for any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
