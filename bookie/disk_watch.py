"""Disk watch: when a disk is too full to write, when it has room again (diskUsageThreshold, diskUsageLwmThreshold). Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from ports.disk import DiskUsage


@dataclass(frozen=True, slots=True)
class DiskWatch:
    """Full at `threshold`; again writable below `low_water_mark`, so that the answer does not flap."""

    threshold: float
    low_water_mark: float

    def is_full(self, usages: Iterable[DiskUsage], *, was_full: bool) -> bool:
        limit = self.low_water_mark if was_full else self.threshold
        return any(1 - usage.free_bytes / max(1, usage.total_bytes) >= limit for usage in usages)
