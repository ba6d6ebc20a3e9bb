"""LedgerSequence: which ledgers a managed ledger is made of, and the arithmetic of positions over them. Pure.

Owns entry counts and sizes, the open ledger's as far as they are confirmed. Never touches metadata or entries.

Every entry also has an index: how many entries the managed ledger held before it since it was loaded. Trimming a prefix leaves
indexes as they are, so that backlogs are subtractions. Ledger ids only grow; a ledger without entries is there only while open.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import zip_longest

from wire.kernels.rows import SequenceRow, SpanRow
from wire.position import Position

NOWHERE = Position(-1, -1)
"""End of a managed ledger that never had a ledger."""


class LedgerSpan(SpanRow):
    """One ledger: its entries have the indexes from `first_index` on. `size_bytes` counts payloads, as BookKeeper's length."""

    __slots__ = ()

    def __init__(
        self, ledger_id: int, first_index: int, entries: int, size_bytes: int, closed_at_ms: int, is_open: bool
    ) -> None:
        self.ledger_id = ledger_id
        self.first_index = first_index
        self.entries = entries
        self.size_bytes = size_bytes
        self.closed_at_ms = closed_at_ms
        self.is_open = is_open

    @property
    def end_index(self) -> int:
        return self.first_index + self.entries


class LedgerSequence(SequenceRow):
    """The ledgers, ascending; only the last can be open."""

    __slots__ = ("_spans",)

    _last: LedgerSpan | None

    def __init__(self) -> None:
        self._spans: list[LedgerSpan] = []
        self._last = None
        self._confirmed_ledger, self._confirmed_entry = NOWHERE
        self._end_index = 0
        self.size_bytes = 0

    # what there is

    @property
    def last_confirmed(self) -> Position:
        """The last entry, or the place before the first one. Stays when that ledger is trimmed."""
        return Position(self._confirmed_ledger, self._confirmed_entry)

    @property
    def end_index(self) -> int:
        """The index that the next entry gets."""
        return self._end_index

    @property
    def entry_count(self) -> int:
        return self._end_index - self.first_index

    @property
    def first_index(self) -> int:
        return self._first().first_index if self._spans else self._end_index

    @property
    def open_ledger_id(self) -> int | None:
        return self._last.ledger_id if self._last is not None and self._last.is_open else None

    def __len__(self) -> int:
        return len(self._spans)

    def __iter__(self) -> Iterator[LedgerSpan]:
        return iter(self._spans)

    def span(self, ledger_id: int) -> LedgerSpan | None:
        last = self._last
        if last is not None and last.ledger_id == ledger_id:
            return last
        place = bisect_left(self._spans, ledger_id, key=_ledger_id)
        found = self._spans[place] if place < len(self._spans) else None
        return found if found is not None and found.ledger_id == ledger_id else None

    def is_open_through(self, ledger_id: int, entry_id: int) -> bool:
        """Whether this ledger is being written to, and has that entry."""
        last = self._last
        return last is not None and last.ledger_id == ledger_id and last.is_open and entry_id < last.entries

    def span_after(self, ledger_id: int) -> LedgerSpan | None:
        """The next ledger of a greater id."""
        place = bisect_right(self._spans, ledger_id, key=_ledger_id)
        return self._spans[place] if place < len(self._spans) else None

    def span_before(self, ledger_id: int) -> LedgerSpan | None:
        place = bisect_left(self._spans, ledger_id, key=_ledger_id)
        return self._spans[place - 1] if place else None

    # changes

    def add_closed(self, ledger_id: int, entries: int, size_bytes: int, closed_at_ms: int) -> None:
        """A ledger found in the metadata; one without entries is left out."""
        self._check_newest(ledger_id)
        if entries:
            self._add(LedgerSpan(ledger_id, self._end_index, entries, size_bytes, closed_at_ms, False))
            self._end_index += entries
            self.size_bytes += size_bytes
            self._confirmed_ledger, self._confirmed_entry = ledger_id, entries - 1
        elif self._confirmed_entry < 0:
            self._confirmed_ledger, self._confirmed_entry = ledger_id, -1

    def open(self, ledger_id: int) -> None:
        """A new ledger that is appended to from now on."""
        self._check_newest(ledger_id)
        self._add(LedgerSpan(ledger_id, self._end_index, 0, 0, 0, True))
        if self._confirmed_entry < 0:
            self._confirmed_ledger, self._confirmed_entry = ledger_id, -1

    def confirm(self, entries: int, size_bytes: int) -> None:
        """Count that many more stored entries of the open ledger."""
        last = self._last
        assert last is not None, "entries were confirmed without a ledger"
        assert last.is_open, f"entries of ledger {last.ledger_id} were confirmed after it was closed"
        last.entries += entries
        last.size_bytes += size_bytes
        self.size_bytes += size_bytes
        self._end_index += entries
        self._confirmed_ledger, self._confirmed_entry = last.ledger_id, last.entries - 1

    def close_open(self, now_ms: int) -> int | None:
        """The open ledger is closed. Without entries it is no part of the log any more: its id, to be deleted."""
        last = self._last
        if last is None or not last.is_open:
            return None
        last.is_open = False
        last.closed_at_ms = now_ms
        if last.entries:
            return None
        self._spans.pop()
        self._last = self._spans[-1] if self._spans else None
        return last.ledger_id

    def remove(self, ledger_ids: Iterable[int]) -> None:
        """Trim a prefix of closed ledgers."""
        wanted = sorted(ledger_ids)
        trimmed = self._spans[: len(wanted)]
        for ledger_id, span in zip_longest(wanted, trimmed):
            assert span is not None, f"ledger {ledger_id} is not there"
            assert span.ledger_id == ledger_id, f"ledger {ledger_id} is not the first one"
            assert not span.is_open, f"ledger {ledger_id} is open"
        del self._spans[: len(wanted)]
        self.size_bytes -= sum(span.size_bytes for span in trimmed)
        if self._last in trimmed:
            self._last = None

    # positions

    def first_position(self) -> Position:
        """The first entry there is or will be."""
        if not self._spans:
            return Position(self._confirmed_ledger, self._confirmed_entry + 1)
        return Position(self._first().ledger_id, 0)

    def next_position(self, position: Position) -> Position:
        """The place after it. At the end of the newest ledger that is the entry after its last one."""
        span = self.span(position.ledger_id)
        entry_id = max(position.entry_id + 1, 0)
        if span is not None and (entry_id < span.entries or span is self._last):
            return Position(position.ledger_id, entry_id)
        following = self.span_after(position.ledger_id)
        return Position(position.ledger_id, entry_id) if following is None else Position(following.ledger_id, 0)

    def previous_position(self, position: Position) -> Position:
        """The last entry before it; before the first entry: entry -1 of the first ledger."""
        span = self.span(position.ledger_id)
        if span is not None and position.entry_id > 0 and span.entries:
            return Position(position.ledger_id, min(position.entry_id, span.entries) - 1)
        before = self.span_before(position.ledger_id)
        if before is not None and not before.entries:  # the open one
            before = self.span_before(before.ledger_id)
        if before is not None:
            return Position(before.ledger_id, before.entries - 1)
        return Position(self._first().ledger_id if self._spans else position.ledger_id, -1)

    def mark_before(self, position: Position) -> Position:
        """Mark-delete position of a reader whose first entry is `position`, clamped to the log."""
        last = self.last_confirmed
        return last if position > last else self.previous_position(position)

    def locate(self, position: Position) -> Position | None:
        """The first entry at or after `position`; None when there is none yet."""
        span = self.span(position.ledger_id)
        if span is not None and max(position.entry_id, 0) < span.entries:
            return position if position.entry_id >= 0 else Position(position.ledger_id, 0)
        following = self.span_after(position.ledger_id)
        return Position(following.ledger_id, 0) if following is not None and following.entries else None

    def entries_through(self, position: Position) -> int:
        """The index after `position`: of the first entry that comes later."""
        ledger_id, entry_id = position
        span = self.span(ledger_id)
        if span is not None:
            return span.first_index + min(max(entry_id + 1, 0), span.entries)
        before = self.span_before(ledger_id)
        return self.first_index if before is None else before.end_index

    def count_between(self, first: Position, last: Position) -> int:
        if last < first:
            return 0
        return self.entries_through(last) - self.entries_through(Position(first.ledger_id, first.entry_id - 1))

    def position_at(self, index: int) -> Position:
        """The position of the entry with that index."""
        if not self.first_index <= index < self._end_index:
            raise IndexError(f"no entry has index {index}")
        span = self._spans[bisect_right(self._spans, index, key=_first_index) - 1]
        return Position(span.ledger_id, index - span.first_index)

    def check_invariants(self) -> None:
        index = self.first_index
        for span in self:
            assert span.first_index == index, "indexes follow one another"
            assert span.entries or span.is_open, "a closed ledger has entries"
            assert not span.is_open or span is self._last, "only the last ledger is open"
            index += span.entries
        assert index == self._end_index
        assert self.size_bytes == sum(span.size_bytes for span in self)

    def _check_newest(self, ledger_id: int) -> None:
        last = self._last
        assert last is None or (not last.is_open and last.ledger_id < ledger_id), f"ledger {ledger_id} is not the newest"

    def _add(self, span: LedgerSpan) -> None:
        self._spans.append(span)
        self._last = span

    def _first(self) -> LedgerSpan:
        return self._spans[0]


def _ledger_id(span: LedgerSpan) -> int:
    return span.ledger_id


def _first_index(span: LedgerSpan) -> int:
    return span.first_index
