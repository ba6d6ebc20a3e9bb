"""KernelQueue: a queue of Linux (io_uring) that carries out one write at a time and says when it is durable.

A thread that writes for the loop costs four switches between threads, and a fight for the interpreter's lock, for each write.
The kernel needs no thread: the write is handed over with one system call, and the loop sees its end on the ring's descriptor.
The rings lie in memory that is shared with the kernel; their layout is that of <linux/io_uring.h>. Only the loop writes
here, and system calls order what both sides see. Owns the ring, and a room of whole pages through which all bytes go.
Where there is no io_uring (other systems, containers that forbid it), `opened` gives None.
Why: docs/adr/0035-journal-writes-without-a-thread.md.
"""

import ctypes
import errno
import logging
import mmap
import os
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ports.disk.disk import Buffer
from ports.logs import line

ROOM_BYTES = 256 << 10
"""The largest write; a journal's frame under load is about that large."""
UNDONE = (errno.EINVAL, errno.EOPNOTSUPP, errno.EAGAIN, errno.EINTR, errno.ECANCELED)
"""Answers of a kernel that did not do it, and may do it when it is asked in another way."""
_SETUP, _ENTER = 425, 426
"""Numbers of the system calls, on all architectures."""
_ENTRIES = 4
_SINGLE_MMAP = 1
_RINGS_AT, _REQUESTS_AT = 0, 0x10000000
_MAP_POPULATE = 0x8000
_GET_EVENTS = 1
_WRITE, _SYNCED = 23, 2
"""IORING_OP_WRITE and RWF_DSYNC."""
_PARAMETERS = struct.Struct("=2I 3I I 4I 10I 10I")
_REQUEST = struct.Struct("=BBHi QQ II Q 24x")
_COMPLETION = struct.Struct("=Qi4x")
_WORD = struct.Struct("=I")
_call: Any = ctypes.CDLL(None, use_errno=True).syscall if sys.platform == "linux" else None
log = logging.getLogger("ports.disk.kernel_queue")


class KernelQueue:
    """`write` while `is_free`; `finish` where the descriptor is readable; `close` at the end."""

    def __init__(self, descriptor: int, facts: Sequence[int]) -> None:
        requests, completions, sent_at, done_at = facts[0], facts[1], facts[10:20], facts[20:30]
        self.descriptor = descriptor
        size = max(sent_at[6] + requests * _WORD.size, done_at[5] + completions * _COMPLETION.size)
        self._rings = mmap.mmap(descriptor, size, mmap.MAP_SHARED | _MAP_POPULATE, offset=_RINGS_AT)
        self._requests = mmap.mmap(descriptor, requests * _REQUEST.size, mmap.MAP_SHARED | _MAP_POPULATE, offset=_REQUESTS_AT)
        self._sent_tail_at, self._sent_at, self._sent_mask = sent_at[1], sent_at[6], requests - 1
        self._done_head_at, self._done_tail_at, self._done_at = done_at[0], done_at[1], done_at[5]
        self._done_mask = completions - 1
        self._sent = self._done = 0
        self._room = mmap.mmap(-1, ROOM_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._room_at = ctypes.addressof(ctypes.c_char.from_buffer(self._room))
        self._then: Callable[[int], object] | None = None

    @property
    def is_free(self) -> bool:
        return self._then is None

    def write(self, file: int, offset: int, data: Buffer, then: Callable[[int], object]) -> bool:
        """Begins a synced write to a file opened with O_DIRECT; `data` may change when this returns. False: not begun.

        `then` is called by `finish`, with the number of bytes that are durable or a negative errno.
        """
        size = len(data)
        self._room[:size] = data
        index = self._sent & self._sent_mask
        at = index * _REQUEST.size
        _REQUEST.pack_into(self._requests, at, _WRITE, 0, 0, file, offset, self._room_at, size, _SYNCED, self._sent)
        _WORD.pack_into(self._rings, self._sent_at + index * _WORD.size, index)
        _WORD.pack_into(self._rings, self._sent_tail_at, (self._sent + 1) & 0xFFFFFFFF)
        if _call(_ENTER, self.descriptor, 1, 0, 0, None, 0) != 1:
            _WORD.pack_into(self._rings, self._sent_tail_at, self._sent & 0xFFFFFFFF)
            return False
        self._sent += 1
        self._then = then
        return True

    def finish(self) -> None:
        """Calls `then` of the write, if it has ended."""
        if _WORD.unpack_from(self._rings, self._done_tail_at)[0] == self._done & 0xFFFFFFFF:
            return
        at = self._done_at + (self._done & self._done_mask) * _COMPLETION.size
        _, result = _COMPLETION.unpack_from(self._rings, at)
        self._done += 1
        _WORD.pack_into(self._rings, self._done_head_at, self._done & 0xFFFFFFFF)
        then, self._then = self._then, None
        assert then is not None, "there is one for each write"
        then(result)

    def close(self) -> None:
        """Waits for the write that is under way, and finishes it."""
        while not self.is_free:
            _call(_ENTER, self.descriptor, 0, 1, _GET_EVENTS, None, 0)
            self.finish()
        os.close(self.descriptor)
        self._rings.close()
        self._requests.close()


def opened() -> KernelQueue | None:
    """A queue of this system's kernel. None: there is none, or this process may not have one."""
    if sys.platform != "linux":
        return None
    parameters = ctypes.create_string_buffer(_PARAMETERS.size)
    descriptor = _call(_SETUP, _ENTRIES, parameters)
    if descriptor < 0:
        reason = os.strerror(ctypes.get_errno())
        log.info(line("io_uring is not used: journal frames are written by a thread", reason=reason))
        return None
    facts = _PARAMETERS.unpack(parameters.raw)
    try:
        if facts[5] & _SINGLE_MMAP:
            return KernelQueue(descriptor, facts)
    except OSError as error:
        log.info(line("io_uring is not used: its memory cannot be mapped", error=error))
    os.close(descriptor)
    return None
