"""Redelivery counts per entry, in memory, for the entries that were redelivered (Apache: InMemoryRedeliveryTracker).

A negative acknowledgement or timeout counts; a consumer that leaves does not (observed with Apache 4.0.8); when all consumers
have left, or the cursor is reset, it starts again. Entries are forgotten when they are acknowledged.
"""

from collections.abc import Sequence
from itertools import repeat

from pyroaring import BitMap

from wire.position import Position
from wire.run import EntryRun

from .entry_sets import EntrySet

_LARGEST = (1 << 31) - 1
"""The field in MESSAGE is a uint32 that clients read as an int."""


class Redeliveries:
    """Sparse counts, per ledger."""

    __slots__ = ("_by_ledger",)

    def __init__(self) -> None:
        self._by_ledger: dict[int, dict[int, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_ledger)

    def count(self, ledger_id: int, entry_ids: BitMap) -> None:
        counts = self._by_ledger.setdefault(ledger_id, {}) if entry_ids else {}
        for entry_id in entry_ids:
            counts[entry_id] = min(counts.get(entry_id, 0) + 1, _LARGEST)

    def of(self, run: EntryRun, indexes: range | Sequence[int]) -> list[int] | None:
        """Counts for the entries at these indexes; None when all are 0."""
        counts = self._by_ledger.get(run.ledger_id)
        if not counts:
            return None
        found = list(map(counts.get, map(run.first_entry_id.__add__, indexes), repeat(0)))
        return found if any(found) else None

    def forget(self, ledger_id: int, entry_ids: BitMap) -> None:
        counts = self._by_ledger.get(ledger_id)
        if counts is None:
            return
        for entry_id in entry_ids if len(entry_ids) < len(counts) else [known for known in counts if known in entry_ids]:
            counts.pop(entry_id, None)
        if not counts:
            del self._by_ledger[ledger_id]

    def forget_up_to(self, position: Position) -> None:
        for ledger_id in [known for known in self._by_ledger if known <= position.ledger_id]:
            if ledger_id < position.ledger_id:
                del self._by_ledger[ledger_id]
            else:
                self.forget(ledger_id, BitMap(range(position.entry_id + 1)))

    def clear(self) -> None:
        self._by_ledger.clear()

    def check_invariants(self, known: EntrySet) -> None:
        """Only counts of entries that a consumer has or that wait."""
        for ledger_id, counts in self._by_ledger.items():
            assert counts, "an empty dict is kept"
            assert BitMap(list(counts)) <= known.in_ledger(ledger_id), "counts of entries that are gone"
