"""SimDisk: `ports.disk.disk.Disk` without a disk. This header is the fault model.

- What is written is in the page cache: readers see it, it survives the kill of its process, and at a power cut any subset of
  the 512-byte sectors that no completed sync covered is lost (`sectors`). `allocate` and `truncate` count as writes.
- Files made, renamed and removed are in the page cache too: a power cut keeps those whose directory was synced, and of the
  others a prefix in the order in which they were done (as a file system's journal does). Directories are durable when made.
- Calls on files of one lane are carried out one after the other; each takes time, more when the disk is slow or stalled. A
  crash loses the calls that wait. The one in progress is done, not done, or (a write) torn at a sector.
- A disk that is lying says that it has synced, and has not: the next power cut takes it all back.
- Injected errors: EIO and ENOSPC per kind of call; after a failed sync the data is readable and never durable. A full disk
  writes a part and says ENOSPC. Bit rot flips a bit for good.
- A buffer that changes while its write is under way fails the run: a real disk might have written either.
"""

import asyncio
import errno
import os
import posixpath
import random
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ports.disk.disk_usage import DiskUsage
from simulation.disks.file import SimFile
from simulation.disks.sectors import SectorFile
from simulation.world.loop import SimLoop

SECONDS = {"write": 0.000_05, "read": 0.000_1, "sync": 0.000_8, "name": 0.000_1}
"""About how long each kind of call takes on a healthy disk."""
CAPACITY_BYTES = 1 << 40
"""More than any run writes."""


@dataclass(slots=True)
class Call:
    """One call that waits or is in progress. `perform` does it; `tear` does what a crash in its middle leaves of it."""

    kind: str
    path: str
    perform: Callable[[], Any]
    tear: Callable[[], object]
    future: "asyncio.Future[Any]"


@dataclass(slots=True)
class Injection:
    """An error that the next calls of a kind get."""

    kind: str
    code: int
    path_part: str
    times: int


@dataclass(slots=True)
class Lane:
    """The calls of one worker; the first is in progress."""

    calls: deque[Call] = field(default_factory=deque)


Change = tuple[tuple[str, SectorFile | None], ...]
"""Directory entries set or removed together."""


class SimDisk:
    """The disk of one host. It outlives the processes that use it: `crash` is what their end does to it."""

    def __init__(self, loop: SimLoop, rng: random.Random, name: str = "disk") -> None:
        self.loop, self.rng, self.name = loop, rng, name
        self.epoch = 0
        self.capacity_bytes = CAPACITY_BYTES
        self.seconds = dict(SECONDS)
        self.slowness = 1.0
        self.stalled_until = 0.0
        self.injections: list[Injection] = []
        self.is_lying = False
        self._entries: dict[str, SectorFile] = {}
        self._durable: dict[str, SectorFile] = {}
        self._unsynced: list[Change] = []
        self._directories: dict[str, None] = {"/": None, "": None, ".": None}
        self._lanes: dict[str, Lane] = {}

    # Disk

    async def open(
        self, path: str, *, create: bool = False, lane: str = "", direct: bool = False, queued: bool = False
    ) -> "SimFile":
        path = _clean(path)
        data = await self.submit("name", path, lambda: self._open(path, create), lane="names")
        return SimFile(self, path, data, lane, direct or queued)

    async def list_directory(self, path: str) -> list[str]:
        path = _clean(path)

        def perform() -> list[str]:
            self._need_directory(path)
            names = {posixpath.basename(entry) for entry in self._entries if posixpath.dirname(entry) == path}
            names |= {posixpath.basename(entry) for entry in self._directories if entry and posixpath.dirname(entry) == path}
            return sorted(name for name in names if name)

        return await self.submit("name", path, perform, lane="names")  # type: ignore[no-any-return]

    async def make_directories(self, path: str) -> None:
        path = _clean(path)

        def perform() -> None:
            at = path
            while at not in self._directories:
                self._directories[at] = None
                at = posixpath.dirname(at)

        await self.submit("name", path, perform, lane="names")

    async def exists(self, path: str) -> bool:
        path = _clean(path)
        found = await self.submit("name", path, lambda: path in self._entries or path in self._directories, lane="names")
        return bool(found)

    async def rename(self, old: str, new: str) -> None:
        old, new = _clean(old), _clean(new)

        def perform() -> None:
            self._need_directory(posixpath.dirname(new))
            self._change((old, None), (new, self._need_file(old)))

        await self.submit("name", new, perform, lane="names")

    async def remove(self, path: str) -> None:
        path = _clean(path)

        def perform() -> None:
            self._need_file(path)
            self._change((path, None))

        await self.submit("name", path, perform, lane="names")

    async def sync_directory(self, path: str) -> None:
        path = _clean(path)

        def perform() -> None:
            self._need_directory(path)
            kept = []
            for change in self._unsynced:
                if any(posixpath.dirname(entry) == path for entry, _ in change):
                    _apply(self._durable, change)
                else:
                    kept.append(change)
            self._unsynced = kept

        await self.submit("sync", path, perform, lane="names")

    async def usage(self, path: str) -> DiskUsage:
        return DiskUsage(self.capacity_bytes, max(0, self.free_bytes()))

    # Names

    def _open(self, path: str, create: bool) -> SectorFile:
        self._need_directory(posixpath.dirname(path))
        if path in self._directories:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if path not in self._entries:
            if not create:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            self._change((path, SectorFile()))
        return self._entries[path]

    def _need_directory(self, path: str) -> None:
        if path not in self._directories:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def _need_file(self, path: str) -> SectorFile:
        if path not in self._entries:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return self._entries[path]

    def _change(self, *change: tuple[str, SectorFile | None]) -> None:
        _apply(self._entries, change)
        self._unsynced.append(change)

    def free_bytes(self) -> int:
        """Below zero when the capacity was cut after the fact."""
        if self.capacity_bytes == CAPACITY_BYTES:
            return CAPACITY_BYTES
        return self.capacity_bytes - sum(file.allocated_bytes for file in self._entries.values())

    # Calls

    def submit(
        self,
        kind: str,
        path: str,
        perform: Callable[[], Any],
        *,
        lane: str,
        tear: Callable[[], object] = lambda: None,
        epoch: int | None = None,
    ) -> "asyncio.Future[Any]":
        """Carry out `perform` in its turn; the future has its result."""
        if epoch is not None and epoch != self.epoch:
            raise OSError(errno.EBADF, "a file of a process that has ended", path)
        future = self.loop.create_future()
        queue = self._lanes.setdefault(lane, Lane()).calls
        queue.append(Call(kind, path, perform, tear, future))
        if len(queue) == 1:
            self._begin(lane)
        return future

    def _begin(self, lane: str) -> None:
        kind = self._lanes[lane].calls[0].kind
        seconds = self.seconds[kind] * self.slowness * self.rng.expovariate(1.0)
        stall = max(0.0, self.stalled_until - self.loop.time())
        self.loop.hardware_later(stall + seconds, self._complete, lane, self.epoch)

    def _complete(self, lane: str, epoch: int) -> None:
        if epoch != self.epoch:
            return
        if self.stalled_until > self.loop.time():
            self._begin(lane)
            return
        queue = self._lanes[lane].calls
        call = queue.popleft()
        outcome = self._perform(call)
        self.loop.trace.record(self.name, f"{call.kind} {call.path}{'' if outcome is None else f' {outcome}'}")
        if queue:
            self._begin(lane)

    def _perform(self, call: Call) -> str | None:
        try:
            self._inject(call)
            result = call.perform() if not (self.is_lying and call.kind == "sync") else None
        except OSError as error:
            if not call.future.done():
                call.future.set_exception(error)
            return errno.errorcode.get(error.errno or 0, "error")
        if not call.future.done():
            call.future.set_result(result)
        return None

    def _inject(self, call: Call) -> None:
        for injection in self.injections:
            if injection.kind == call.kind and injection.path_part in call.path:
                injection.times -= 1
                if injection.times == 0:
                    self.injections.remove(injection)
                call.tear()
                raise OSError(injection.code, os.strerror(injection.code), call.path)

    # Faults

    def fail(self, kind: str, code: int, path_part: str = "", times: int = 1) -> None:
        """The next `times` calls of `kind` ("write", "read", "sync", "name") on such a path fail."""
        self.injections.append(Injection(kind, code, path_part, times))

    def stall(self, seconds: float) -> None:
        """Nothing completes for so long."""
        self.stalled_until = max(self.stalled_until, self.loop.time() + seconds)

    def speed_up(self) -> None:
        self.slowness = 1.0

    def heal(self) -> None:
        self.slowness, self.stalled_until, self.capacity_bytes = 1.0, 0.0, CAPACITY_BYTES
        self.injections.clear()

    def crash(self, *, power_cut: bool) -> None:
        """The process that used this disk is dead; with `power_cut` the page cache is lost with it."""
        self.epoch += 1
        for lane in self._lanes.values():
            if lane.calls:
                self._interrupt(lane.calls[0])
        self._lanes.clear()
        if power_cut:
            self._cut_power()

    def _interrupt(self, call: Call) -> None:
        """A crash in the middle of a call."""
        if call.kind == "write":
            with suppress(OSError):  # ENOSPC, which nobody is left to hear
                self.rng.choice((call.perform, call.tear, lambda: None))()

    def _cut_power(self) -> None:
        for change in self._unsynced[: self.rng.randrange(len(self._unsynced) + 1)]:
            _apply(self._durable, change)
        self._unsynced.clear()
        self._entries = dict(self._durable)
        for file in self._entries.values():
            file.cut_power(self.rng)

    def empty(self, directory: str) -> None:
        """Nothing is left in it: another disk is there."""
        for entries in (self._entries, self._durable):
            for path in [path for path in entries if posixpath.dirname(path) == directory]:
                del entries[path]

    def paths(self) -> list[str]:
        return sorted(self._entries)

    def contents(self, path: str) -> SectorFile:
        """Bytes behind a path, for faults and tests."""
        return self._entries[_clean(path)]


def _clean(path: str) -> str:
    return posixpath.normpath(path) if path else ""


def _apply(entries: dict[str, SectorFile], change: Change) -> None:
    for path, file in change:
        if file is None:
            entries.pop(path, None)
        else:
            entries[path] = file
