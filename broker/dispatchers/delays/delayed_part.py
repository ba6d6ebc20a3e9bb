"""Snapshot of a part of the delayed entries, in the stored order, by time. Knows no ledgers and no cursor.

Its items are a copy, with tables that give their meaning: the waiting entries may change meanwhile.
"""

from array import array
from collections.abc import Iterator
from itertools import compress

from pyroaring import BitMap

from wire.kernels.delayed_index import by_ledger, facts_of
from wire.position import Position
from wire.record import record

from ..entry_sets import EntrySet

Facts = tuple["array[int]", "array[int]", "array[int]"]
"""Times, ledger ids and entry ids, as `wire.kernels.delayed_index` has them."""
_SIFTED_AT_ONCE = 1 << 14


@record(frozen=True, slots=True)
class DelayedPart:
    """`items` are by time, and may have some for which nothing waits."""

    wanted: EntrySet
    items: "array[int]"
    ledger_of: "array[int]"
    high_of: "array[int]"
    base_ms: int
    tick_ms: int

    def __len__(self) -> int:
        return len(self.wanted)

    @property
    def first(self) -> Position:
        first = self.wanted.first()
        assert first is not None, "nothing waits there"
        return first

    @property
    def last(self) -> Position:
        return max(Position(ledger_id, entry_ids.max()) for ledger_id, entry_ids in self.wanted.ledgers())

    def sift(self) -> "Iterator[array[int]]":
        """The items for which something waits, some thousands at a time."""
        sets = dict(self.wanted.ledgers())
        for start in range(0, len(self.items), _SIFTED_AT_ONCE):
            items = self.items[start : start + _SIFTED_AT_ONCE]
            _, ledger_ids, entry_ids = facts_of(items, self.ledger_of, self.high_of, self.base_ms, self.tick_ms)
            yield array("Q", compress(items, _is_in(sets, ledger_ids, entry_ids)))

    def facts(self, items: "array[int]") -> Facts:
        return facts_of(items, self.ledger_of, self.high_of, self.base_ms, self.tick_ms)


def _is_in(sets: dict[int, BitMap], ledger_ids: "array[int]", entry_ids: "array[int]") -> Iterator[bool]:
    if len(sets) == 1:
        [(_, only)] = sets.items()
        return map(only.__contains__, entry_ids)
    return (entry_id in sets[ledger_id] for ledger_id, entry_id in zip(ledger_ids, entry_ids, strict=True))


def bitmaps(facts: Facts) -> dict[int, BitMap]:
    """The entries by ledger."""
    return {ledger_id: BitMap(entry_ids) for ledger_id, (entry_ids, _) in by_ledger(*facts).items()}
