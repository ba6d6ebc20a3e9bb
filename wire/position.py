"""Position: the place of an entry in a topic, ordered by ledger then entry."""

from typing import NamedTuple


class Position(NamedTuple):
    """A ledger id and an entry id; entry -1 is the place before the first entry of the ledger."""

    ledger_id: int
    entry_id: int

    def __str__(self) -> str:
        return f"{self.ledger_id}:{self.entry_id}"
