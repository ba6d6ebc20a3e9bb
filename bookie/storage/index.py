"""Index: ledger and entry to the span on disk. Pure; one record per block, a hundredth of a record per entry."""

from collections.abc import Collection, Iterable
from dataclasses import replace

from bookie.ranges import LedgerRanges
from bookie.storage.span import Span


class Index(LedgerRanges[Span]):
    """Spans of all ledgers. Insert in the order in which the blocks were written: the newest wins."""

    def insert(self, ledger_id: int, span: Span) -> None:
        self.of(ledger_id).insert(span)

    def insert_all(self, spans: Iterable[tuple[int, Span]]) -> None:
        for ledger_id, span in spans:
            self.insert(ledger_id, span)

    def keep_only(self, ledger_ids: Iterable[int]) -> None:
        """Forget all but these ledgers."""
        kept = set(ledger_ids)
        self._ledgers = {ledger_id: ranges for ledger_id, ranges in self._ledgers.items() if ledger_id in kept}

    def log_ids(self) -> frozenset[int]:
        """Logs that hold at least one entry that can be read."""
        return frozenset(span.log_id for ranges in self._ledgers.values() for span in ranges)

    def spans_in(self, log_ids: Collection[int]) -> list[tuple[int, Span]]:
        """Spans in these logs that can be read, by ledger and entry."""
        return [
            (ledger_id, span)
            for ledger_id in sorted(self._ledgers)
            for span in self._ledgers[ledger_id]
            if span.log_id in log_ids
        ]

    def spans(self) -> list[tuple[int, Span]]:
        """Spans that can be read, by ledger and entry."""
        return [(ledger_id, span) for ledger_id in sorted(self._ledgers) for span in self._ledgers[ledger_id]]

    def all_spans(self) -> Iterable[Span]:
        """Every span, in no order that means anything."""
        return (span for ranges in self._ledgers.values() for span in ranges)

    def spans_between(self, ledger_id: int, first_entry_id: int, end_entry_id: int) -> list[Span]:
        """Spans that have entries of [first, end), by entry."""
        ranges = self._ledgers.get(ledger_id)
        if ranges is None or first_entry_id >= end_entry_id:
            return []
        begun = ranges.find(first_entry_id)
        behind = ranges.between(first_entry_id + 1, end_entry_id - 1)
        return behind if begun is None else [begun, *behind]

    def state_of(self, ledger_id: int) -> int:
        """A number that is another one once something of the ledger was written or moved."""
        return hash(tuple(self._ledgers.get(ledger_id, ())))

    def holds(self, ledger_id: int, span: Span) -> bool:
        """Some of the span's entries are still read from its block."""
        ranges = self._ledgers.get(ledger_id)
        return ranges is not None and any(
            _same_block(part, span) for part in ranges.between(span.first_entry_id, span.last_entry_id)
        )

    def relocate(self, ledger_id: int, old: tuple[Span, ...], new: Span) -> None:
        """The entries of `old` are in `new` now; those that were overwritten meanwhile stay where they are."""
        ranges = self._ledgers.get(ledger_id)
        if ranges is None:
            return  # deleted meanwhile
        parts = ranges.between(new.first_entry_id, new.last_entry_id)
        if tuple(parts) == old:
            ranges.replace_between(new.first_entry_id, new.last_entry_id, [new])
            return
        blocks = {(span.log_id, span.offset) for span in old}
        moved = [
            replace(new, first_entry_id=part.first_entry_id, count=part.count) if (part.log_id, part.offset) in blocks else part
            for part in parts
        ]
        ranges.replace_between(new.first_entry_id, new.last_entry_id, moved)


def _same_block(one: Span, other: Span) -> bool:
    return (one.log_id, one.offset) == (other.log_id, other.offset)
