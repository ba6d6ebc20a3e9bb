"""RealDisk: the machine's file system behind `ports.disk.disk.Disk`.

Owns the lanes (`ports.disk.lane`), each with a thread, and writes synced frames through the kernel's queue of a lane where that
is wanted and there is one. Nothing here retries: an error is the `OSError` of the system call.
Bounds: lanes are few and named by the caller, and live until `close`.
"""

import asyncio
import errno
import os
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from ports.disk.direct_io import UNSUPPORTED, DirectMemory, read_all_direct, read_direct, write_direct
from ports.disk.disk import Buffer, File
from ports.disk.disk_usage import DiskUsage
from ports.disk.kernel_queue import ROOM_BYTES, UNDONE, KernelQueue
from ports.disk.lane import Lane, settle
from ports.loop.promise import Promise

T = TypeVar("T")

BUFFERS_MAX = os.sysconf("SC_IOV_MAX")
"""Buffers that one pwritev takes."""
DIRECTORY_LANE = ""


class RealFile:
    """An open file; satisfies `ports.disk.disk.File`."""

    def __init__(self, path: str, descriptor: int, lane: Lane) -> None:
        self._path = path
        self._descriptor = descriptor
        self._lane = lane
        self._is_synced = False
        """The operations so far are durable when the last of them ends; bytes that the opener found may not be."""

    @property
    def path(self) -> str:
        return self._path

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    async def write(self, offset: int, buffers: Sequence[Buffer], *, sync: bool = False) -> None:
        await self.begin_write(offset, buffers, sync=sync)

    def begin_write(self, offset: int, buffers: Sequence[Buffer], *, sync: bool = False) -> "asyncio.Future[None]":
        write = _write_synced if sync and self._is_synced else _write
        self._is_synced = sync
        return self._lane.submit(write, self._descriptor, offset, buffers, sync)

    async def read(self, offset: int, size: int) -> bytes:
        return await self._submit(_read, self._descriptor, offset, size)

    async def read_piece(self, offset: int, size: int) -> Buffer:
        return await self.read(offset, size)

    async def read_all(self, places: Sequence[tuple[int, int]]) -> list[bytes]:
        return await self._submit(_read_all, self._descriptor, places)

    async def sync(self) -> None:
        self._is_synced = True
        await self._submit(os.fdatasync, self._descriptor)

    async def allocate(self, size: int) -> None:
        self._is_synced = False
        await self._submit(_allocate, self._descriptor, size)

    async def truncate(self, size: int) -> None:
        self._is_synced = False
        await self._submit(os.ftruncate, self._descriptor, size)

    async def close(self) -> None:
        """Closing twice is fine."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            await self._submit(os.close, descriptor)

    async def _submit(self, call: Callable[..., T], *arguments: Any) -> T:
        return await self._lane.submit(call, *arguments)


class DirectFile(RealFile):
    """An open file that bypasses the page cache."""

    def begin_write(self, offset: int, buffers: Sequence[Buffer], *, sync: bool = False) -> "asyncio.Future[None]":
        return self._lane.submit(write_direct, self._lane.memory, self._descriptor, offset, buffers, sync)

    async def read(self, offset: int, size: int) -> bytes:
        return bytes(await self.read_piece(offset, size))

    async def read_piece(self, offset: int, size: int) -> Buffer:
        return await self._submit(read_direct, self._lane.memory, self._descriptor, offset, size)

    async def read_all(self, places: Sequence[tuple[int, int]]) -> list[bytes]:
        return await self._submit(read_all_direct, self._lane.memory, self._descriptor, places)


class QueuedFile(DirectFile):
    """An open file whose synced writes the kernel carries out without a thread, one write at a time."""

    def __init__(self, path: str, descriptor: int, lane: Lane, queue: KernelQueue) -> None:
        super().__init__(path, descriptor, lane)
        self._queue: KernelQueue | None = queue
        self._last: asyncio.Future[None] | None = None
        """The last write: later calls wait for it, as the kernel and the thread know nothing of each other."""

    def begin_write(self, offset: int, buffers: Sequence[Buffer], *, sync: bool = False) -> "asyncio.Future[None]":
        if self._last is not None and not self._last.done():
            return asyncio.ensure_future(self._write_after(offset, buffers, sync))
        self._last = write = self._begun(offset, buffers, sync)
        return write

    def _begun(self, offset: int, buffers: Sequence[Buffer], sync: bool) -> "asyncio.Future[None]":
        is_synced, self._is_synced = self._is_synced, sync
        if not sync:
            return super().begin_write(offset, buffers)
        queue, promise = self._queue if is_synced else None, self._lane.promise()
        if queue is not None and queue.is_free and sum(map(len, buffers)) <= ROOM_BYTES:
            data = b"".join(buffers)
            if queue.write(self._descriptor, offset, data, partial(self._written, promise, offset, data)):
                return promise
        return self._perform(promise, offset, buffers, is_synced)

    def _perform(self, promise: Promise[None], offset: int, buffers: Sequence[Buffer], is_synced: bool) -> Promise[None]:
        lane = self._lane
        return lane.perform(promise, _write_through, lane.memory, self._descriptor, offset, buffers, is_synced)

    def _written(self, promise: Promise[None], offset: int, data: bytes, result: int) -> None:
        if result == len(data):
            settle(promise, None, None)
        elif result >= 0 or -result in UNDONE:
            self._queue = None if result < 0 else self._queue
            self._perform(promise, offset, [data], True)
        else:
            settle(promise, None, OSError(-result, os.strerror(-result), self._path))

    async def _write_after(self, offset: int, buffers: Sequence[Buffer], sync: bool) -> None:
        await self._settled()
        await self.begin_write(offset, buffers, sync=sync)

    async def _submit(self, call: Callable[..., T], *arguments: Any) -> T:
        await self._settled()
        return await super()._submit(call, *arguments)

    async def _settled(self) -> None:
        """Until no write is under way: calls are carried out in the order in which they were made."""
        while self._last is not None and not self._last.done():
            await asyncio.wait([self._last])


class RealDisk:
    """The machine's file system; satisfies `ports.disk.disk.Disk`. Belongs to one event loop."""

    def __init__(self) -> None:
        self._lanes: dict[str, Lane] = {}

    async def open(
        self, path: str, *, create: bool = False, lane: str = "", direct: bool = False, queued: bool = False
    ) -> File:
        worker = self._lane(lane)
        queue = worker.queue if queued else None
        if direct or queue is not None:
            try:
                descriptor = await worker.submit(_open, path, create, os.O_DIRECT)
            except OSError as error:
                if error.errno not in UNSUPPORTED:
                    raise
            else:
                return DirectFile(path, descriptor, worker) if queue is None else QueuedFile(path, descriptor, worker, queue)
        return RealFile(path, await worker.submit(_open, path, create), worker)

    async def list_directory(self, path: str) -> list[str]:
        return sorted(await self._lane(DIRECTORY_LANE).submit(os.listdir, path))

    async def make_directories(self, path: str) -> None:
        await self._lane(DIRECTORY_LANE).submit(_make_directories, path)

    async def exists(self, path: str) -> bool:
        return await self._lane(DIRECTORY_LANE).submit(os.path.lexists, path)

    async def rename(self, old: str, new: str) -> None:
        await self._lane(DIRECTORY_LANE).submit(os.replace, old, new)

    async def remove(self, path: str) -> None:
        await self._lane(DIRECTORY_LANE).submit(os.remove, path)

    async def sync_directory(self, path: str) -> None:
        await self._lane(DIRECTORY_LANE).submit(_sync_directory, path)

    async def usage(self, path: str) -> DiskUsage:
        return await self._lane(DIRECTORY_LANE).submit(_usage, path)

    def close(self) -> None:
        """End the threads, after what they have waiting. Closing twice is fine."""
        lanes, self._lanes = self._lanes, {}
        for lane in lanes.values():
            lane.stop()

    def _lane(self, name: str) -> Lane:
        lane = self._lanes.get(name)
        if lane is None:
            lane = self._lanes[name] = Lane(name)
        return lane


def _open(path: str, create: bool, flags: int = 0) -> int:
    return os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0) | flags, 0o640)


def _write(descriptor: int, offset: int, buffers: Sequence[Buffer], sync: bool) -> None:
    size = sum(map(len, buffers))
    if len(buffers) > BUFFERS_MAX or (written := os.pwritev(descriptor, buffers, offset)) != size:
        written = 0 if len(buffers) > BUFFERS_MAX else written
        _write_rest(descriptor, offset, buffers, written)
    if sync:
        os.fdatasync(descriptor)


def _write_synced(descriptor: int, offset: int, buffers: Sequence[Buffer], sync: bool) -> None:
    """Write and sync in one call of the system, to a file in which nothing else waits to be made durable."""
    size = sum(map(len, buffers))
    try:
        if len(buffers) <= BUFFERS_MAX and os.pwritev(descriptor, buffers, offset, os.RWF_DSYNC) == size:
            return
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
    _write(descriptor, offset, buffers, sync)


def _write_through(memory: DirectMemory, descriptor: int, offset: int, buffers: Sequence[Buffer], is_synced: bool) -> None:
    """Write and sync a direct file; `is_synced`: nothing else in it waits to be made durable."""
    data = b"".join(buffers)
    room = memory.room[: len(data)]
    if len(data) > len(room):
        return write_direct(memory, descriptor, offset, [data], True)
    room[:] = data
    return (_write_synced if is_synced else _write)(descriptor, offset, [room], True)


def _write_rest(descriptor: int, offset: int, buffers: Sequence[Buffer], written: int) -> None:
    """Write the rest after a short pwritev, or after as many buffers as one call takes."""
    rest = deque(memoryview(buffer) for buffer in buffers)
    done = written
    while True:
        while rest and written >= len(rest[0]):
            written -= len(rest.popleft())
        if not rest:
            return
        rest[0] = rest[0][written:]
        written = os.pwritev(descriptor, [rest[index] for index in range(min(len(rest), BUFFERS_MAX))], offset + done)
        if written == 0:
            raise OSError(errno.EIO, "the file system took no bytes")
        done += written


def _read(descriptor: int, offset: int, size: int) -> bytes:
    data = os.pread(descriptor, size, offset)
    if len(data) == size or not data:
        return data
    parts = [data]  # a short read: the end of the file, or a signal
    done = len(data)
    while done < size and (data := os.pread(descriptor, size - done, offset + done)):
        parts.append(data)
        done += len(data)
    return b"".join(parts)


def _read_all(descriptor: int, places: Sequence[tuple[int, int]]) -> list[bytes]:
    return [_read(descriptor, offset, size) for offset, size in places]


def _allocate(descriptor: int, size: int) -> None:
    os.posix_fallocate(descriptor, 0, size)


def _make_directories(path: str) -> None:
    os.makedirs(path, exist_ok=True)


def _sync_directory(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _usage(path: str) -> DiskUsage:
    answer = os.statvfs(path)
    return DiskUsage(answer.f_frsize * answer.f_blocks, answer.f_frsize * answer.f_bavail)
