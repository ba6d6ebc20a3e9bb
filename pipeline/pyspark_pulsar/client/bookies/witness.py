"""Whether who answers at a bookie's address is a bookie of the topic's cluster: then the broker has the same entry.

The address that a ledger names may be another's on this machine: a cluster may call itself 127.0.0.1, a standalone's bookie
does not listen there, and every cluster has a ledger 0. An entry does not name its cluster; so the first of each bookie is
compared.
"""

import time

from ...options import Access
from ...plan import Split
from ...positions import LedgerRange
from ..split_reader import SplitReader

_KNOWN_SECONDS = 60.0
"""Time for which a process remembers a bookie vouched for: a task with many small topics does not ask for each."""
_known: dict[tuple[str, str], float] = {}
"""Until when, by service URL and identity of the bookie."""


class Witness:
    """Check of bookies against the broker, for one topic."""

    def __init__(self, topic: str, access: Access) -> None:
        self._topic, self._access = topic, access

    def knows(self, bookie: str) -> bool:
        """Whether this bookie was checked, by its identity: the same name in another process may be another bookie."""
        return _known.get((self._access.service_url, bookie), 0.0) > time.monotonic()

    def vouches(self, bookie: str, ledger_id: int, entry_id: int, section: bytes) -> bool:
        """Whether the bookie's entry is the broker's; False also where the broker gives nothing. Unreachable, Refused."""
        theirs = self._of_broker(LedgerRange(ledger_id, entry_id, entry_id + 1, len(section)))
        if not theirs or not (theirs.endswith(section) or section.endswith(theirs)):
            return False  # brokers may leave out what they put before an entry
        _known[self._access.service_url, bookie] = time.monotonic() + _KNOWN_SECONDS
        return True

    def _of_broker(self, entry: LedgerRange) -> bytes:
        found = b""
        for rows in SplitReader(Split(self._topic, (entry,)), self._access, False, False):
            if rows.block.count:
                found = rows.block.data[rows.block.starts[0] : rows.block.ends[0]].tobytes()
        return found
