"""ConfirmedListeners: who wants to hear that last_confirmed moved, or of another change that needs no particulars.

Told at the end of the turn, and once however many runs came in it.
"""

import asyncio
from collections.abc import Callable

from ports.turn import turn_of


class ConfirmedListeners:
    """Called on the loop in the order in which they came."""

    def __init__(self) -> None:
        self._turn = turn_of(asyncio.get_running_loop())
        self._listeners: dict[int, Callable[[], None]] = {}
        self._given = 0
        self._is_due = False

    def add(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Returns the call that ends it; ending twice is fine."""
        self._given += 1
        key = self._given
        self._listeners[key] = listener

        def end() -> None:
            self._listeners.pop(key, None)

        return end

    def moved(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._turn.at_end(self._tell)

    def clear(self) -> None:
        self._listeners.clear()

    def _tell(self) -> None:
        self._is_due = False
        for listener in list(self._listeners.values()):
            listener()
