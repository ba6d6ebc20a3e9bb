"""Disk: files as the storage layer sees them. Every blocking call is awaited; threads live behind this port only.

Durability rules (the simulation's disk enforces them): bytes written are lost at a power cut unless a later `sync` (or a
write with `sync=True`) of that file completed. A file made, renamed or removed is durable after `sync_directory` of its parent.
A write that was in flight at a crash may be torn at any 512-byte sector. Errors are `OSError` with an errno (ENOSPC, EIO).
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol, TypeAlias

from ports.disk.disk_usage import DiskUsage

__all__ = ["DIRECT_ALIGNMENT", "Buffer", "Disk", "DiskUsage", "File"]

Buffer: TypeAlias = bytes | bytearray | memoryview
DIRECT_ALIGNMENT = 4096
"""Alignment of places and sizes of writes to a file that was opened with `direct`."""


class File(Protocol):
    """An open file. Calls on one file are carried out in the order in which they were made."""

    @property
    def path(self) -> str: ...
    def size(self) -> int: ...
    async def write(self, offset: int, buffers: Sequence[Buffer], *, sync: bool = False) -> None:
        """Write all buffers one after the other from `offset`; with `sync`, return only after fdatasync.

        The buffers must not change until this returns.
        """

    def begin_write(self, offset: int, buffers: Sequence[Buffer], *, sync: bool = False) -> "asyncio.Future[None]":
        """Begin a `write` for a caller outside coroutines: under way when this returns. Real files give a `Promise`."""

    async def read(self, offset: int, size: int) -> bytes:
        """Up to `size` bytes; fewer only at the end of the file."""

    async def read_piece(self, offset: int, size: int) -> Buffer:
        """Read a piece that may be large: not copied where that can be avoided. Does not change as long as it is held."""

    async def read_all(self, places: Sequence[tuple[int, int]]) -> list[bytes]:
        """Read all of these, offset and size each, in one go."""

    async def sync(self) -> None: ...
    async def allocate(self, size: int) -> None:
        """Reserve zeroed space so that later writes below `size` do not change the file's length."""

    async def truncate(self, size: int) -> None: ...
    async def close(self) -> None: ...


class Disk(Protocol):
    """A file system. Paths are absolute or relative to the process; directories end without a slash."""

    async def open(
        self, path: str, *, create: bool = False, lane: str = "", direct: bool = False, queued: bool = False
    ) -> File:
        """Open for reading and writing. FileNotFoundError without `create`. Files of one `lane` share a worker, so that
        a journal's syncs never wait behind reads of another lane. With `direct` the page cache is bypassed, where the file
        system can: each write then begins at a multiple of DIRECT_ALIGNMENT and has such a size. `queued` is `direct`, and
        the system carries out synced writes without a worker, where it can."""

    async def list_directory(self, path: str) -> list[str]:
        """Names in it, sorted; FileNotFoundError when it is not there."""

    async def make_directories(self, path: str) -> None: ...
    async def exists(self, path: str) -> bool: ...
    async def rename(self, old: str, new: str) -> None: ...
    async def remove(self, path: str) -> None: ...
    async def sync_directory(self, path: str) -> None: ...
    async def usage(self, path: str) -> DiskUsage: ...
