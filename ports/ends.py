"""Count of the large things of this process that have ended: topics, subscriptions, cursors, producers, consumers, connections.

Owns one number for the process, as the memory is the process's, and knows which ended things are in memory still. Owners call
`ended` when they release such a thing. When many have ended, a server gives free memory back to the system
(`cli.serving.free_memory`); when many stay, its collector looks for garbage among all objects (`cli.serving.interpreter`).
Read and written on the loop.
"""

import weakref


class Ends:
    """`count` only grows."""

    def __init__(self) -> None:
        self.count = 0
        self._there = set[weakref.ref[object]]()

    def ended(self, thing: object) -> None:
        """Counts a thing, and watches it until its memory is free."""
        self.count += 1
        self._there.add(weakref.ref(thing, self._there.discard))

    @property
    def still_there(self) -> int:
        """Number of ended things in memory: released by their owner, and referred to by something else."""
        return len(self._there)


ENDS = Ends()
