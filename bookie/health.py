"""Health: why the bookie refuses adds, if it does, and how much room its disks have.

Owns the reasons, each under its kind, and the look at the disks every diskCheckInterval. While a disk is full, and for no other
reason, a recovery may still add as long as minUsableSizeForHighPriorityWrites is free: a ledger must be closable (BookieImpl).
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from bookie.disk_watch import DiskWatch, Room
from bookie.settings import BookieSettings
from ports.disk import Disk
from ports.logs import line

JOURNAL, STORAGE, FULL, STOPPED, FORCED, LOST = "journal", "storage", "disk full", "stopped", "forced", "lost"
log = logging.getLogger("bookie")


class Health:
    """Of one bookie. `reasons` is empty while adds are welcome; whoever reads it often may keep it."""

    def __init__(self, disk: Disk, settings: BookieSettings, paths: Sequence[str], on_read_only: Callable[[], None]) -> None:
        self._disk = disk
        self._settings = settings
        self._paths = paths
        self._watch = DiskWatch(
            settings.disk_usage_threshold, settings.disk_usage_lwm_threshold, settings.disk_usage_warn_threshold
        )
        self._on_read_only = on_read_only
        self._free_bytes = 0
        self._watcher: asyncio.Task[None] | None = None
        self.reasons: dict[str, str] = {STOPPED: "not started"}
        self.room = Room.ENOUGH
        self.must_end = asyncio.Event()
        """It may not be read-only (readOnlyModeEnabled=false), and it is: the process has to end."""

    @property
    def reason(self) -> str:
        """Why adds are refused; empty: they are not."""
        return "; ".join(f"{kind}: {reason}" for kind, reason in self.reasons.items())

    @property
    def takes_recovery(self) -> bool:
        """Adds of a recovery are welcome, though others may not be."""
        return self.reasons.keys() <= {FULL} and self._free_bytes >= self._settings.high_priority_bytes_min

    def turn_read_only(self, kind: str, reason: str) -> None:
        if kind not in self.reasons:
            log.error(line("bookie is read-only", kind=kind, reason=reason))
        self.reasons[kind] = reason
        self._on_read_only()
        if not self._settings.read_only_mode_enabled and kind not in (STOPPED, FORCED, LOST):
            log.critical(line("readOnlyModeEnabled=false: the bookie has to end", kind=kind, reason=reason))
            self.must_end.set()

    def turn_writable(self, kind: str) -> None:
        if self.reasons.pop(kind, None) is not None:
            log.warning(line("bookie has recovered", kind=kind, still=self.reason or "writable"))

    async def check_usage(self) -> None:
        """Look at the disks. OSError."""
        usages = [await self._disk.usage(path) for path in self._paths]
        self._free_bytes = min(usage.free_bytes for usage in usages)
        before, self.room = self.room, self._watch.room(usages, was_full=self.room is Room.NONE)
        if self.room is Room.NONE:
            self.turn_read_only(FULL, f"over {self._settings.disk_usage_threshold:.0%}")
        elif self.room is Room.LITTLE and before is Room.ENOUGH:
            log.warning(line("a disk is nearly full", over=f"{self._settings.disk_usage_warn_threshold:.0%}"))
        if self.room is not Room.NONE:
            self.turn_writable(FULL)

    def start(self, on_checked: Callable[[], None]) -> None:
        """Look every diskCheckInterval, and tell."""
        self._watcher = asyncio.create_task(self._watch_disks(on_checked), name="bookie-disk-watch")

    async def stop(self) -> None:
        """Stopping twice is fine."""
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.cancel()
            await asyncio.wait([watcher])

    async def _watch_disks(self, on_checked: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(self._settings.disk_check_interval / 1000)
            try:
                await self.check_usage()
                on_checked()
            except OSError as error:
                log.error(line("disk usage unknown", error=error))
