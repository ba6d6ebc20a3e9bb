"""HolePages: the holes of one cursor as segments, some of which are on disk only. Pure.

Owns the partition: segments follow one another without gap, from the first position to the last there can be, each up to the
next one's start. A segment is stored as one entry, and later acknowledgements in it as another one, its addition, until that
is no longer small. Acknowledgements in a segment that is not resident are kept all the same, and the segment is
`wanted`: until it is loaded the cursor may take an acknowledged entry for a new one, never the other way round.

Invariants: `unsaved` has every acknowledgement that neither is stored nor belongs to a save under way (`_in_flight`); a segment
that is not resident has an entry; `absent` is the number of these. The cost of a save depends on the changes: `_rows` has the
marker's row of each segment with an entry, `_entryless` the others, `_range_sum` is kept.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyroaring import BitMap
from sortedcontainers import SortedDict

from wire.position import Position

from ..state import CursorState, StoredSegment
from .segment_format_v1 import EntryKind, Span, encode_segment
from .segment_rows import MarkerRows
from .segment_save import NO_ENTRY, SavePlan, Segment, Write
from .segment_spans import END, FIRST, cuts, limits, next_bit, parts, ranges, weight

ADDITION_SHARE = 8
"""An addition that would be heavier than this part of its segment becomes a new segment entry instead,"""
REWRITE_BYTES = 64 << 10
"""but only so much of that is done in one save, so that saves stay small where acknowledgements are spread evenly."""
_ENTRY_BYTES = 64
"""Size of an addition, apart from its two bytes for each entry."""


class HolePages:
    """`known`: the acknowledged entries in memory by ledger, a SortedDict, owned by `Holes`."""

    def __init__(self, known: Any, stored: Sequence[StoredSegment] = ()) -> None:
        self._known = known
        self._segments: Any = SortedDict()
        self._unsaved: Any = SortedDict()
        self._in_flight: Any = SortedDict()
        self.wanted: dict[Position, None] = {}
        self.absent = 0
        self.passed: list[Position] = []
        """Segments that were in memory and that mark-delete has passed. The caller that tells the cache clears it."""
        self.is_held = False
        """While a save is under way, from its loading on: nothing is evicted."""
        self._rows = MarkerRows()
        self._entryless: dict[Position, None] = {FIRST: None}
        self._range_sum = 0
        self._segments[FIRST] = Segment(FIRST)
        for row in stored:
            self._restore(row)
        self._note_first()

    def _restore(self, row: StoredSegment) -> None:
        segment = self._segments[row.start] = Segment(row.start)
        segment.entry_id, segment.addition_id = row.entry_id, row.addition_id
        segment.count, segment.ranges, segment.weight = row.count, row.ranges, row.weight
        segment.is_resident = False
        self.absent += 1
        self._rows.put(row)
        self._entryless.pop(row.start, None)
        self._range_sum += row.ranges

    # what there is

    def __len__(self) -> int:
        return len(self._segments)

    @property
    def absent_count(self) -> int:
        """Entries of the segments that are not resident."""
        return sum(each.count for each in self._segments.values() if not each.is_resident) if self.absent else 0

    def segment(self, start: Position) -> Segment | None:
        found: Segment | None = self._segments.get(start)
        return found

    def span(self, segment: Segment) -> Span:
        place = self._segments.bisect_right(segment.start)
        return Span(segment.start, self._segments.keys()[place] if place < len(self._segments) else END)

    def missing(self, first: Position, last: Position) -> list[Segment]:
        """The segments between these positions that are not resident."""
        return [each for each in self.between(first, last) if not each.is_resident] if self.absent else []

    def between(self, first: Position, last: Position) -> list[Segment]:
        """The segments that have these positions."""
        begin = self._containing(first).start
        return [self._segments[start] for start in self._segments.irange(begin, max(begin, last))]

    def missing_for_save(self, ranges_max: int) -> list[Segment]:
        """Segments that must be resident before a save: changed ones, and all if the holes may fit Apache's format."""
        if not self.absent:
            return []
        if self.may_fit(ranges_max):
            return [segment for segment in self._segments.values() if not segment.is_resident]
        starts = {start: None for start in self.wanted if start in self._segments} | self._touched(self._unsaved)
        return [self._segments[start] for start in starts if not self._segments[start].is_resident]

    def may_fit(self, ranges_max: int) -> bool:
        """Whether there may be no more ranges than that. Counts what changed only where the rest does not decide it."""
        changed = self._touched(self._unsaved) | self._entryless
        changed[self._first.start] = None
        settled = self._range_sum - sum(self._segments[start].ranges for start in changed)
        return settled - len(self._segments) + 1 <= ranges_max and self.ranges_at_least() <= ranges_max

    def ranges_at_least(self) -> int:
        """A range over the ends of segments counts in each of them."""
        changed = self._touched(self._unsaved)
        changed[self._first.start] = None
        for segment in map(self._segments.__getitem__, changed | self._entryless):
            if segment.is_resident:
                self._set_ranges(segment, ranges(parts(self._known, self.span(segment))))
        return self._range_sum - len(self._segments) + 1

    def range_sum(self) -> int:
        """Ranges of all segments, as of the last save."""
        return self._range_sum

    def _set_ranges(self, segment: Segment, count: int) -> None:
        if count != segment.ranges:
            self._range_sum += count - segment.ranges
            segment.ranges = count
            if segment.entry_id >= 0:
                self._rows.put(segment.row())

    # changes

    def acknowledged(self, ledger_id: int, entry_ids: BitMap) -> None:
        unsaved = self._unsaved.get(ledger_id)
        if unsaved is None:
            self._unsaved[ledger_id] = entry_ids.copy()
        else:
            unsaved |= entry_ids
        if not self.is_known(ledger_id, entry_ids.max()):
            self._want(self._touched({ledger_id: entry_ids}))

    def want_at(self, ledger_id: int, entry_id: int) -> None:
        """Mark-delete came to it: whether it goes on cannot be known without this segment."""
        if not self.is_known(ledger_id, entry_id):
            self._want([self._containing(Position(ledger_id, entry_id)).start])

    def removed_through(self, position: Position) -> int:
        """Mark-delete is here now. How many entries went with segments that were not resident."""
        gone = 0 if position < self._first_end else self._drop_before(Position(position.ledger_id, position.entry_id + 1))
        if self.absent and not self._first.is_resident and position >= self._first.start:
            self._want([self._first.start])
        if self._unsaved:
            self._drop_unsaved(position)
        return gone

    def _drop_unsaved(self, position: Position) -> None:
        while len(self._unsaved) > 1 and self._unsaved.peekitem(0)[0] < position.ledger_id:
            self._unsaved.popitem(0)
        unsaved = self._unsaved.get(position.ledger_id)
        if unsaved and position.entry_id >= 0:
            unsaved.remove_range(0, position.entry_id + 1)

    def _drop_before(self, after: Position) -> int:
        segments, gone = self._segments, 0
        while len(segments) > 1 and segments.peekitem(1)[0] <= after:
            segment: Segment = segments.popitem(0)[1]
            self.wanted.pop(segment.start, None)
            self._entryless.pop(segment.start, None)
            self._rows.discard(segment.start)
            self._range_sum -= segment.ranges
            if segment.is_resident:
                self.passed.append(segment.start)
            else:
                self.absent -= 1
                gone += segment.count
        self._note_first()
        return gone

    def _note_first(self) -> None:
        """The segment that mark-delete is in, and the last place in it: what happens there costs one comparison."""
        self._first: Segment = self._segments.peekitem(0)[1]
        second = self._segments.peekitem(1)[0] if len(self._segments) > 1 else END
        self._first_end = Position(second.ledger_id, second.entry_id - 1)

    def is_known(self, ledger_id: int, last: int) -> bool:
        """Whether everything from mark-delete to this entry is in memory for certain."""
        return not self.absent or (self._first.is_resident and (ledger_id, last) <= self._first_end)

    def loaded(
        self, start: Position, stored: Mapping[int, BitMap], added: Mapping[int, BitMap], *, is_whole: bool
    ) -> dict[int, BitMap]:
        """Make the segment resident. Returns its entries that were not known, which `known` has now.

        Not `is_whole`: an entry of it cannot be read, so that the next save writes it anew.
        """
        segment: Segment | None = self._segments.get(start)
        if segment is None or segment.is_resident:
            return {}
        segment.is_resident = True
        segment.added = {ledger_id: entry_ids.copy() for ledger_id, entry_ids in added.items()}
        self.absent -= 1
        self.wanted.pop(start, None)
        if not is_whole:
            self._drop_entry(segment)
        fresh: dict[int, BitMap] = {}
        for ledger_id in sorted({*stored, *added}):
            entry_ids = stored.get(ledger_id, BitMap()) | added.get(ledger_id, BitMap())
            if not entry_ids:
                continue
            known = self._known.setdefault(ledger_id, BitMap())
            fresh[ledger_id] = entry_ids - known
            known |= entry_ids
        return fresh

    def evict(self, start: Position) -> bool:
        """Whether it is on disk only now, or no more; False: it is not stored as it is in memory."""
        segment: Segment | None = self._segments.get(start)
        if segment is None or not segment.is_resident:
            return True
        span = self.span(segment)
        if segment.entry_id < 0 or self.is_held or parts(self._unsaved, span):
            return False
        gone = parts(self._known, span)
        for ledger_id in gone:
            first, last = limits(span, ledger_id)
            self._known[ledger_id].remove_range(first, last + 1)
            if not self._known[ledger_id]:
                del self._known[ledger_id]
        segment.count = sum(map(len, gone.values()))
        segment.added = {}
        segment.is_resident = False
        self._rows.put(segment.row())
        self.absent += 1
        return True

    def dissolve(self) -> None:
        """The cursor has no segments any more. The cache may still know of these: from now on there is nothing to evict."""
        self._known, self._segments = SortedDict(), SortedDict()
        self._unsaved, self._in_flight = SortedDict(), SortedDict()
        self._rows, self._range_sum = MarkerRows(), 0
        self._entryless.clear()
        self.passed.clear()
        self.wanted.clear()
        self.absent = 0

    # saving

    def plan(self, state: CursorState, *, whole: bool) -> SavePlan:
        """Plan a save of all changes; `whole`: everything, for a new ledger. Until `stored` or `failed` there is no other plan.

        Changed segments must be resident (`missing_for_save`).
        """
        changed = dict.fromkeys(self._segments) if whole else self._touched(self._unsaved) | self._entryless
        self.is_held = True
        writes: list[Write] = []
        rewritten = 0
        for segment in self._cut(changed):
            for write in self._writes(segment, whole=whole, room=REWRITE_BYTES - rewritten):
                writes.append(write)
                rewritten += len(write.payload or b"") if write.kind is EntryKind.SEGMENT else 0
        if self._unsaved:
            self._in_flight, self._unsaved = self._unsaved, SortedDict()
        return SavePlan(state, writes, MarkerRows() if whole else self._rows.copy())

    def stored(self, plan: SavePlan, entry_ids: Sequence[int]) -> None:
        """The marker is written."""
        for write, entry_id in zip(plan.writes, entry_ids, strict=True):
            segment = write.segment
            if write.kind is EntryKind.ADDITION:
                segment.addition_id = entry_id
            else:
                segment.entry_id, segment.addition_id = entry_id, NO_ENTRY
                if write.payload is not None:
                    segment.added = {}
            if self._segments.get(segment.start) is segment:  # else mark-delete passed it, or a reset forgot it
                self._entryless.pop(segment.start, None)
                self._rows.put(segment.row())
        self._end_save()

    def failed(self, plan: SavePlan) -> None:
        """The save failed: its writes count for nothing."""
        for ledger_id, entry_ids in self._in_flight.items():
            self._unsaved.setdefault(ledger_id, BitMap()).update(entry_ids)
        self._end_save()

    def _end_save(self) -> None:
        if self._in_flight:
            self._in_flight = SortedDict()
        self.is_held = False

    def _cut(self, starts: Iterable[Position]) -> list[Segment]:
        """These segments, the too heavy ones cut."""
        found: list[Segment] = []
        for start in sorted(starts):
            segment = self._segments[start]
            found.append(segment)
            if not segment.is_resident:
                continue
            for cut in cuts(parts(self._known, self.span(segment))):
                if cut > start:
                    self._drop_entry(segment)
                    piece = self._segments[cut] = Segment(cut)
                    self._entryless[cut] = None
                    found.append(piece)
        self._note_first()
        return found

    def _writes(self, segment: Segment, *, whole: bool, room: int) -> list[Write]:
        if not segment.is_resident:
            changed = parts(self._unsaved, self.span(segment))
            assert whole, f"the segment at {segment.start} is to be written and is not resident"
            assert not changed, f"the segment at {segment.start} changed and is not resident"
            copies = [Write(segment, EntryKind.SEGMENT, None, segment.entry_id)]
            if segment.addition_id >= 0:
                copies.append(Write(segment, EntryKind.ADDITION, None, segment.addition_id))
            return copies
        span = self.span(segment)
        holes = parts(self._known, span)
        segment.count = sum(map(len, holes.values()))
        self._set_ranges(segment, ranges(holes))
        segment.weight = weight(holes)
        self._note_added(segment, span)
        if not holes:
            self._drop_entry(segment)
            self.passed.append(segment.start)
            return []
        added_bytes = _ENTRY_BYTES + 2 * sum(map(len, segment.added.values()))
        is_light = added_bytes * ADDITION_SHARE <= segment.weight or (added_bytes <= segment.weight and segment.weight > room)
        if segment.entry_id >= 0 and is_light and not whole:
            return [Write(segment, EntryKind.ADDITION, encode_segment(EntryKind.ADDITION, span, segment.added))]
        return [Write(segment, EntryKind.SEGMENT, encode_segment(EntryKind.SEGMENT, span, holes))]

    def _drop_entry(self, segment: Segment) -> None:
        """Drop a segment's stored entry: the next save writes the segment whole, unless it is empty."""
        segment.entry_id = segment.addition_id = NO_ENTRY
        self._entryless[segment.start] = None
        self._rows.discard(segment.start)

    def _note_added(self, segment: Segment, span: Span) -> None:
        for ledger_id, entry_ids in parts(self._unsaved, span).items():
            segment.added.setdefault(ledger_id, BitMap()).update(entry_ids)

    def check_invariants(self) -> None:
        """Check the invariants, for tests and simulations."""
        segments: Mapping[Position, Segment] = self._segments
        if not segments:
            return  # dissolved
        assert all(segment.start == start for start, segment in segments.items())
        assert self._first is self._segments.peekitem(0)[1]
        absent = [segment for segment in segments.values() if not segment.is_resident]
        assert self.absent == len(absent)
        assert all(segment.entry_id >= 0 for segment in absent), "a segment is neither in memory nor stored"
        assert self.wanted.keys() <= {segment.start for segment in absent}
        entryless = {start for start, segment in segments.items() if segment.entry_id < 0}
        assert self._entryless.keys() == entryless
        assert len(self._rows) == len(segments) - len(entryless)
        assert self._range_sum == sum(segment.ranges for segment in segments.values())
        self._rows.check_invariants()

    # segments by place

    def _containing(self, position: Position) -> Segment:
        found: Segment = self._segments.peekitem(max(self._segments.bisect_right(position) - 1, 0))[1]
        return found

    def _touched(self, by_ledger: Mapping[int, BitMap]) -> dict[Position, None]:
        """The starts of the segments that have one of these."""
        found: dict[Position, None] = {}
        for ledger_id, entry_ids in by_ledger.items():
            at = next_bit(entry_ids, 0)
            while at is not None:
                segment = self._containing(Position(ledger_id, at))
                found[segment.start] = None
                end = self.span(segment).end
                at = next_bit(entry_ids, max(end.entry_id, at + 1)) if end.ledger_id == ledger_id else None
        return found

    def _want(self, starts: Iterable[Position]) -> None:
        for start in starts:
            if not self._segments[start].is_resident:
                self.wanted[start] = None
