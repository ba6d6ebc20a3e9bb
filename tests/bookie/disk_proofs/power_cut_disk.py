"""A disk whose power can be cut, as a file that a loop device takes: FUSE's protocol, answered by a process of its own.

    python -m tests.bookie.disk_proofs.power_cut_disk FILE BYTES

What was written is volatile until a flush (the file system's, for an fsync) has followed it. `cut WRITES SEED` on stdin takes
the power away when so many further writes have come: everything up to the last flush stays; of what came after, sectors are
kept or lost by chance, out of order. From then on every request fails with EIO, until `on`. `refuse writes` and
`refuse reads` fail these alone, as a disk does that dies; after `ignore flushes` a flush is answered, and does nothing.
Owns the bytes, in memory. Never in here: what is on the disk. One thread, so that each command falls between two requests.
"""

import ctypes
import errno
import os
import random
import select
import struct
import sys
from enum import IntEnum
from typing import NamedTuple

SECTOR_BYTES = 512
WRITE_BYTES_MAX = 1 << 20
PAGE_BYTES = 4096
REGULAR_FILE = 0o100600
UNMOUNT_AT_ONCE = 2
DIRECT_IO = 1
BIG_WRITES, MANY_PAGES = 1 << 5, 1 << 22


class Request(IntEnum):
    """Requests of the kernel (fuse_opcode)."""

    FORGET = 2
    GETATTR = 3
    SETATTR = 4
    OPEN = 14
    READ = 15
    WRITE = 16
    RELEASE = 18
    FSYNC = 20
    FLUSH = 25
    INIT = 26
    INTERRUPT = 36
    DESTROY = 38
    BATCH_FORGET = 42


UNANSWERED = (Request.FORGET, Request.BATCH_FORGET, Request.INTERRUPT)
POWER_NEEDED = frozenset((Request.READ, Request.WRITE, Request.FSYNC))

_IN = struct.Struct("<IIQQIIII")  # length, opcode, unique, node, uid, gid, pid, -
_OUT = struct.Struct("<IiQ")  # length, error, unique
_ATTRIBUTES = struct.Struct("<QIIQQQQQQIIIIIIIIII")
_INIT_IN = struct.Struct("<IIII")
_INIT_OUT = struct.Struct("<IIIIHHIIHHII24x")
_OPENED = struct.Struct("<QIi")
_PIECE = struct.Struct("<QQIIQII")  # handle, offset, size, ...
_WRITTEN = struct.Struct("<II")


class _Written(NamedTuple):
    offset: int
    before: bytes
    """Bytes that the write replaced."""
    data: bytes


class VolatileImage:
    """The bytes, and which of them a power cut may take back."""

    def __init__(self, size_bytes: int) -> None:
        self._bytes = bytearray(size_bytes)
        self._unflushed: list[_Written] = []

    def __len__(self) -> int:
        return len(self._bytes)

    def read(self, offset: int, size: int) -> bytes:
        return bytes(self._bytes[offset : offset + size])

    def write(self, offset: int, data: bytes) -> None:
        assert offset + len(data) <= len(self._bytes), "the image does not grow"
        self._unflushed.append(_Written(offset, self.read(offset, len(data)), data))
        self._bytes[offset : offset + len(data)] = data

    def flush(self) -> None:
        self._unflushed.clear()

    def cut(self, chance: random.Random) -> tuple[int, int]:
        """Sectors that were written since the last flush, and how many of these are lost."""
        kept_share = chance.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        for written in reversed(self._unflushed):
            self._bytes[written.offset : written.offset + len(written.data)] = written.before
        sectors = lost = 0
        for offset, _, data in self._unflushed:
            for at in range(0, len(data), SECTOR_BYTES):
                sectors += 1
                if chance.random() >= kept_share:
                    lost += 1
                else:
                    self._bytes[offset + at : offset + at + SECTOR_BYTES] = data[at : at + SECTOR_BYTES]
        self._unflushed.clear()
        return sectors, lost


class PowerCutDisk:
    """Answers the kernel's requests for the one file, and the commands."""

    def __init__(self, path: str, size_bytes: int) -> None:
        self.image = VolatileImage(size_bytes)
        self._path = path
        self._refused: frozenset[Request] = frozenset()
        self._flush_count = 0
        self._ignores_flushes = False
        self._writes_left = 0
        """Writes until the ordered power cut; 0: none was ordered."""
        self._chance = random.Random()
        self._device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        libc = ctypes.CDLL(None, use_errno=True)
        options = f"fd={self._device},rootmode={REGULAR_FILE:o},user_id={os.getuid()},group_id={os.getgid()}"
        if libc.mount(b"power-cut-disk", path.encode(), b"fuse", 0, options.encode()):
            raise OSError(ctypes.get_errno(), f"mounting on {path}: {os.strerror(ctypes.get_errno())}")
        self._unmount = libc.umount2

    def serve(self) -> None:
        """Serves until stdin ends."""
        while True:
            ready, _, _ = select.select([self._device, 0], [], [])
            if 0 in ready:
                command = sys.stdin.readline()
                if not command:
                    self._end()
                    return
                self._command(command.split())
            elif not self._answer_next():
                return

    def _end(self) -> None:
        if self._unmount(self._path.encode(), UNMOUNT_AT_ONCE):
            raise OSError(ctypes.get_errno(), f"unmounting {self._path}: {os.strerror(ctypes.get_errno())}")

    def _command(self, words: list[str]) -> None:
        match words:
            case ["cut", writes, seed]:
                self._writes_left, self._chance = int(writes), random.Random(int(seed))
                return  # answered when it is done
            case ["on"]:
                self._refused, self._ignores_flushes = frozenset(), False
            case ["ignore", "flushes"]:
                self._ignores_flushes = True
            case ["refuse", "writes"]:
                self._refused = frozenset((Request.WRITE, Request.FSYNC))
            case ["refuse", "reads"]:
                self._refused = frozenset((Request.READ,))
            case _:
                raise ValueError(words)
        print("done", flush=True)

    def _count_write(self) -> None:
        if self._writes_left:
            self._writes_left -= 1
            if not self._writes_left:
                self._refused = POWER_NEEDED
                sectors, lost = self.image.cut(self._chance)
                print(sectors, lost, self._flush_count, flush=True)

    def _answer_next(self) -> bool:
        try:
            request = os.read(self._device, WRITE_BYTES_MAX + PAGE_BYTES)
        except OSError as error:
            if error.errno == errno.ENODEV:
                return False  # unmounted
            if error.errno in (errno.ENOENT, errno.EINTR, errno.EAGAIN):
                return True  # the request was interrupted
            raise
        length, opcode, unique, *_ = _IN.unpack_from(request)
        assert length == len(request)
        if opcode in UNANSWERED:
            return True
        try:
            code, answer = 0, self._answer(opcode, memoryview(request)[_IN.size :])
        except OSError as error:
            code, answer = -(error.errno or errno.EIO), b""
        os.write(self._device, _OUT.pack(_OUT.size + len(answer), code, unique) + answer)
        return True

    def _answer(self, opcode: int, body: memoryview) -> bytes:
        if opcode in self._refused:
            raise OSError(errno.EIO, "no power")
        match opcode:
            case Request.INIT:
                return self._initialise(body)
            case Request.GETATTR | Request.SETATTR:
                return self._attributes()
            case Request.OPEN:
                return _OPENED.pack(1, DIRECT_IO, 0)
            case Request.READ:
                _, offset, size, *_ = _PIECE.unpack_from(body)
                return self.image.read(offset, size)
            case Request.WRITE:
                _, offset, size, *_ = _PIECE.unpack_from(body)
                self.image.write(offset, bytes(body[_PIECE.size : _PIECE.size + size]))
                self._count_write()
                return _WRITTEN.pack(size, 0)
            case Request.FSYNC:
                self._flush_count += 1
                if not self._ignores_flushes:
                    self.image.flush()
                return b""
            case Request.RELEASE | Request.FLUSH | Request.DESTROY:
                return b""
            case _:
                raise OSError(errno.ENOSYS, f"request {opcode}")

    def _initialise(self, body: memoryview) -> bytes:
        major, minor, read_ahead, _ = _INIT_IN.unpack_from(body)
        pages = WRITE_BYTES_MAX // PAGE_BYTES
        flags = BIG_WRITES | MANY_PAGES
        return _INIT_OUT.pack(major, min(minor, 31), read_ahead, flags, 16, 12, WRITE_BYTES_MAX, 1, pages, 0, 0, 0)

    def _attributes(self) -> bytes:
        size = len(self.image)
        return _ATTRIBUTES.pack(
            1,
            0,
            0,
            1,
            size,
            size // SECTOR_BYTES,
            0,
            0,
            0,
            0,
            0,
            0,
            REGULAR_FILE,
            1,
            os.getuid(),
            os.getgid(),
            0,
            PAGE_BYTES,
            0,
        )


if __name__ == "__main__":
    sys.stdin = os.fdopen(0, "r", buffering=1)
    disk = PowerCutDisk(sys.argv[1], int(sys.argv[2]))
    print("ready", flush=True)
    disk.serve()
