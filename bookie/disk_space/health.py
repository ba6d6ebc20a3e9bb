"""Health: why the bookie refuses adds, if it does, and how much room its disks have.

Owns the reasons, each under its kind, and the look at the disks: every diskCheckInterval, and every second while one is nearly
full or has no room. Bytes in the memtables count as used, and so do those added between two looks: a disk fills faster than the
bookie looks at it. While a disk is full, and for no other reason, a recovery may still add as long as
minUsableSizeForHighPriorityWrites is free: a ledger must be closable (BookieImpl).
A broker in the same process stops publishers somewhat earlier (`publish_refusal`): the rest is for cursors and the like.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from bookie.disk_space.disk_watch import DiskWatch, Room
from bookie.settings import BookieSettings
from ports.disk.disk import Disk
from ports.disk.disk_usage import DiskUsage
from ports.logs import line

JOURNAL, STORAGE, FULL, STOPPED, FORCED, LOST = "journal", "storage", "disk full", "stopped", "forced", "lost"
LOOK_SECONDS, LOOK_SECONDS_MIN = 1.0, 0.05
"""Between two looks while there is little or no room; and whatever happens."""
WRITTEN_TIMES = 2
"""Number of times that an added entry is written: in the journal and, later, in an entry log."""
KEPT_BYTES_MAX, KEPT_SHARE = 64 << 20, 20
"""Publishing ends when so many bytes, or this part of the disk, are left below the threshold."""
EVERYTHING = 1 << 62
log = logging.getLogger("bookie")


class Health:
    """Health of one bookie. `reasons` is empty while adds are accepted; a frequent reader may keep the object."""

    def __init__(
        self,
        disk: Disk,
        settings: BookieSettings,
        paths: Sequence[str],
        on_read_only: Callable[[], None],
        pending_bytes: Callable[[], int],
    ) -> None:
        """`pending_bytes`: of added entries that are in no entry log yet."""
        self._disk = disk
        self.settings = settings
        self._paths = paths
        self._watch = DiskWatch(
            settings.disk_usage_threshold, settings.disk_usage_lwm_threshold, settings.disk_usage_warn_threshold
        )
        self._on_read_only = on_read_only
        self._pending_bytes = pending_bytes
        self._free_bytes = 0
        self._left_bytes = EVERYTHING
        self._kept_bytes = 0
        self._look_bytes = 0
        """Free bytes left at which the disks are looked at again."""
        self._is_filling = False
        self._fullest = ""
        self._wake = asyncio.Event()
        self._watcher: asyncio.Task[None] | None = None
        self.reasons: dict[str, str] = {STOPPED: "not started"}
        self.room = Room.ENOUGH
        self.must_end = asyncio.Event()
        """Set when the bookie is read-only although readOnlyModeEnabled=false: the process has to end."""

    @property
    def reason(self) -> str:
        """Why adds are refused; empty: they are not."""
        return "; ".join(f"{kind}: {reason}" for kind, reason in self.reasons.items())

    @property
    def takes_recovery(self) -> bool:
        """Adds of a recovery are welcome, though others may not be."""
        return self.reasons.keys() <= {FULL} and self._free_bytes >= self.settings.high_priority_bytes_min

    @property
    def lacks_disk(self) -> bool:
        """Adds are refused, for no other reason than that disks are full or fail."""
        return bool(self.reasons) and self.reasons.keys() <= {FULL, JOURNAL, STORAGE}

    @property
    def lacks_room(self) -> bool:
        """Somebody had better make some."""
        return self._is_filling or self.lacks_disk

    @property
    def publish_refusal(self) -> str:
        """Why nothing should be published now; empty: it may."""
        if self.reasons:
            return self.reason
        return f"{FULL}: nearly {self._full}" if self._is_filling else ""

    @property
    def _full(self) -> str:
        return f"over {self.settings.disk_usage_threshold:.0%}: {self._fullest}"

    def take(self, size_bytes: int) -> bool:
        """Whether so much more fits; it is counted until the disks are looked at again."""
        self._left_bytes = left = self._left_bytes - WRITTEN_TIMES * size_bytes
        if left >= self._look_bytes:
            return True
        self.look_now()
        if left < self._kept_bytes and not self._is_filling:
            self._fill()
        if left < 0:
            self.turn_read_only(FULL, self._full)  # until the next look, which knows better
        return left >= 0

    def _fill(self) -> None:
        self._is_filling = True
        log.warning(line("a disk is nearly full: publishing is to end until there is room", nearly=self._full))

    def turn_read_only(self, kind: str, reason: str) -> None:
        if kind not in self.reasons:
            log.error(line("bookie is read-only", kind=kind, reason=reason))
        self.reasons[kind] = reason
        self._on_read_only()
        if not self.settings.read_only_mode_enabled and kind not in (STOPPED, FORCED, LOST):
            log.critical(line("readOnlyModeEnabled=false: the bookie has to end", kind=kind, reason=reason))
            self.must_end.set()

    def turn_writable(self, kind: str) -> None:
        if self.reasons.pop(kind, None) is not None:
            log.warning(line("bookie has recovered", kind=kind, still=self.reason or "writable"))

    async def check_usage(self) -> None:
        """Look at the disks. OSError."""
        pending = self._pending_bytes()
        found = [await self._disk.usage(path) for path in self._paths]
        self._free_bytes = min(usage.free_bytes for usage in found)
        pending = max(pending, self._pending_bytes())  # a flush may have moved some of it meanwhile
        usages = [DiskUsage(usage.total_bytes, usage.free_bytes - pending) for usage in found]
        before, self.room = self.room, self._watch.room(usages, was_full=self.room is Room.NONE)
        self._left_bytes = self._watch.left_bytes(usages)
        self._fullest = min(zip(usages, self._paths, strict=True), key=lambda each: self._watch.left_bytes(each[:1]))[1]
        self._kept_bytes = min(KEPT_BYTES_MAX, min(usage.total_bytes for usage in found) // KEPT_SHARE)
        self._look_bytes = max(self._kept_bytes, self._left_bytes // 2)
        if self.room is Room.NONE:
            self.turn_read_only(FULL, self._full)
        elif self.room is Room.LITTLE and before is Room.ENOUGH:
            log.warning(line("a disk is nearly full", over=f"{self.settings.disk_usage_warn_threshold:.0%}"))
        if self.room is not Room.NONE:
            self.turn_writable(FULL)
        self._look_whether_it_fills()

    def _look_whether_it_fills(self) -> None:
        """Once it does, there must be twice the room before publishers come back: the answer must not flap."""
        if not self._is_filling and self._left_bytes < self._kept_bytes:
            self._fill()
        elif self._is_filling and self._left_bytes >= 2 * self._kept_bytes and self.room is not Room.NONE:
            self._is_filling = False
            log.warning(line("the disks have room again: publishing goes on", left_bytes=self._left_bytes))

    def look_now(self) -> None:
        """Something found no room: do not wait for the next look."""
        self._wake.set()

    def start(self, on_checked: Callable[[], Awaitable[None]]) -> None:
        """Look from time to time, and tell."""
        self._watcher = asyncio.create_task(self._watch_disks(on_checked), name="bookie-disk-watch")

    async def stop(self) -> None:
        """Stopping twice is fine."""
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.cancel()
            await asyncio.wait([watcher])

    async def _watch_disks(self, on_checked: Callable[[], Awaitable[None]]) -> None:
        while True:
            await self._until_next()
            try:
                await self.check_usage()
                await on_checked()
            except OSError as error:
                log.error(line("disk usage unknown", error=error))

    async def _until_next(self) -> None:
        seconds = self.settings.disk_check_interval / 1000
        await asyncio.sleep(LOOK_SECONDS_MIN)
        if self.lacks_room:
            seconds = min(LOOK_SECONDS, seconds)
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return  # which is what it waits for
        finally:
            self._wake.clear()
