"""Index: ledger and entry to the span on disk. Pure; one record per block, a hundredth of a record per entry."""

from collections.abc import Iterable

from bookie.ranges import LedgerRanges
from bookie.storage.span import Span


class Index(LedgerRanges[Span]):
    """Spans of all ledgers. Insert in the order in which the blocks were written: the newest wins."""

    def insert(self, ledger_id: int, span: Span) -> None:
        self._of(ledger_id).insert(span)

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
