"""A cursor with segments beside a naive set of acknowledged messages, on a disk that is a list of entries. No driver.

Containers and segments are made tiny, so that a few entries are many segments. A crash may come between any two entries of a
save: what was acknowledged since the last whole save is then forgotten, and nothing else.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

from pyroaring import BitMap

from managed_ledger.cursor.acknowledgements import Acknowledgements
from managed_ledger.cursor.holes import segment_spans as spans
from managed_ledger.cursor.holes import segments as pages
from managed_ledger.cursor.holes.segment_format_v1 import EntryKind, decode_segment, encode_marker
from managed_ledger.cursor.holes.segment_rows import ROW
from managed_ledger.cursor.holes.segment_save import SavePlan, Segment
from managed_ledger.cursor.recovery import CursorRecovery, ReadBack, Recovered
from managed_ledger.cursor.state import CursorState, encode_position
from managed_ledger.ledgers.sequence import LedgerSequence
from wire.position import Position

NAME = "the-cursor"
BATCH = 3
ALL = (1 << BATCH) - 1
RANGES_MAX = 3
Left = dict[Position, int]


@contextmanager
def tiny() -> Iterator[None]:
    with (
        patch.object(spans, "CONTAINER", 4),
        patch.object(spans, "SEGMENT_WEIGHT_MAX", 48),
        patch.object(pages, "ADDITION_SHARE", 1),
        patch.object(pages, "_ENTRY_BYTES", 12),
        patch.object(pages, "REWRITE_BYTES", 100),
    ):
        yield


class Model:
    """`left`: of each entry the messages that are not acknowledged; `stored`: as of the last whole save."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.ledgers = LedgerSequence()
        self.disk: list[bytes] = []
        self.former: list[pages.HolePages] = []
        self.heard: dict[Position, None] = {}
        self.left: Left = {}
        for ledger_id in (2, 3, 7):
            size = self.rng.randint(1, 14)
            self.ledgers.add_closed(ledger_id, size, size, 1)
            self.left |= {Position(ledger_id, entry): ALL for entry in range(size)}
        self.ledgers.open(9)
        self.cursor = Acknowledgements(self.ledgers, Position(2, -1))
        self.stored = dict(self.left)
        self.write_all()

    # acknowledgements

    def acknowledge(self) -> None:
        ledger_id = self.rng.choice([span.ledger_id for span in self.ledgers])
        entries = [position.entry_id for position in self.left if position.ledger_id == ledger_id]
        chosen = BitMap(self.rng.sample(entries, self.rng.randint(0, min(len(entries), 6))))
        was_exact = not self.absent
        fresh = self.cursor.acknowledge_entries(ledger_id, chosen)
        new = {entry for entry in chosen if self.left[Position(ledger_id, entry)]}
        assert new <= set(fresh) <= set(chosen)
        if was_exact:
            assert new == set(fresh)
        for entry in chosen:
            self.left[Position(ledger_id, entry)] = 0

    def acknowledge_part(self) -> None:
        if self.left:
            position, words = self.rng.choice(list(self.left)), self.rng.randint(0, ALL)
            self.cursor.acknowledge_batch_indexes(position, (words,), BATCH)
            self.left[position] &= words

    def acknowledge_through(self) -> None:
        if self.left and self.rng.random() < 0.3:
            position = self.rng.choice(list(self.left))
            self.cursor.acknowledge_cumulative(position, (), 0)
            self.left |= {each: 0 for each in self.left if each <= position}

    def reset(self) -> None:
        if self.left and self.rng.random() < 0.2:
            self.former += [] if self.cursor.holes.pages is None else [self.cursor.holes.pages]
            position = self.rng.choice(list(self.left))
            self.cursor.reset(self.ledgers.previous_position(position))
            self.left = {each: 0 if each < position else ALL for each in self.left}

    def append(self) -> None:
        ledger_id, count = self.ledgers.open_ledger_id, self.rng.randint(1, 9)
        span = self.ledgers.span(ledger_id or 0)
        assert span is not None
        new = {Position(span.ledger_id, entry): ALL for entry in range(span.entries, span.entries + count)}
        self.ledgers.confirm(count, count)
        self.left |= new
        self.stored |= new

    def roll(self) -> None:
        ledger_id = self.ledgers.open_ledger_id or 0
        span = self.ledgers.span(ledger_id)
        if span is not None and span.entries:
            self.ledgers.close_open(2)
            self.ledgers.open(ledger_id + self.rng.randint(1, 3))

    def trim(self) -> None:
        """Nothing goes that a restart would still want: only what the stored mark-delete has passed."""
        first = next((position for position, left in self.stored.items() if left), Position(1 << 40, 0))
        consumed = self.ledgers.entries_through(self.cursor.mark_delete)
        gone = [
            span.ledger_id
            for span in self.ledgers
            if not span.is_open and span.end_index <= consumed and span.ledger_id < first.ledger_id
        ]
        self.ledgers.remove(gone)
        self.cursor.ledgers_trimmed()
        self.left = {position: left for position, left in self.left.items() if position.ledger_id not in gone}
        self.stored = {position: left for position, left in self.stored.items() if position.ledger_id not in gone}

    # segments in and out

    @property
    def absent(self) -> int:
        return 0 if self.cursor.holes.pages is None else self.cursor.holes.pages.absent

    def load(self, chosen: list[Segment]) -> None:
        for segment in chosen:
            stored = self.entry(EntryKind.SEGMENT, segment.start, segment.entry_id)
            added = self.entry(EntryKind.ADDITION, segment.start, segment.addition_id)
            self.cursor.load(segment.start, stored, added)

    def entry(self, kind: EntryKind, start: Position, entry_id: int) -> dict[int, BitMap]:
        return {} if entry_id < 0 else decode_segment(NAME, kind, start, self.disk[entry_id])

    def load_some(self) -> None:
        if self.left:
            position = self.rng.choice(list(self.left))
            self.load(self.cursor.missing(position.ledger_id, position.entry_id, position.entry_id))
            assert self.cursor.is_acknowledged(position) == (self.left[position] == 0)

    def load_wanted(self) -> None:
        while (found := self.cursor.holes.pages) is not None and found.wanted:
            self.load([segment for start in list(found.wanted) if (segment := found.segment(start)) is not None])

    def load_all(self) -> None:
        found = self.cursor.holes.pages
        if found is not None:
            self.load(found.missing(spans.FIRST, spans.END))
        self.load_wanted()

    def evict(self) -> None:
        found = self.cursor.holes.pages
        for each in [*self.former, *([] if found is None else [found])]:  # the cache may hear of a reset late
            for start in list(self.starts(each)):
                if self.rng.random() < 0.5:
                    each.evict(start)

    def starts(self, found: pages.HolePages) -> list[Position]:
        """Starts of all segments seen so far: the cache may know them."""
        self.heard |= dict.fromkeys(found._segments)
        return list(self.heard)

    # saves

    def save(self) -> None:
        self.write(begin=False)

    def roll_over(self) -> None:
        self.write(begin=True)

    def write(self, begin: bool) -> None:
        while (found := self.cursor.holes.pages) is not None and (missing := found.missing_for_save(RANGES_MAX)):
            self.load(missing)
        holes = self.cursor.holes
        if not holes.has_absent and holes.range_count() <= RANGES_MAX:
            self.write_all()
        else:
            self.write_segments(begin)

    def state(self) -> CursorState:
        return CursorState(self.cursor.mark_delete, {}, self.cursor.batches.items(), {"p": -5})

    def write_all(self) -> None:
        machine, state = self.cursor, self.state()
        whole = CursorState(state.mark_delete, machine.holes.copy(), state.batches, state.properties)
        if self.disk and self.rng.random() < 0.1:
            return  # the write failed
        self.disk.append(encode_position(whole, as_long_array=True)[0])
        self.stored = dict(self.left)
        if machine.holes.pages is not None:
            machine.holes.end_pages(machine.holes.pages)

    def write_segments(self, begin: bool) -> None:
        found = self.cursor.holes.begin_pages()
        plan = found.plan(self.state(), whole=begin)
        disk, before = ([], dict(self.left)) if begin else (self.disk, dict(self.left))
        entry_ids = []
        for write in plan.writes:
            payload = self.disk[write.copy_of] if write.payload is None else write.payload
            entry_ids.append(len(disk))
            disk.append(payload)
            if self.rng.random() < 0.1:
                self.acknowledge()  # while the save is under way
        if self.rng.random() < 0.2:  # the marker is not written, and nothing counts that was
            self.marker_failed(found, plan)
            return
        self.finish(found, plan, entry_ids, disk, before)

    def marker_failed(self, found: pages.HolePages, plan: SavePlan) -> None:
        if self.rng.random() < 0.5:
            self.restart()
        else:
            found.failed(plan)

    def finish(self, found: pages.HolePages, plan: SavePlan, entry_ids: list[int], disk: list[bytes], before: Left) -> None:
        disk.append(encode_marker(NAME, plan.state, plan.rows(entry_ids)))
        self.disk = disk
        self.stored = {position: before.get(position, ALL) for position in self.left}
        found.stored(plan, entry_ids)

    def restart(self) -> None:
        machine = CursorRecovery(NAME, len(self.disk) - 1)
        found = machine.begin()
        while isinstance(found, ReadBack):
            found = machine.entries_read(found.first, self.disk[found.first : found.last + 1])
        assert isinstance(found, Recovered)
        assert found.state.properties == {"p": -5}
        self.cursor = Acknowledgements(self.ledgers, found.state.mark_delete)
        self.cursor.restore(found.state.holes, found.state.batches, found.state.segments)
        self.left = dict(self.stored)

    # what must hold

    def check(self) -> None:
        """Check that no answer is wrong about an acknowledgement, and that answers are exact for what is in memory."""
        self.cursor.check_invariants()
        self.check_kept()
        for position, left in self.left.items():
            is_known = not self.cursor.missing(position.ledger_id, position.entry_id, position.entry_id)
            if is_known:
                assert self.cursor.is_acknowledged(position) == (left == 0), position
            else:
                assert left == 0 or not self.cursor.is_acknowledged(position), position
        self.load_wanted()
        assert self.cursor.backlog_entries() == sum(1 for left in self.left.values() if left)
        if self.rng.random() < 0.1:
            self.check_loaded()

    def check_kept(self) -> None:
        """Check that the state kept between saves agrees with the segments."""
        if (found := self.cursor.holes.pages) is not None:
            assert found._range_sum == sum(each.ranges for each in found._segments.values())
            assert set(found._entryless) == {start for start, each in found._segments.items() if each.entry_id < 0}
            rows = [Position(row[0], row[1]) for row in ROW.iter_unpack(found._rows.packed)]
            assert rows == [start for start, each in found._segments.items() if each.entry_id >= 0] == found._rows._starts

    def check_loaded(self) -> None:
        self.load_all()
        self.cursor.check_invariants()
        for position, left in self.left.items():
            assert self.cursor.is_acknowledged(position) == (left == 0), position
            words = self.cursor.batches.get(position)
            assert (words or (0 if left == 0 else ALL,))[0] == left, position
        first = next((position for position in sorted(self.left) if self.left[position]), None)
        assert first is None or self.cursor.first_unacknowledged() == first

    def play(self, steps: int) -> None:
        names = ["acknowledge"] * 6 + ["acknowledge_part", "acknowledge_through", "reset", "append", "append", "roll", "trim"]
        names += ["load_some", "evict", "evict", "save", "save", "save", "roll_over", "restart"]
        for _ in range(steps):
            step: Callable[[], None] = getattr(self, self.rng.choice(names))
            step()
            self.check()
        self.restart()
        self.check_loaded()
