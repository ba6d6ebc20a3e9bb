"""Acknowledgements: the entries that one cursor has acknowledged. Pure: the machine behind every cursor.

Owns mark-delete (everything at or before it is acknowledged), the holes beyond it and partly acknowledged batches. Reads the
ledgers' sequence and never changes it; its owner calls `ledgers_trimmed`. Persists nothing: `version` grows with each change.

Invariants: the entry after mark-delete is not acknowledged; no hole is at or before it; no entry is both a hole and a batch.
"""

from collections.abc import Iterable, Mapping, Sequence

from pyroaring import BitMap

from managed_ledger.errors import InvalidCursorPosition
from managed_ledger.ledgers.sequence import LedgerSequence, LedgerSpan
from wire.kernels.delivery_rows import AcknowledgementsRow
from wire.position import Position

from .batch_indexes import BatchIndexes, Words
from .holes.holes import NONE, Holes
from .holes.segment_save import Segment
from .state import StoredSegment


class Acknowledgements(AcknowledgementsRow):
    """The place of one cursor."""

    __slots__ = ()

    _batches: BatchIndexes
    _holes: Holes
    _ledgers: LedgerSequence
    _mark_delete: Position

    def __init__(self, ledgers: LedgerSequence, mark_delete: Position) -> None:
        self._ledgers = ledgers
        self._mark_delete = mark_delete
        self._holes = Holes()
        self._batches = BatchIndexes()
        self.version = 0

    def restore(
        self,
        holes: Mapping[int, BitMap],
        batches: Iterable[tuple[Position, Words]],
        segments: Sequence[StoredSegment] = (),
    ) -> None:
        """Restore the state stored with mark-delete, without the ledgers that have been trimmed since."""
        if segments:
            self._holes.restore_segments(segments)
        for ledger_id, entry_ids in holes.items():
            self._holes.add(ledger_id, entry_ids)
        for position, words in batches:
            self._batches.restore(position, words)
        self._fit()

    def load(
        self, start: Position, stored: Mapping[int, BitMap], added: Mapping[int, BitMap], *, is_whole: bool = True
    ) -> None:
        """The segment that begins there came from disk; not `is_whole`: what could be read of it."""
        fresh = self._holes.load(start, stored, added, is_whole=is_whole)
        for ledger_id, entry_ids in fresh.items():
            self._batches.remove(ledger_id, entry_ids)
        if fresh:
            if any(not self._fits(ledger_id) for ledger_id in fresh):
                self._holes.keep_only({span.ledger_id: span.entries for span in self._ledgers})
            self._holes.remove_through(self._mark_delete)
            self._advance()

    def _fits(self, ledger_id: int) -> bool:
        span, entry_ids = self._ledgers.span(ledger_id), self._holes.of(ledger_id)
        return span is not None and (not entry_ids or entry_ids.max() < span.entries)

    # questions

    @property
    def mark_delete(self) -> Position:
        return self._mark_delete

    @property
    def holes(self) -> Holes:
        return self._holes

    @property
    def batches(self) -> BatchIndexes:
        return self._batches

    def first_unacknowledged(self) -> Position:
        return self._ledgers.next_position(self._mark_delete)

    def is_acknowledged(self, position: Position) -> bool:
        return position <= self._mark_delete or position in self._holes

    def is_untouched(self, ledger_id: int, first: int, last: int) -> bool:
        """Whether these entries lie beyond mark-delete, and certainly nothing of them is acknowledged."""
        mark = self._mark_delete
        if ledger_id < mark.ledger_id or (ledger_id == mark.ledger_id and first <= mark.entry_id):
            return False
        return not self._holes.may_have(ledger_id, first, last) and not len(self._batches)

    def backlog_entries(self) -> int:
        ledgers = self._ledgers
        count = ledgers.end_index - ledgers.entries_through(self._mark_delete) - self._holes.count
        return max(count, 0) if self._holes.has_absent else count

    # acknowledgements

    def acknowledge_entries(self, ledger_id: int, entry_ids: BitMap) -> BitMap:
        """Acknowledge the entries; returns those that are new. All or nothing when one does not exist yet.

        One that is acknowledged in a segment on disk counts as new until that is loaded.
        """
        mark = self._mark_delete
        if not entry_ids or ledger_id < mark.ledger_id:
            return BitMap()
        self._check_exists(Position(ledger_id, entry_ids.max()))
        span = self._ledgers.span(ledger_id)
        if span is None:
            return BitMap()
        fresh = entry_ids
        if ledger_id == mark.ledger_id and fresh.min() <= mark.entry_id:
            fresh = fresh.copy()
            fresh.remove_range(0, mark.entry_id + 1)
        if fresh and fresh.max() >= span.entries:
            fresh = fresh.copy()
            fresh.remove_range(span.entries, 1 << 32)
        is_swallowed = bool(fresh) and self._swallow(ledger_id, fresh, span)
        if not is_swallowed:
            fresh = self._holes.add(ledger_id, fresh)
        if fresh:
            self._batches.remove(ledger_id, fresh)
            if not is_swallowed:
                self._advance()
            self.version += 1
        return fresh

    def acknowledge_entry(self, ledger_id: int, entry_id: int) -> bool:
        """Acknowledge one plain entry (`acknowledge_entries`): of the open ledger, mark-delete in it, holes all in memory, no
        batch in parts, and not acknowledged before. False: nothing has changed."""
        mark, holes = self._mark_delete, self._holes
        if ledger_id != mark.ledger_id or entry_id <= mark.entry_id or holes.pages is not None or len(self._batches):
            return False
        if not self._ledgers.is_open_through(ledger_id, entry_id):
            return False
        if entry_id != mark.entry_id + 1:
            if not holes.add_entry(ledger_id, entry_id):
                return False
        elif holes.count:
            holes.add_entry(ledger_id, entry_id)
            self._advance()
        else:
            self._mark_delete = Position(ledger_id, entry_id)
        self.version += 1
        return True

    def _swallow(self, ledger_id: int, entry_ids: BitMap, span: LedgerSpan) -> bool:
        """The common case: a run right after mark-delete, with no hole in it or right behind it, never becomes holes."""
        first, last = entry_ids.min(), entry_ids.max()
        if last - first + 1 != len(entry_ids) or self._ledgers.next_position(self._mark_delete) != (ledger_id, first):
            return False
        if self._holes.may_have(ledger_id, first, last + 1) or (self._holes.count and last + 1 >= span.entries):
            return False
        self._mark_delete = Position(ledger_id, last)
        self._holes.passed(self._mark_delete)
        return True

    def acknowledge_batch_indexes(self, position: Position, ack_set: Sequence[int], batch_size: int) -> bool:
        """Whether that made the entry wholly acknowledged."""
        self._check_exists(position)
        if self.is_acknowledged(position) or not self._has(position):
            return False
        is_changed, is_whole = self._batches.acknowledge(position, ack_set, batch_size)
        if is_whole:
            return bool(self.acknowledge_entries(position.ledger_id, BitMap([position.entry_id])))
        if is_changed:
            self.version += 1
        return False

    def acknowledge_cumulative(self, position: Position, ack_set: Sequence[int], batch_size: int) -> None:
        """Everything up to and including `position`; with an ack set that leaves something, up to that part of the batch."""
        self._check_exists(position)
        if position <= self._mark_delete:
            return
        is_partial = any(ack_set)
        target = self._ledgers.previous_position(position) if is_partial else self._clamped(position)
        if target > self._mark_delete:
            self._move(target)
            self.version += 1
        if is_partial:
            self.acknowledge_batch_indexes(position, ack_set, batch_size)

    def reset(self, mark_delete: Position) -> None:
        """Forget everything; only what is at or before `mark_delete` is acknowledged."""
        self._mark_delete = mark_delete
        self._holes.clear()
        self._batches.clear()
        self.version += 1

    def ledgers_trimmed(self) -> None:
        """A prefix of the ledgers is gone: mark-delete must not stay in it."""
        if self._ledgers.span(self._mark_delete.ledger_id) is None:
            self._fit()

    def check_invariants(self) -> None:
        after = self.first_unacknowledged()
        assert after not in self._holes, f"{after} is acknowledged right after mark-delete {self._mark_delete}"
        self._holes.check_invariants()
        self._batches.check_invariants()
        for ledger_id, entry_ids in self._holes.items():
            assert Position(ledger_id, entry_ids.min()) > self._mark_delete, "a hole at or before mark-delete"
        for position in self._batches:
            assert not self.is_acknowledged(position), f"batch {position} is acknowledged as a whole and in part"
        assert self.backlog_entries() >= 0

    def missing(self, ledger_id: int, first: int, last: int) -> list[Segment]:
        """The segments with these entries that have to be loaded before anything is asked about them."""
        pages = self._holes.pages
        return [] if pages is None else pages.missing(Position(ledger_id, first), Position(ledger_id, last))

    def segments(self, ledger_id: int, first: int, last: int) -> list[Segment]:
        """The segments with these entries; none while there are no segments."""
        pages = self._holes.pages
        return [] if pages is None else pages.between(Position(ledger_id, first), Position(ledger_id, last))

    def _check_exists(self, position: Position) -> None:
        """Refuse an entry after the last one: it cannot exist yet."""
        if position > self._ledgers.last_confirmed:
            raise InvalidCursorPosition(f"{position} is beyond the last entry {self._ledgers.last_confirmed}")

    def _has(self, position: Position) -> bool:
        span = self._ledgers.span(position.ledger_id)
        return span is not None and 0 <= position.entry_id < span.entries

    def _clamped(self, position: Position) -> Position:
        """The last entry at or before it."""
        return self._ledgers.previous_position(Position(position.ledger_id, position.entry_id + 1))

    def _move(self, mark_delete: Position) -> None:
        self._mark_delete = mark_delete
        self._holes.remove_through(mark_delete)
        self._batches.remove_through(mark_delete)
        self._advance()

    def _advance(self) -> None:
        """Let mark-delete swallow the holes that begin right after it, over the ends of ledgers."""
        if not self._holes.count:
            return
        ledgers, holes = self._ledgers, self._holes
        while True:
            ledger_id, first = ledgers.next_position(self._mark_delete)
            end = holes.run_end(ledger_id, first)
            if end < first:
                holes.want_at(ledger_id, first)
                return
            self._mark_delete = Position(ledger_id, end)
            holes.remove_through(self._mark_delete)

    def _fit(self) -> None:
        """Make it agree with the ledgers there are."""
        ledgers = self._ledgers
        if ledgers.span(self._mark_delete.ledger_id) is None:
            following = ledgers.span_after(self._mark_delete.ledger_id)
            if following is not None:
                self._mark_delete = Position(following.ledger_id, -1)
        self._holes.keep_only({span.ledger_id: span.entries for span in ledgers})
        self._holes.remove_through(self._mark_delete)
        self._batches.remove_through(self._mark_delete)
        self._advance()
        self.version += 1

    def acknowledged_in(self, ledger_id: int) -> BitMap:
        return self._holes.of(ledger_id) if self._holes.count else NONE
