"""BatchIndexes: which messages of partly acknowledged batches are not acknowledged yet. Pure.

A bit 1 is an unacknowledged message, as everywhere in the protocol. A batch that is wholly acknowledged is not kept here.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pyroaring import BitMap
from sortedcontainers import SortedDict

from wire.position import Position

from .holes.bitmaps import WORD_MASK

Words = tuple[int, ...]
_NO_BATCHES: Any = SortedDict()
"""Shared by all cursors without a batch that is acknowledged in part: one of their own takes two kilobytes."""


class BatchIndexes:
    """Unacknowledged messages by position, as one integer each."""

    __slots__ = ("_unacknowledged",)

    def __init__(self) -> None:
        self._unacknowledged = _NO_BATCHES

    def __iter__(self) -> Iterator[Position]:
        return iter(self._unacknowledged)

    def __len__(self) -> int:
        return len(self._unacknowledged)

    def get(self, position: Position) -> Words | None:
        bits = self._unacknowledged.get(position)
        return None if bits is None else to_words(bits)

    def items(self) -> list[tuple[Position, Words]]:
        return list(self.between(None, None))

    def between(self, first: Position | None, last: Position | None) -> Iterator[tuple[Position, Words]]:
        """Batches from `first` to `last`, both included, without a look at others."""
        for position in self._unacknowledged.irange(first, last):
            yield position, to_words(self._unacknowledged[position])

    def acknowledge(self, position: Position, ack_set: Sequence[int], batch_size: int) -> tuple[bool, bool]:
        """Whether anything changed, and whether the batch is wholly acknowledged now (then it is forgotten)."""
        asked = to_bits(ack_set)
        known, bits = self._unacknowledged.get(position), 64 * len(ack_set)
        is_longer = known is None and batch_size > bits  # by its word: what it says of the size costs nothing
        if known is None:
            known = (1 << (min(batch_size, bits) if batch_size > 0 else bits)) - 1
        left = known & asked
        if left == 0:
            self._unacknowledged.pop(position, None)
            return True, True
        if left == known and not is_longer:
            return False, False
        self._own()[position] = left
        return True, False

    def restore(self, position: Position, words: Sequence[int]) -> None:
        self._own()[position] = to_bits(words)

    def remove(self, ledger_id: int, entry_ids: BitMap) -> None:
        """These entries are wholly acknowledged."""
        if not self._unacknowledged or not entry_ids:
            return
        if len(entry_ids) < len(self._unacknowledged):
            for entry_id in entry_ids:
                self._unacknowledged.pop(Position(ledger_id, entry_id), None)
            return
        first, last = Position(ledger_id, entry_ids.min()), Position(ledger_id, entry_ids.max())
        self._discard(p for p in self._unacknowledged.irange(first, last) if p.entry_id in entry_ids)

    def remove_through(self, position: Position) -> None:
        if self._unacknowledged:
            self._discard(self._unacknowledged.irange(maximum=position))

    def _own(self) -> Any:
        if self._unacknowledged is _NO_BATCHES:
            self._unacknowledged = SortedDict()
        return self._unacknowledged

    def clear(self) -> None:
        self._unacknowledged.clear()

    def check_invariants(self) -> None:
        """Check the invariants, for tests and simulations."""
        assert all(bits > 0 for bits in self._unacknowledged.values()), "a batch that is wholly acknowledged is not here"
        assert not _NO_BATCHES, "cursors without such a batch share one that is empty"

    def _discard(self, positions: Iterable[Position]) -> None:
        for position in list(positions):
            del self._unacknowledged[position]


def to_bits(words: Sequence[int]) -> int:
    """Signed or unsigned 64-bit words as one integer, the first word lowest."""
    if len(words) == 1:
        return words[0] & WORD_MASK
    return int.from_bytes(b"".join([(word & WORD_MASK).to_bytes(8, "little") for word in words]), "little")


def to_words(bits: int) -> Words:
    """Unsigned words; no trailing zero words, as BitSet.toLongArray."""
    if bits <= WORD_MASK:
        return (bits,) if bits else ()
    octets = memoryview(bits.to_bytes((bits.bit_length() + 63) // 64 * 8, "little"))
    return tuple(int.from_bytes(octets[at : at + 8], "little") for at in range(0, len(octets), 8))
