"""Disk watch: how much room the disks have, and whether the bookie may write. Pure.

diskUsageThreshold: full, the bookie is read-only until the usage is below diskUsageLwmThreshold again. diskUsageWarnThreshold:
nearly full, major compactions rest, since they need room before they give some (LedgerDirsMonitor, GarbageCollectorThread).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from ports.disk.disk_usage import DiskUsage


class Room(IntEnum):
    """Room left on the disk that has least."""

    NONE = 0
    """Over diskUsageThreshold, and since then not below diskUsageLwmThreshold."""
    LITTLE = 1
    """Over diskUsageWarnThreshold."""
    ENOUGH = 2


@dataclass(frozen=True, slots=True)
class DiskWatch:
    """Full at `threshold`; again writable below `low_water_mark`, so that the answer does not flap."""

    threshold: float
    low_water_mark: float
    warn_threshold: float = 1.0

    def room(self, usages: Iterable[DiskUsage], *, was_full: bool) -> Room:
        """`was_full`: the last answer was NONE."""
        used = max((1 - usage.free_bytes / max(1, usage.total_bytes) for usage in usages), default=0.0)
        if used >= (self.low_water_mark if was_full else self.threshold):
            return Room.NONE
        return Room.LITTLE if used >= self.warn_threshold else Room.ENOUGH

    def left_bytes(self, usages: Iterable[DiskUsage]) -> int:
        """Number of bytes that may be written before the threshold; below zero: it is passed."""
        return min(int(self.threshold * usage.total_bytes) - usage.total_bytes + usage.free_bytes for usage in usages)
