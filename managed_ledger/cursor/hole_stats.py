"""HoleStats: how the holes of a cursor are kept at the moment. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HoleStats:
    """Counts since the cursor was opened, where they are not of this moment.

    `is_segmented`: stored as segments, else in Apache's format. `switches`: from that to segments, `returns`: back.
    `resident_segments` of `segments` are in memory. `saved_entries` and `saved_bytes` (payload): of the last save.
    """

    acknowledged_entries: int
    is_segmented: bool
    segments: int
    resident_segments: int
    switches: int
    returns: int
    loads: int
    saves: int
    saved_entries: int
    saved_bytes: int
