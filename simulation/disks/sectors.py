"""SectorFile: the bytes of one simulated file, as the page cache has them, and what of them a power cut may take back.

A sector of 512 bytes is the unit that is written whole or not at all. `_undo` holds, for every sector that was written since
the last completed sync, what the platter still has; `_lost` the same for sectors whose sync failed: no later sync makes them
durable unless they are written again (Linux marks such pages clean). Pure: knows no time, no names.
"""

import random

SECTOR_BYTES = 512
_ZEROS = bytes(SECTOR_BYTES)


class SectorFile:
    """Sparse contents. Unwritten sectors read as zeros."""

    def __init__(self) -> None:
        self.size = 0
        self.reserved_bytes = 0
        """Bytes reserved from the beginning of the file on, whether written or not."""
        self._sectors: dict[int, bytes] = {}
        self._undo: dict[int, bytes] = {}
        self._lost: dict[int, bytes] = {}
        self._sizes: list[int] = [0]  # the durable size, then every size since

    @property
    def allocated_bytes(self) -> int:
        return max(len(self._sectors) * SECTOR_BYTES, self.reserved_bytes)

    def allocate(self, size: int) -> None:
        """Reserve room; the file is at least so long."""
        self.reserved_bytes = max(self.reserved_bytes, size)
        self.resize(max(size, self.size))

    def read(self, offset: int, size: int) -> bytes:
        """Preallocated files are mostly holes: costs what was written."""
        size = max(0, min(size, self.size - offset))
        first, last = offset // SECTOR_BYTES, (offset + size - 1) // SECTOR_BYTES
        found = bytearray((last + 1 - first) * SECTOR_BYTES)
        wanted = range(first, last + 1)
        for index in [each for each in self._sectors if each in wanted] if len(self._sectors) < len(wanted) else wanted:
            at = (index - first) * SECTOR_BYTES
            found[at : at + SECTOR_BYTES] = self._sectors.get(index, _ZEROS)
        start = offset - first * SECTOR_BYTES
        return bytes(memoryview(found)[start : start + size])

    def write(self, offset: int, data: bytes) -> None:
        if not data:
            return
        first, end = offset // SECTOR_BYTES, offset + len(data)
        start = offset - first * SECTOR_BYTES
        padded = self._sectors.get(first, _ZEROS)[:start] + data
        if len(padded) % SECTOR_BYTES:
            padded += self._sectors.get(end // SECTOR_BYTES, _ZEROS)[end % SECTOR_BYTES :]
        for index in range(len(padded) // SECTOR_BYTES):
            self._put(first + index, padded[index * SECTOR_BYTES : (index + 1) * SECTOR_BYTES])
        if end > self.size:
            self.resize(end)

    def resize(self, size: int) -> None:
        """Grow with zeros, or cut."""
        if size < self.size:
            self.reserved_bytes = min(self.reserved_bytes, size)
            for index in [index for index in self._sectors if index * SECTOR_BYTES >= size]:
                self._put(index, _ZEROS)
            if size % SECTOR_BYTES and size // SECTOR_BYTES in self._sectors:
                kept = self._sectors[size // SECTOR_BYTES][: size % SECTOR_BYTES]
                self._put(size // SECTOR_BYTES, kept.ljust(SECTOR_BYTES, b"\0"))
        if size != self.size:
            self.size = size
            self._sizes.append(size)

    def _put(self, index: int, sector: bytes) -> None:
        if index not in self._undo:
            self._undo[index] = self._lost.pop(index, b"") or self._sectors.get(index, _ZEROS)
        self._sectors[index] = sector

    def sync(self) -> None:
        """All of it is on the platter now, except what an earlier failed sync gave up."""
        self._undo.clear()
        self._sizes = [self.size]

    def fail_sync(self) -> None:
        """The sync failed: what was to be written never will be, though reads still show it."""
        self._lost.update(self._undo)
        self._undo.clear()

    def cut_power(self, rng: random.Random) -> None:
        """Cuts the power. Unsynced bytes survive or not, sector by sector; the size is one of those since the sync.

        A cut of the file is a matter of metadata: it happened with all its effects or not at all.
        """
        survives = rng.choice((0.0, 0.5, 0.9, 1.0))
        chosen = rng.randrange(len(self._sizes))
        self.size, uncut = self._sizes[chosen], min(self._sizes[chosen:])
        for index, before in self._undo.items():
            is_cut_undone = uncut < self.size and (index + 1) * SECTOR_BYTES > uncut
            if is_cut_undone or rng.random() >= survives:
                self._sectors[index] = before
        self._sectors.update(self._lost)
        self._undo.clear()
        self._lost.clear()
        self._sizes = [self.size]
        self._clear_beyond_end()

    def _clear_beyond_end(self) -> None:
        for index in [index for index in self._sectors if index * SECTOR_BYTES >= self.size]:
            del self._sectors[index]
        if self.size % SECTOR_BYTES and self.size // SECTOR_BYTES in self._sectors:
            kept = self._sectors[self.size // SECTOR_BYTES][: self.size % SECTOR_BYTES]
            self._sectors[self.size // SECTOR_BYTES] = kept.ljust(SECTOR_BYTES, b"\0")

    def flip_bit(self, offset: int, bit: int) -> None:
        """Bit rot: on the platter and for every reader."""
        index, at = divmod(offset, SECTOR_BYTES)
        sector = bytearray(self._sectors.get(index, _ZEROS))
        sector[at] ^= 1 << bit
        self._sectors[index] = bytes(sector)
