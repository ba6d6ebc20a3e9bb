"""Rest: bytes that a connection has read and not handled yet, because that takes longer than one turn of the event loop.

That is the rest of one command, in slices, and the frames behind it. Owns the order of turns, not the work in them.
While a connection is behind it reads nothing, so that the rest is no longer than one read.
"""

import asyncio
from collections.abc import Callable, Iterator

FRAMES_PER_TURN = 128
"""Frames (a run of SENDs or ACKs is one) that are handled before others have their turn of the loop: at 5 to 40 microseconds
each, a few milliseconds."""


class Rest:
    """The rest of one connection. `go_on` is called in the next turn of the loop after it fell behind."""

    def __init__(self, go_on: Callable[[], None]) -> None:
        self._go_on = go_on
        self._slices: Iterator[None] | None = None
        self._handle: asyncio.Handle | None = None

    @property
    def is_behind(self) -> bool:
        """Whether there is something for the next turn of the loop."""
        return self._handle is not None

    def begin(self, slices: Iterator[None]) -> None:
        """A command's work: its first slice is done now."""
        assert self._slices is None, "a command was handled before the one before it had its end"
        self._slices = slices
        self.is_through()

    def is_through(self) -> bool:
        """Do the next slice, if there is one; whether it was the last."""
        if self._slices is not None:
            for _ in self._slices:
                self.fall_behind()
                return False
            self._slices = None
        return True

    def fall_behind(self) -> None:
        """The rest has the next turn."""
        if self._handle is None:
            self._handle = asyncio.get_running_loop().call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._handle = None
        self._go_on()

    def close(self) -> None:
        """Nothing is handled any more."""
        self._slices = None
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
