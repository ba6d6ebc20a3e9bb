"""HoleStats: how the holes of a cursor are kept at the moment. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HoleStats:
    """Counts since the cursor was opened, where they are not of this moment.

    `ranges` of consecutive acknowledged entries; of segments as of the last save, and one for each segment that it is in.
    `is_segmented`: stored as segments, else in Apache's format. `switches`: from that to segments, `returns`: back.
    `resident_segments` of `segments` are in memory. `saved_entries` and `saved_bytes` (payload): of the last save.
    `ledger_id`: the ledger that it is kept in, -1: the node has it; `ledger_last_entry_id` of that; `ledger_switched_ms`: when
    it was changed last, or the cursor opened.
    """

    acknowledged_entries: int
    ranges: int
    is_segmented: bool = False
    segments: int = 0
    resident_segments: int = 0
    switches: int = 0
    returns: int = 0
    loads: int = 0
    saves: int = 0
    saved_entries: int = 0
    saved_bytes: int = 0
    ledger_id: int = -1
    ledger_last_entry_id: int = -1
    ledger_switched_ms: int = 0
