"""Transfers that bypass the page cache (O_DIRECT), for files that are written once in large pieces and read in large ones.

The kernel wants memory that begins on a page, and places and sizes in whole sectors. So a write goes through one piece of such
memory, copied on the lane's thread; a large read gets a piece of its own, which is used again when no reader holds its bytes
any more. Owns that memory, for the files of one lane. Caches nothing. Why: docs/adr/0015-entry-logs-bypass-the-page-cache.md.
"""

import errno
import mmap
import os
import sys
from collections.abc import Iterator, Sequence

from ports.disk.disk import DIRECT_ALIGNMENT, Buffer

ROOM_BYTES = 1 << 20
"""Size of the memory that writes and small reads go through."""
COPIED_BYTES_MAX = 1 << 16
"""A read up to so long is copied, so that a few bytes never keep a large piece alive."""
NEAR_BYTES, TOGETHER_BYTES_MAX = 16 << 10, 256 << 10
"""Reads no further from each other than that are one, up to so much in all."""
KEPT_PIECES_MAX = 4
UNSUPPORTED = (errno.EINVAL, errno.EOPNOTSUPP)
"""Errors of an open where the file system lacks direct I/O."""


class DirectMemory:
    """Memory of one lane; used by one thread at a time."""

    def __init__(self) -> None:
        self._room: memoryview | None = None
        self._pieces: list[mmap.mmap] = []

    @property
    def room(self) -> memoryview:
        if self._room is None:
            self._room = memoryview(_pages(ROOM_BYTES))
        return self._room

    def piece(self, size: int) -> memoryview:
        """Piece of at least that size: one that no reader holds, or a new one."""
        pieces = self._pieces
        for index in range(len(pieces)):
            if size <= len(pieces[index]) <= 2 * size and sys.getrefcount(pieces[index]) == 2:  # this list's, and the call's
                return memoryview(pieces[index])
        fresh = _pages(size)
        pieces.append(fresh)
        if len(pieces) > KEPT_PIECES_MAX:
            pieces.pop(0)  # a reader that holds the piece keeps it; then its memory goes back
        return memoryview(fresh)


def _pages(size: int) -> mmap.mmap:
    return mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def write_direct(memory: DirectMemory, descriptor: int, offset: int, buffers: Sequence[Buffer], sync: bool) -> None:
    """Both `offset` and the sum of the sizes are multiples of DIRECT_ALIGNMENT. OSError."""
    room, used = memory.room, 0
    for buffer in buffers:
        rest = memoryview(buffer)
        while rest:
            part = rest[: ROOM_BYTES - used]
            room[used : used + len(part)] = part
            used += len(part)
            rest = rest[len(part) :]
            if used == ROOM_BYTES:
                _write_all(descriptor, offset, room)
                offset, used = offset + used, 0
    _write_all(descriptor, offset, room[:used])
    if sync:
        os.fdatasync(descriptor)


def _write_all(descriptor: int, offset: int, data: memoryview) -> None:
    while data:
        written = os.pwrite(descriptor, data, offset)
        if written == 0:
            raise OSError(errno.EIO, "the file system took no bytes")
        offset, data = offset + written, data[written:]


def read_direct(memory: DirectMemory, descriptor: int, offset: int, size: int) -> Buffer:
    """Up to `size` bytes; fewer only at the end of the file. OSError."""
    begin = offset - offset % DIRECT_ALIGNMENT
    end = offset + size
    whole = -((begin - end) // DIRECT_ALIGNMENT) * DIRECT_ALIGNMENT
    is_copied = whole <= COPIED_BYTES_MAX
    view = (memory.room if is_copied else memory.piece(whole))[:whole]
    got = 0
    while begin + got < end and (more := os.preadv(descriptor, [view[got:]], begin + got)):
        got += more
        if more % DIRECT_ALIGNMENT:
            break  # the end of the file
    found = view[offset - begin : min(got, end - begin)]
    return bytes(found) if is_copied else found


def read_all_direct(memory: DirectMemory, descriptor: int, places: Sequence[tuple[int, int]]) -> list[bytes]:
    """Up to so many bytes of each place, offset and size; fewer only at the end of the file. OSError.

    Places that follow one another nearby are one read: a call for each costs more than the bytes between them.
    """
    found: list[bytes] = []
    for group in _near(places):
        first, end = group[0][0], group[-1][0] + group[-1][1]
        data = read_direct(memory, descriptor, first, end - first)
        found += [bytes(data[offset - first : offset - first + size]) for offset, size in group]
    return found


def _near(places: Sequence[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    group: list[tuple[int, int]] = []
    for place in places:
        if group:
            gap, whole = place[0] - sum(group[-1]), sum(place) - group[0][0]
            if not (0 <= gap <= NEAR_BYTES and whole <= TOGETHER_BYTES_MAX):
                yield group
                group = []
        group.append(place)
    if group:
        yield group
