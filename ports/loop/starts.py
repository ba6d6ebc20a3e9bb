"""Starts: some works begin in each turn of the event loop, however many parties ask for how many.

For requests of peers that make something (a producer, a subscription, a topic): each takes milliseconds of the loop, and a
peer may send a thousand at once. The parties take turns, so that one with a thousand does not keep another's only one waiting.
Owns the waiting works, and the number under way of each party. Bounds: UNDER_WAY_MAX of a party, its next one waits until one
has ended; WAITING_MAX that wait, the next one is refused (StartsFull).
"""

import asyncio
from collections import deque

STARTS_PER_TURN = 4
"""Works that begin in a turn. Each takes half a millisecond to two until it first waits: a few milliseconds together."""
UNDER_WAY_MAX = 500
"""Each holds what it works on, tens of kilobytes for a topic that is being loaded."""
WAITING_MAX = 2000
"""Twice what a connection reads before it is to stop."""


class StartsFull(Exception):
    """Too many works of this party wait already."""


class Starts:
    """The works of one loop. A caller whose work may begin, by `take` or `turn`, calls `ended` at its end, however it went."""

    def __init__(
        self, per_turn: int = STARTS_PER_TURN, under_way_max: int = UNDER_WAY_MAX, waiting_max: int = WAITING_MAX
    ) -> None:
        self._per_turn = self._left = per_turn
        self._under_way_max, self._waiting_max = under_way_max, waiting_max
        self._under_way: dict[int, int] = {}
        self._waiting: dict[int, deque[asyncio.Future[None]]] = {}
        """Waiters of each party that has room for another work; the next party first. No deque is empty, here and below."""
        self._held: dict[int, deque[asyncio.Future[None]]] = {}
        """Waiters of each party that has no room."""
        self._is_turn_begun = False

    def under_way(self, party: int) -> int:
        return self._under_way.get(party, 0)

    def take(self, party: int) -> bool:
        """Whether a work may begin now: not beyond the number of a turn or of the party, nor before those that wait."""
        self._begin_turn()
        if self._waiting or party in self._held or not self._left or self.under_way(party) >= self._under_way_max:
            return False
        self._left -= 1
        self._begun(party)
        return True

    async def turn(self, party: int) -> None:
        """Return in the turn of the loop in which the party's next work may begin. For a caller whose `take` was refused.

        StartsFull. A wait that is cancelled has begun nothing."""
        lines = self._held if self.under_way(party) >= self._under_way_max else self._waiting
        line = lines.setdefault(party, deque())
        if len(line) >= self._waiting_max:
            raise StartsFull(f"{len(line)} requests of this connection wait to be begun; ask again later")
        waiter = asyncio.get_running_loop().create_future()
        line.append(waiter)
        self._begin_turn()
        try:
            await waiter
        except asyncio.CancelledError:
            if not waiter.cancelled():
                self.ended(party)  # its turn had come, and nothing comes of it
            raise

    def ended(self, party: int) -> None:
        """A work of the party that was let begin has ended."""
        left = self._under_way[party] - 1
        if left:
            self._under_way[party] = left
        else:
            del self._under_way[party]
        line = self._held.pop(party, None)
        if line is not None:
            self._waiting[party] = line
            self._begin_turn()

    def _begun(self, party: int) -> None:
        self._under_way[party] = self.under_way(party) + 1

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
            if not waiter.done():  # a work that was given up
                waiter.set_result(None)
                self._left -= 1
                self._begun(party)
            if line:
                lines = self._held if self.under_way(party) >= self._under_way_max else self._waiting
                lines[party] = line
        self._is_turn_begun = False
        if self._left < self._per_turn:
            self._begin_turn()
