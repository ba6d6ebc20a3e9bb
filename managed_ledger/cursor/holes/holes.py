"""Holes: the entries acknowledged beyond mark-delete, as one bitmap per data ledger. Pure.

While they fit Apache's format all of them are in memory. Beyond that they have `pages` (`pages.HolePages`): then unused
segments may be on disk only, and all their entries pass for unacknowledged.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyroaring import BitMap
from sortedcontainers import SortedDict

from wire.kernels.delivery_rows import HolesRow
from wire.position import Position

from ..state import StoredSegment
from .bitmaps import range_count, run_end
from .segments import HolePages

_NO_LEDGERS: Any = SortedDict()
"""Shared by all cursors without holes, which are most: one of their own takes two kilobytes."""
NONE = BitMap()
"""Shared by all callers that ask for a ledger without holes; it must not be changed."""


class Holes(HolesRow):
    """Acknowledged entries by ledger. `count` is their number, those on disk included."""

    __slots__ = ("_by_ledger",)

    pages: HolePages | None

    def __init__(self) -> None:
        self._by_ledger = _NO_LEDGERS
        self.count = 0
        self.pages = None

    def __contains__(self, position: Position) -> bool:
        return position.entry_id in self.of(position.ledger_id) if position.entry_id >= 0 else False

    def items(self) -> Iterator[tuple[int, BitMap]]:
        """Ledger id and entries, ascending."""
        return iter(self._by_ledger.items())

    def of(self, ledger_id: int) -> BitMap:
        """Do not change it."""
        found: BitMap = self._by_ledger.get(ledger_id, NONE)
        return found

    def add(self, ledger_id: int, entry_ids: BitMap) -> BitMap:
        """Add the entries; returns those that are new."""
        known = self._by_ledger.get(ledger_id)
        if known is None:
            if not entry_ids:
                return entry_ids
            self._own()[ledger_id] = entry_ids.copy()
            fresh = entry_ids
        else:
            fresh = entry_ids - known
            known |= fresh
        self.count += len(fresh)
        if self.pages is not None and fresh:
            self.pages.acknowledged(ledger_id, fresh)
        return fresh

    def add_entry(self, ledger_id: int, entry_id: int) -> bool:
        """Whether it was not in it; only while all of them are in memory."""
        known = self._by_ledger.get(ledger_id)
        if known is None:
            self._own()[ledger_id] = BitMap((entry_id,))
        elif entry_id in known:
            return False
        else:
            known.add(entry_id)
        self.count += 1
        return True

    def run_end(self, ledger_id: int, first: int) -> int:
        """The last of the consecutive acknowledged entries from `first`; first - 1 when that is not acknowledged."""
        known = self._by_ledger.get(ledger_id)
        return first - 1 if known is None else run_end(known, first)

    def may_have(self, ledger_id: int, first: int, last: int) -> bool:
        """Whether one of these entries is acknowledged, or may be, on disk."""
        pages, known = self.pages, self._by_ledger.get(ledger_id)
        if pages is not None and not pages.is_known(ledger_id, last):
            return True
        return known is not None and known.range_cardinality(first, last + 1) > 0

    def passed(self, position: Position) -> None:
        """Mark-delete is here now, and nothing that is known was on its way."""
        pages = self.pages
        if pages is not None:
            self.count -= pages.removed_through(position)

    def remove_through(self, position: Position) -> None:
        """Mark-delete is here now."""
        if self.pages is not None:
            self.count -= self.pages.removed_through(position)
        by_ledger = self._by_ledger
        while by_ledger and by_ledger.peekitem(0)[0] < position.ledger_id:
            self.count -= len(by_ledger.popitem(0)[1])
        known = by_ledger.get(position.ledger_id)
        if known is None or position.entry_id < 0:
            return
        self.count -= known.range_cardinality(0, position.entry_id + 1)
        known.remove_range(0, position.entry_id + 1)
        if not known:
            del by_ledger[position.ledger_id]

    def keep_only(self, existing: Mapping[int, int]) -> None:
        """Forget holes outside these ledgers, of so many entries each."""
        for ledger_id, known in list(self._by_ledger.items()):
            entries = existing.get(ledger_id, 0)
            beyond = known.range_cardinality(entries, 1 << 32)
            if beyond:
                self.count -= beyond
                known.remove_range(entries, 1 << 32)
            if not known:
                del self._by_ledger[ledger_id]

    def _own(self) -> Any:
        if self._by_ledger is _NO_LEDGERS:
            self._by_ledger = SortedDict()
        return self._by_ledger

    def clear(self) -> None:
        self._by_ledger.clear()
        self.count = 0
        self._dissolve()

    def check_invariants(self) -> None:
        """Check the invariants, for tests and simulations."""
        assert not _NO_LEDGERS, "cursors without holes share one that is empty"
        assert not NONE
        assert all(self._by_ledger.values()), "an empty bitmap"
        absent = 0 if self.pages is None else self.pages.absent_count
        assert self.count == absent + sum(map(len, self._by_ledger.values()))
        if self.pages is not None:
            self.pages.check_invariants()

    # segments

    def restore_segments(self, stored: Sequence[StoredSegment]) -> None:
        """Restore segments that are on disk; none is in memory."""
        self.pages = HolePages(self._own(), stored)
        self.count = sum(segment.count for segment in stored)

    @property
    def has_absent(self) -> bool:
        """Whether some are on disk only."""
        return self.pages is not None and self.pages.absent > 0

    def want_at(self, ledger_id: int, entry_id: int) -> None:
        if self.pages is not None:
            self.pages.want_at(ledger_id, entry_id)

    def begin_pages(self) -> HolePages:
        """Begin segments; none is stored yet."""
        if self.pages is None:
            self.pages = HolePages(self._own())
        return self.pages

    def end_pages(self, pages: HolePages) -> None:
        """End the segments: the holes are stored in Apache's format."""
        if self.pages is pages:
            assert not pages.absent, "a segment would be lost"
            self._dissolve()

    def _dissolve(self) -> None:
        if self.pages is not None:
            self.pages.dissolve()
        self.pages = None

    def load(
        self, start: Position, stored: Mapping[int, BitMap], added: Mapping[int, BitMap], *, is_whole: bool
    ) -> dict[int, BitMap]:
        """A segment came from disk; its entries that were not known. May hold what mark-delete has passed meanwhile."""
        segment = None if self.pages is None else self.pages.segment(start)
        if self.pages is None or segment is None or segment.is_resident:
            return {}
        self.count -= segment.count
        fresh = self.pages.loaded(start, stored, added, is_whole=is_whole)
        self.count += sum(map(len, fresh.values()))
        return fresh

    def range_count(self) -> int:
        """Number of ranges of consecutive entries in memory."""
        return sum(range_count(known) for known in self._by_ledger.values())

    def copy(self) -> dict[int, BitMap]:
        """Cheap: bitmaps share what neither changes."""
        return {ledger_id: known.copy() for ledger_id, known in self._by_ledger.items()}
