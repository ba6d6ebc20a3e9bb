"""BookieInside: a bookie in the broker's own process, as a standalone has one, and how readers on the machine get at its files.

Nobody listens at the address by which ledgers name it, so that readers ask its broker
(`broker.admin.routes.cluster.bookies`). Why, and who is told: docs/adr/0030-reads-on-one-machine.md.
"""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class BookieInside:
    """Bookie that hands over its files on the abstract socket of that name, to readers that show the token."""

    socket_name: bytes
    token: bytes = field(repr=False)
    entries_told: Callable[[], int]
    """Of how many somebody was told where in the files they are."""
