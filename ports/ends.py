"""Count of the large things of this process that have ended: topics, subscriptions, cursors, producers, consumers, connections.

Owns one number for the process, as the memory is the process's. Whoever releases such a thing adds to the count; the server
gives free memory back to the system when many have ended (`cli.serving.free_memory`). Read and written on the loop.
"""

from dataclasses import dataclass


@dataclass(slots=True)
class Ends:
    """`count` only grows."""

    count: int = 0


ENDS = Ends()
