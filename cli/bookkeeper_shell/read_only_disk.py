"""ReadOnlyDisk: the disk port for tools that look at a bookie's files, and can do no more than that.

Files are opened for reading alone, so that it works without the right to write, and beside the bookie. Reads are done where
they are called: a tool has nothing else to do meanwhile.
"""

import asyncio
import os
from collections.abc import Sequence

from ports.disk.disk import Buffer, File
from ports.disk.disk_usage import DiskUsage

_REFUSAL = "files of a bookie are only read here"


class ReadOnlyFile:
    """Satisfies `ports.disk.disk.File`; PermissionError from whatever would write."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    async def read(self, offset: int, size: int) -> bytes:
        parts = []
        while size > 0 and (part := os.pread(self._descriptor, size, offset)):
            parts.append(part)
            offset, size = offset + len(part), size - len(part)
        return b"".join(parts)

    async def read_piece(self, offset: int, size: int) -> Buffer:
        return await self.read(offset, size)

    async def read_all(self, places: Sequence[tuple[int, int]]) -> list[bytes]:
        return [await self.read(offset, size) for offset, size in places]

    async def close(self) -> None:
        os.close(self._descriptor)

    async def write(self, offset: int, buffers: Sequence[Buffer], *, sync: bool = False) -> None:
        raise PermissionError(_REFUSAL)

    def begin_write(self, offset: int, buffers: Sequence[Buffer], *, sync: bool = False) -> "asyncio.Future[None]":
        raise PermissionError(_REFUSAL)

    async def sync(self) -> None:
        raise PermissionError(_REFUSAL)

    async def allocate(self, size: int) -> None:
        raise PermissionError(_REFUSAL)

    async def truncate(self, size: int) -> None:
        raise PermissionError(_REFUSAL)


class ReadOnlyDisk:
    """Satisfies `ports.disk.disk.Disk`; PermissionError from whatever would write."""

    async def open(
        self, path: str, *, create: bool = False, lane: str = "", direct: bool = False, queued: bool = False
    ) -> File:
        if create:
            raise PermissionError(_REFUSAL)
        return ReadOnlyFile(path)

    async def list_directory(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    async def exists(self, path: str) -> bool:
        return os.access(path, os.F_OK)

    async def usage(self, path: str) -> DiskUsage:
        answer = os.statvfs(path)
        return DiskUsage(answer.f_frsize * answer.f_blocks, answer.f_frsize * answer.f_bavail)

    async def make_directories(self, path: str) -> None:
        raise PermissionError(_REFUSAL)

    async def rename(self, old: str, new: str) -> None:
        raise PermissionError(_REFUSAL)

    async def remove(self, path: str) -> None:
        raise PermissionError(_REFUSAL)

    async def sync_directory(self, path: str) -> None:
        raise PermissionError(_REFUSAL)
