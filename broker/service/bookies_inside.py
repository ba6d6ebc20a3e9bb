"""BookieInside: a bookie in the broker's own process, as a standalone has one, and the access of readers on the machine to its
files. No port is open at the address by which ledgers name it, so that readers ask its broker
(`broker.admin.routes.cluster.bookies`). The reason, and the callers that get the answer: docs/adr/0030-reads-on-one-machine.md.
"""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class BookieInside:
    """Bookie that hands over its files on the abstract socket of that name, to readers that show the token."""

    socket_name: bytes
    token: bytes = field(repr=False)
    entries_told: Callable[[], int]
    """Number of entries whose places in the files were given to readers."""
