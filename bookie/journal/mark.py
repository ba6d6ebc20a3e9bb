"""JournalMark: a place in the journal, ordered by sequence. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class JournalMark:
    """After frame `sequence`, which ends at `offset` of file `file_id`. Sequence 0: before the first frame ever written."""

    sequence: int = 0
    file_id: int = 0
    offset: int = 0
