"""A compacted ledger, read by the places of the messages that it has copies of (Apache: CompactedTopicImpl).

Owns a bounded index of the places of copies; a reader that goes on where it stopped finds its place at once.
"""

from collections import OrderedDict
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TypeVar

from pyroaring import BitMap

from bookkeeper.ledgers import LedgerReader
from wire.compression import decompress
from wire.errors import MalformedPayload
from wire.kernels.compacted_entries import last_index, message_id, unpack
from wire.payloads import message_metadata, split_section
from wire.position import Position
from wire.run import EntryRun

K = TypeVar("K")
V = TypeVar("V")

_IDS_KEPT = 256
_SPAN_MAX = 4096
"""Ids that one run goes over; a longer gap begins another."""
_READ_ENTRIES = 1000
_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class CompactedRun:
    """Copies of entries of one ledger of the log. Absent ones are empty in `run`; `missing` has their ids."""

    run: EntryRun
    missing: BitMap
    next_index: int
    """Index of the next entry of the compacted ledger."""


@dataclass(frozen=True, slots=True)
class LastCompacted:
    """The last message: where it is, and which one of its batch that is not compacted out; -1: it is no batch."""

    position: Position
    batch_index: int


class CompactedLedger:
    """Open for reading. Errors are LedgerError, and ValueError for an entry that is no compacted message."""

    def __init__(self, reader: LedgerReader) -> None:
        self._reader = reader
        self._ids: OrderedDict[int, Position] = OrderedDict()
        self._next: OrderedDict[Position, int] = OrderedDict()
        self._last: LastCompacted | None = None

    @property
    def ledger_id(self) -> int:
        return self._reader.ledger_id

    @property
    def entries(self) -> int:
        return self._reader.last_entry_id + 1

    @property
    def size_bytes(self) -> int:
        return self._reader.length_bytes

    async def read(self, position: Position, entries_max: int, bytes_max: int) -> CompactedRun | None:
        """The run that starts with the first copy of an entry at or after `position`; None: there is none."""
        index = await self._index_of(position)
        if index >= self.entries:
            return None
        found = await self.read_at(index, entries_max, bytes_max)
        _keep(self._next, Position(found.run.ledger_id, found.run.last_entry_id + 1), found.next_index)
        return found

    async def read_at(self, index: int, entries_max: int, bytes_max: int) -> CompactedRun:
        """The run that starts with that entry of the compacted ledger."""
        return _unpacked(await self._reader.read(index, entries_max, bytes_max), 0)

    async def all(self) -> AsyncIterator[EntryRun]:
        """Everything, in order."""
        index = 0
        while index < self.entries:
            stored, at = await self._reader.read(index, _READ_ENTRIES, _READ_BYTES), 0
            while at < stored.count:
                found = _unpacked(stored, at)
                at = found.next_index - stored.first_entry_id
                yield found.run
            index += stored.count

    async def last(self) -> LastCompacted | None:
        """None when nothing stayed."""
        if self._last is None and self.entries:
            found = await self.read_at(self.entries - 1, 1, 1)
            self._last = _last_of(found.run)
        return self._last

    async def _index_of(self, position: Position) -> int:
        """Index of the first copy at or after `position`, by binary search."""
        known = self._next.get(position)
        if known is not None:
            self._next.move_to_end(position)
            return known
        low, high = 0, self.entries
        while low < high:
            middle = (low + high) // 2
            if await self._id(middle) < position:
                low = middle + 1
            else:
                high = middle
        return low

    async def _id(self, index: int) -> Position:
        found = self._ids.get(index)
        if found is None:
            run = await self._reader.read(index, 1, 1)
            found = Position(*message_id(run, 0))
            _keep(self._ids, index, found)
        return found


def _keep(known: "OrderedDict[K, V]", key: K, value: V) -> None:
    known[key] = value
    if len(known) > _IDS_KEPT:
        known.popitem(last=False)


def _unpacked(stored: EntryRun, at: int) -> CompactedRun:
    run, present, stop = unpack(stored, at, _SPAN_MAX)
    missing = BitMap(range(run.first_entry_id, run.last_entry_id + 1)) - BitMap(present)
    return CompactedRun(run, missing, stored.first_entry_id + stop)


def _last_of(run: EntryRun) -> LastCompacted:
    position = Position(run.ledger_id, run.last_entry_id)
    try:
        section = split_section(run.payload(run.last_entry_id))
        metadata = message_metadata(section)
        if not metadata.HasField("num_messages_in_batch"):
            return LastCompacted(position, -1)
        count = metadata.num_messages_in_batch
        if metadata.encryption_keys:
            return LastCompacted(position, count - 1)
        payload = decompress(metadata.compression, section.payload, metadata.uncompressed_size)
    except MalformedPayload:
        return LastCompacted(position, -1)
    found = last_index(payload, count)
    return LastCompacted(position, found if found >= 0 else count - 1)
