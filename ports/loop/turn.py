"""Turn: calls at the end of the event that the loop is at.

One event (bytes of a peer, the end of a write) goes through many objects, and some have work left when all have had it: notify
of news, write the answers. Asked of the loop, such a call waits for the next round, with a look at all sockets in between, and
the calls that it asks for wait for one more. Instead, the receiver of an event from the loop opens the turn and closes it.
While no turn is open, the loop makes the call soon.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from types import TracebackType
from weakref import WeakKeyDictionary


class Turn:
    """Turn of one loop. `with turn:` around an event; opened within itself it ends with the outermost."""

    __slots__ = ("_depth", "_parts")

    def __init__(self) -> None:
        self._depth = 0
        self._parts: deque[Callable[[], object]] = deque()

    def at_end(self, part: Callable[[], object]) -> None:
        """Call `part` after the event, in the order of asking; also parts that are asked for meanwhile."""
        if self._depth:
            self._parts.append(part)
        else:
            asyncio.get_running_loop().call_soon(part)

    def __enter__(self) -> None:
        self._depth += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        try:
            if self._depth == 1:
                self._end()
        finally:
            self._depth -= 1

    def _end(self) -> None:
        parts = self._parts
        while parts:
            self.call(parts.popleft())

    def call(self, part: Callable[[], object]) -> None:
        """Now. An error goes to the loop's handler, as that of a callback."""
        try:
            part()
        except Exception as error:  # noqa: BLE001  # as the loop does it for callbacks
            asyncio.get_running_loop().call_exception_handler({"message": f"{part} raised", "exception": error})


_TURNS: "WeakKeyDictionary[asyncio.AbstractEventLoop, Turn]" = WeakKeyDictionary()


def turn_of(loop: asyncio.AbstractEventLoop) -> Turn:
    """The one turn of a loop."""
    turn = _TURNS.get(loop)
    if turn is None:
        turn = _TURNS[loop] = Turn()
    return turn
