"""Starts: some works begin in each turn of the event loop, however many parties ask for how many.

For requests of peers that make something (a producer, a subscription, a topic): each takes milliseconds of the loop, and a
peer may send a thousand at once. The parties take turns, so that one with a thousand does not keep another's only one waiting.
Owns who waits, and bounds nothing but the pace: each party bounds how much of its own waits.
"""

import asyncio
from collections import deque

STARTS_PER_TURN = 4
"""At half a millisecond to two each until the work first waits: a few milliseconds."""


class Starts:
    """The works of one loop."""

    def __init__(self, per_turn: int = STARTS_PER_TURN) -> None:
        self._per_turn = self._left = per_turn
        self._waiting: dict[int, deque[asyncio.Future[None]]] = {}
        """By party, the next one first. None of the deques is empty."""
        self._is_turn_begun = False

    def take(self) -> bool:
        """Whether a work may begin now: not beyond the number of a turn, nor before those that wait."""
        self._begin_turn()
        if self._waiting or not self._left:
            return False
        self._left -= 1
        return True

    async def turn(self, party: int) -> None:
        """Return in the turn of the loop in which the party's next work may begin. For who could not take one at once."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(party, deque()).append(waiter)
        self._begin_turn()
        await waiter

    def _begin_turn(self) -> None:
        if not self._is_turn_begun:
            self._is_turn_begun = True
            asyncio.get_running_loop().call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._left = self._per_turn
        while self._left and self._waiting:
            party = next(iter(self._waiting))
            line = self._waiting.pop(party)
            waiter = line.popleft()
            if line:
                self._waiting[party] = line
            if not waiter.done():  # a work that was given up
                waiter.set_result(None)
                self._left -= 1
        self._is_turn_begun = False
        if self._left < self._per_turn:
            self._begin_turn()
