"""Count of the large things of this process that have ended: topics, subscriptions, cursors, producers, consumers, connections.

Owns one number for the process, as the memory is the process's. Owners add to it when they release such a thing.
When many have ended, a server gives free memory back to the system (`cli.serving.free_memory`), and its collector looks for
garbage among all objects (`cli.serving.interpreter`). Read and written on the loop.
"""

from dataclasses import dataclass


@dataclass(slots=True)
class Ends:
    """`count` only grows."""

    count: int = 0


ENDS = Ends()
