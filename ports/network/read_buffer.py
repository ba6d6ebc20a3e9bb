"""Read buffers: one large buffer for the socket reads of all connections, and the rest of a frame kept apart.

asyncio asks for the buffer right before it reads and tells of the bytes right after, with nothing in between, so that one
`SharedRoom` serves a whole server and an idle connection keeps nothing. A connection in the middle of a large frame gets a
buffer of its own, which grows as bytes arrive. Knows nothing of frames.
"""

READ_BYTES = 256 * 1024
KEPT_BYTES_MAX = 160 * 1024
"""Up to here the beginning of a frame is copied in front of the next read; above it is left where it is. Clients' batches
are 128 KiB by default."""
_OWN_ROOM_BYTES_MIN = 64 * 1024


class SharedRoom:
    """Room for one read of any connection, behind room for what that connection had kept."""

    def __init__(self) -> None:
        self.view = memoryview(bytearray(KEPT_BYTES_MAX + READ_BYTES))
        self.whole = self.view[:READ_BYTES]
        """Room for a connection that has kept nothing, as nearly all have."""
        self.reader: ReadBuffer | None = None
        """Buffer that was given the room last: only this one may report bytes in it."""


class ReadBuffer:
    """Bytes of one connection. For each read: `room`, `filled`, then `keep` with the place up to which the bytes are used up.

    `hold` instead of `keep` says that whole frames among the rest are handled later: nothing is moved, and `unused` has them.
    """

    def __init__(self, shared: SharedRoom) -> None:
        self._shared = shared
        self._kept = b""
        self._own: memoryview | None = None
        self._start = self._end = 0
        """Begin and end of the bytes in the buffer; the begin is 0, except while a buffer is held."""

    @property
    def kept_bytes(self) -> int:
        return len(self._kept) if self._own is None else self._end - self._start

    def room(self) -> memoryview:
        """Room to read into at once."""
        if self._own is None:
            shared, kept = self._shared, self._kept
            shared.reader = self
            start = self._end = len(kept)
            if not start:
                return shared.whole
            view = shared.view
            view[:start] = kept
            return view[start : start + READ_BYTES]
        if len(self._own) - self._end < _OWN_ROOM_BYTES_MIN:
            self._grow(self._own)
        return self._own[self._end :]

    def _grow(self, old: memoryview) -> None:
        self._own = memoryview(bytearray(2 * len(old)))
        self._own[: self._end] = old[: self._end]

    def filled(self, size: int) -> tuple[memoryview, int]:
        """The buffer, and the end of the bytes in it, which begin at 0. Valid until `keep`."""
        self._end += size
        if self._own is not None:
            return self._own, self._end
        assert self._shared.reader is self, "somebody else has read into the shared room in between"
        return self._shared.view, self._end

    def unused(self) -> tuple[memoryview, int, int]:
        """The buffer, and where its bytes begin and end. Valid until `keep` or `hold`."""
        return (self._shared.view if self._own is None else self._own), self._start, self._end

    def hold(self, start: int) -> None:
        """Bytes before `start` are used up, and the rest is wanted again, without being read anew."""
        if self._own is None:
            size = self._end - start
            self._own = memoryview(bytearray(size + _OWN_ROOM_BYTES_MIN))
            self._own[:size] = self._shared.view[start : self._end]
            self._kept, start, self._end = b"", 0, size
        self._start = start

    def keep(self, start: int) -> None:
        """Bytes before `start` are used up."""
        self._start = 0
        size = self._end - start
        if not size and self._own is None:
            self._kept, self._end = b"", 0
            return
        source = self._shared.view if self._own is None else self._own
        if size <= KEPT_BYTES_MAX:
            self._kept = bytes(source[start : self._end])
            self._own = None
        elif self._own is None:
            self._own = memoryview(bytearray(2 * size))
            self._own[:size] = source[start : self._end]
        elif start:
            self._own[:size] = bytes(source[start : self._end])
        self._end = size
