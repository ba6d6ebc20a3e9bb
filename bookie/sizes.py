"""Sizes: sizes of stored and written data of a bookie, for metrics. Pure."""

from typing import NamedTuple

from bookie.upkeep.compaction_plan import LogUse


class Sizes(NamedTuple):
    """Sizes of stored data, and the bytes journalled since the start."""

    ledgers: int
    memtable_bytes: int
    journal_bytes: int
    journal_frames: int
    logs: list[LogUse]
    entries: int
    """On disk; those in memory alone are not counted."""
    adds_waiting: int
    """Adds that wait for room in memory."""
    reads_under_way: int
    """Reads of disks, including those that wait for their turn."""
    reads_waiting: int
