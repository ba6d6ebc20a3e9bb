"""SimFile: an open file of a SimDisk. Owns nothing but its place in a lane; the fault model is in `simulation.disks.disk`."""

import asyncio
import errno
import os
import random
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ports.disk.disk import DIRECT_ALIGNMENT, Buffer
from simulation.disks.sectors import SECTOR_BYTES, SectorFile
from simulation.world.loop import SimLoop, SimulationFailure


class Device(Protocol):
    """The disk of a file: its calls in lanes, its free room, and the epoch of the process that uses it."""

    @property
    def loop(self) -> SimLoop: ...
    @property
    def rng(self) -> random.Random: ...
    @property
    def epoch(self) -> int: ...
    def free_bytes(self) -> int: ...
    def submit(
        self,
        kind: str,
        path: str,
        perform: Callable[[], Any],
        *,
        lane: str,
        tear: Callable[[], object] = ...,
        epoch: int | None = None,
    ) -> "asyncio.Future[Any]": ...


class SimFile:
    """`ports.disk.disk.File` on a SimDisk, as opened by one process: dead with it."""

    def __init__(self, disk: Device, path: str, data: SectorFile, lane: str, direct: bool) -> None:
        self._disk, self._path, self._data = disk, path, data
        self._lane = f"lane {lane}" if lane else f"file {path}"
        self._alignment = DIRECT_ALIGNMENT if direct else 1
        self._epoch = disk.epoch
        self._is_closed = False

    @property
    def path(self) -> str:
        return self._path

    def size(self) -> int:
        return self._data.size

    async def write(self, offset: int, buffers: Sequence[Buffer], *, sync: bool = False) -> None:
        await self.begin_write(offset, buffers, sync=sync)

    def begin_write(self, offset: int, buffers: Sequence[Buffer], *, sync: bool = False) -> "asyncio.Future[None]":
        before = b"".join(buffers)
        if offset % self._alignment or len(before) % self._alignment:
            raise OSError(errno.EINVAL, f"{len(before)} bytes at {offset} cannot be written directly", self._path)

        def perform() -> None:
            data = b"".join(buffers)
            if data != before:
                self._disk.loop.fail(SimulationFailure(f"{self._path}: a buffer changed while it was being written"))
            self._write(offset, data)

        def tear() -> None:
            self._data.write(offset, before[: _torn_bytes(offset, len(before), self._disk.rng)])

        written = self._submit("write", perform, tear)
        if not sync:
            return written
        synced = self._submit("sync", self._data.sync, self._data.fail_sync)
        return _both(written, synced, self._disk.loop.create_future())

    def _write(self, offset: int, data: bytes) -> None:
        free = self._disk.free_bytes()
        if len(data) > free and offset + len(data) > self._data.size:
            self._data.write(offset, data[: max(0, free) // SECTOR_BYTES * SECTOR_BYTES])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._path)
        self._data.write(offset, data)

    async def read(self, offset: int, size: int) -> bytes:
        return await self._submit("read", lambda: self._data.read(offset, size))  # type: ignore[no-any-return]

    async def read_piece(self, offset: int, size: int) -> Buffer:
        return await self.read(offset, size)

    async def read_all(self, places: Sequence[tuple[int, int]]) -> list[bytes]:
        return [await self.read(offset, size) for offset, size in places]

    async def sync(self) -> None:
        await self._submit("sync", self._data.sync, self._data.fail_sync)

    async def allocate(self, size: int) -> None:
        await self._submit("write", lambda: self._allocate(size))

    def _allocate(self, size: int) -> None:
        if size - self._data.allocated_bytes > max(0, self._disk.free_bytes()):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._path)
        self._data.allocate(size)

    async def truncate(self, size: int) -> None:
        await self._submit("write", lambda: self._data.resize(size))

    async def close(self) -> None:
        self._is_closed = True

    def _submit(
        self, kind: str, perform: Callable[[], Any], tear: Callable[[], object] = lambda: None
    ) -> "asyncio.Future[Any]":
        if self._is_closed:
            raise OSError(errno.EBADF, "the file is closed", self._path)
        return self._disk.submit(kind, self._path, perform, lane=self._lane, tear=tear, epoch=self._epoch)


def _both(
    written: "asyncio.Future[None]", synced: "asyncio.Future[None]", outcome: "asyncio.Future[None]"
) -> "asyncio.Future[None]":
    """`outcome` is that of the sync, or of the write when that fails: then the sync is cancelled."""

    def settle(done: "asyncio.Future[None]") -> None:
        error = asyncio.CancelledError() if done.cancelled() else done.exception()
        if done is written and error is None:
            synced.add_done_callback(settle)
            return
        synced.cancel()
        if outcome.done():
            return
        if error is None:
            outcome.set_result(None)
        elif isinstance(error, asyncio.CancelledError):
            outcome.cancel()
        else:
            outcome.set_exception(error)

    written.add_done_callback(settle)
    return outcome


def _torn_bytes(offset: int, size: int, rng: random.Random) -> int:
    """Size of the part of a write that a crash leaves: up to some sector boundary."""
    boundaries = range(offset // SECTOR_BYTES + 1, (offset + size) // SECTOR_BYTES + 1)
    ends = [0, *(index * SECTOR_BYTES - offset for index in boundaries)]
    return rng.choice(ends)
