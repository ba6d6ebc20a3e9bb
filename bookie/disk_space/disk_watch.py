"""Disk watch: how much room the disks have, and whether the bookie may write. Pure.

diskUsageThreshold: full, the bookie is read-only until the usage is below diskUsageLwmThreshold again. diskUsageWarnThreshold:
nearly full, major compactions rest, since they need room before they give some (LedgerDirsMonitor, GarbageCollectorThread).

`fitted` makes the settings fit small disks. Apache's defaults are for disks of hundreds of gigabytes, where a journal file or
an entry log is a thousandth of the disk. On a small disk the journal alone would fill it, and since an entry log is reclaimed
as a whole, and the last one never, deleting topics would free nothing. Disks above 2 GB change nothing of the defaults.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum

from bookie.settings import MEGABYTE, BookieSettings
from ports.disk.disk_usage import DiskUsage

JOURNAL_SHARE, STEP_SHARE, LOG_SHARE = 16, 64, 16
"""A journal file, a step by which it grows, and an entry log (or both memtables) are at most these parts of their disk."""
LOG_BYTES_MIN = 64 * 1024


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


def fitted(settings: BookieSettings, journal_disk_bytes: int, ledger_disk_bytes: int) -> BookieSettings:
    """The settings for disks of these sizes."""
    journal_mb = max(1, min(settings.journal_max_size_mb, journal_disk_bytes // JOURNAL_SHARE // MEGABYTE))
    step_mb = max(1, min(settings.journal_pre_alloc_size_mb, journal_disk_bytes // STEP_SHARE // MEGABYTE))
    memtables_mb = max(2, min(settings.db_storage_write_cache_max_size_mb, ledger_disk_bytes // LOG_SHARE // MEGABYTE))
    log_bytes = min(settings.log_size_limit, max(LOG_BYTES_MIN, ledger_disk_bytes // LOG_SHARE))
    above_threshold = int((1 - settings.disk_usage_threshold) * ledger_disk_bytes)
    return replace(
        settings,
        journal_max_size_mb=journal_mb,
        journal_pre_alloc_size_mb=min(step_mb, journal_mb),
        db_storage_write_cache_max_size_mb=min(settings.db_storage_write_cache_max_size_mb, memtables_mb),
        log_size_limit=log_bytes,
        min_usable_size_for_high_priority_writes=_high_priority_bytes(settings, above_threshold),
    )


def _high_priority_bytes(settings: BookieSettings, above_threshold: int) -> int:
    """Bytes to keep free from recoveries: as set, else at most half of those above the threshold: recoveries get the rest."""
    given = settings.min_usable_size_for_high_priority_writes
    return min(settings.high_priority_bytes_min, above_threshold // 2) if given is None else given
