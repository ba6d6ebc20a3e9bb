"""ReadAhead: pieces of blocks read beyond the wanted entries, for readers that go on where they were. Pure.

Keys: dbStorage_readAheadCacheBatchSize (entries), dbStorage_readAheadCacheBatchBytesSize, dbStorage_readAheadCacheMaxSizeMb.
A reader that asks for as much at a time as is read ahead costs nothing here, and random reads read nothing ahead.
Bounds: `bytes_max` of pieces, of which none is larger than a block; READERS_MAX ledgers whose last read is remembered.
"""

from array import array
from collections import OrderedDict
from collections.abc import Sequence

from bookie.reads.reading import stop_within
from wire.run import Buffer

READERS_MAX = 1000
Place = tuple[int, int]
"""Place of a block: log and offset."""


class ReadAhead:
    """Pieces of blocks; the one used longest ago goes first. A piece is what its buffer is, from `begin` in the block on."""

    def __init__(self, bytes_max: int, batch_entries: int, batch_bytes: int) -> None:
        """`batch_bytes`: 0 or less: as many as the entries have."""
        self._bytes_max, self._batch_entries = bytes_max, batch_entries
        self._batch_bytes = min(batch_bytes if batch_bytes > 0 else bytes_max, bytes_max)
        self._pieces: OrderedDict[Place, tuple[int, Buffer]] = OrderedDict()
        self._pieces_bytes = 0
        self._next: OrderedDict[int, int] = OrderedDict()
        self.hits = self.misses = 0
        """Results of `find`."""
        self.batches = self.entries_ahead = 0
        """Number of reads beyond the entries asked for, and of the entries read so."""

    @property
    def size_bytes(self) -> int:
        return self._pieces_bytes

    @property
    def count(self) -> int:
        return len(self._pieces)

    def goes_on(self, ledger_id: int, first_entry_id: int) -> bool:
        """The read follows the last one of its ledger."""
        return self._batch_entries > 0 and self._next.get(ledger_id) == first_entry_id

    def was_read(self, ledger_id: int, last_entry_id: int) -> None:
        self._next[ledger_id] = last_entry_id + 1
        self._next.move_to_end(ledger_id)
        if len(self._next) > READERS_MAX:
            self._next.popitem(last=False)

    def widened(self, count_max: int, bytes_max: int) -> tuple[int, int]:
        """Entries and bytes to read where so many were asked for."""
        return max(count_max, self._batch_entries), max(bytes_max, self._batch_bytes)

    def stop(self, offsets: "array[int]", start: int, stop: int) -> int:
        """Up to which entry of a block to read, where it is asked for those from `start` to `stop`, exclusively."""
        found = max(stop, stop_within(offsets, start, self._batch_entries, self._batch_bytes))
        self.batches += found > stop
        self.entries_ahead += found - stop
        return found

    def find(self, place: Place, begin: int, end: int) -> tuple[int, Buffer] | None:
        """The piece that has these bytes of a block."""
        piece = self._pieces.get(place)
        if piece is None or not piece[0] <= begin <= end <= piece[0] + len(piece[1]):
            self.misses += 1
            return None
        self.hits += 1
        self._pieces.move_to_end(place)
        return piece

    def keep(self, place: Place, begin: int, piece: Buffer) -> None:
        """Keep this piece of a block in place of the one kept before."""
        self._drop([place])
        self._pieces[place] = (begin, piece)
        self._pieces_bytes += len(piece)
        while self._pieces_bytes > self._bytes_max:
            self._drop([next(iter(self._pieces))])

    def forget(self, log_id: int) -> None:
        """The log goes away."""
        self._drop([place for place in self._pieces if place[0] == log_id])

    def check_invariants(self) -> None:
        """Check the invariants, for tests and simulations."""
        assert self._pieces_bytes == sum(len(piece) for _, piece in self._pieces.values())
        assert self._pieces_bytes <= self._bytes_max
        assert len(self._next) <= READERS_MAX

    def _drop(self, places: Sequence[Place]) -> None:
        for place in places:
            _, piece = self._pieces.pop(place, (0, b""))
            self._pieces_bytes -= len(piece)
