"""The acknowledgement machine against a naive twin: a set of acknowledged (ledger, entry, index)."""

import os
from copy import deepcopy

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from managed_ledger.cursor.acknowledgements import Acknowledgements
from managed_ledger.cursor.state import CursorState, StoredSegment, decode_node, decode_position, encode_node, encode_position
from managed_ledger.errors import InvalidCursorPosition
from managed_ledger.ledgers.sequence import LedgerSequence
from wire.position import Position

EXAMPLES = int(os.environ.get("INTERPULSE_EXAMPLES", "300"))
"""A nightly run sets it to some thousands."""
BATCH = 5
"""Messages of every entry."""
ALL = (1 << BATCH) - 1


class NaiveCursor:
    """Acknowledged messages of entries. Everything else is worked out by looking at all of them."""

    def __init__(self, entries: list[Position]) -> None:
        self.entries = entries
        self.left = dict.fromkeys(entries, ALL)

    def whole(self, position: Position) -> bool:
        return self.left[position] == 0

    def acknowledge(self, position: Position, unacknowledged: int = 0) -> None:
        if position in self.left:
            self.left[position] &= unacknowledged

    def acknowledge_through(self, position: Position, unacknowledged: int) -> None:
        for each in self.entries:
            if each < position:
                self.left[each] = 0
        self.acknowledge(position, unacknowledged)

    def backlog(self) -> int:
        return sum(1 for left in self.left.values() if left)

    def first_unacknowledged(self) -> Position | None:
        return next((position for position in self.entries if self.left[position]), None)


class Twins:
    def __init__(self, sizes: list[int]) -> None:
        self.ledgers = LedgerSequence()
        ids = [3 * place + 1 for place in range(len(sizes))]
        for ledger_id, size in zip(ids[:-1], sizes[:-1], strict=True):
            self.ledgers.add_closed(ledger_id, size, size * 10, 1)
        self.ledgers.open(ids[-1])
        if sizes[-1]:
            self.ledgers.confirm(sizes[-1], sizes[-1] * 10)
        self.real = Acknowledgements(self.ledgers, self.ledgers.previous_position(Position(-1, -1)))
        self.taken = self.left = 0
        """Entries that were acknowledged alone, the lean way and not."""
        self.naive = NaiveCursor([Position(i, e) for i, n in zip(ids, sizes, strict=True) for e in range(n)])

    def check(self) -> None:
        self.ledgers.check_invariants()
        self.real.check_invariants()
        assert self.real.backlog_entries() == self.naive.backlog()
        for position in self.naive.entries:
            assert self.real.is_acknowledged(position) == self.naive.whole(position)
            words = self.real.batches.get(position)
            left = self.naive.left[position]
            assert (words or (0 if left == 0 else ALL,))[0] == left
        first = self.naive.first_unacknowledged()
        if first is not None:
            assert self.real.first_unacknowledged() == first
        else:
            assert self.real.mark_delete == self.ledgers.last_confirmed or not self.naive.entries

    def individual(self, ledger_id: int, entries: list[int]) -> None:
        positions = [Position(ledger_id, entry) for entry in entries]
        if positions and max(positions) > self.ledgers.last_confirmed:
            with pytest.raises(InvalidCursorPosition):
                self.real.acknowledge_entries(ledger_id, BitMap(entries))
            return
        expected = {p.entry_id for p in positions if p in self.naive.left and not self.naive.whole(p)}
        asked = BitMap(entries)
        lean = deepcopy_of(self.real) if len(asked) == 1 else None
        before = state_of(self.real)
        assert set(self.real.acknowledge_entries(ledger_id, asked)) == expected
        assert asked == BitMap(entries), "the caller's bitmap is not changed"
        if lean is not None:
            is_taken = lean.acknowledge_entry(ledger_id, entries[0])
            assert state_of(lean) == (state_of(self.real) if is_taken else before)
            assert expected or not is_taken
            self.taken, self.left = self.taken + is_taken, self.left + (not is_taken)
        for position in positions:
            self.naive.acknowledge(position)

    def batch(self, position: Position, unacknowledged: int) -> None:
        if position > self.ledgers.last_confirmed:
            with pytest.raises(InvalidCursorPosition):
                self.real.acknowledge_batch_indexes(position, (unacknowledged,), BATCH)
            return
        was_whole = position not in self.naive.left or self.naive.whole(position)
        became_whole = self.real.acknowledge_batch_indexes(position, (unacknowledged,), BATCH)
        self.naive.acknowledge(position, unacknowledged)
        assert became_whole == (not was_whole and self.naive.whole(position))

    def cumulative(self, position: Position, unacknowledged: int) -> None:
        if position > self.ledgers.last_confirmed:
            with pytest.raises(InvalidCursorPosition):
                self.real.acknowledge_cumulative(position, (unacknowledged,), BATCH)
            return
        self.real.acknowledge_cumulative(position, (unacknowledged,) if unacknowledged else (), BATCH)
        self.naive.acknowledge_through(position, unacknowledged)

    def append(self, count: int) -> None:
        ledger_id = self.ledgers.open_ledger_id
        assert ledger_id is not None
        span = self.ledgers.span(ledger_id)
        assert span is not None
        for entry in range(span.entries, span.entries + count):
            self.naive.entries.append(Position(ledger_id, entry))
            self.naive.left[Position(ledger_id, entry)] = ALL
        self.ledgers.confirm(count, count)

    def roll(self) -> None:
        ledger_id = self.ledgers.open_ledger_id
        assert ledger_id is not None
        self.ledgers.close_open(2)
        self.ledgers.open(ledger_id + 3)

    def trim(self) -> None:
        consumed = self.ledgers.entries_through(self.real.mark_delete)
        gone = [span.ledger_id for span in self.ledgers if not span.is_open and span.end_index <= consumed]
        self.ledgers.remove(gone)
        self.real.ledgers_trimmed()
        self.naive.entries = [position for position in self.naive.entries if position.ledger_id not in gone]
        self.naive.left = {position: left for position, left in self.naive.left.items() if position.ledger_id not in gone}

    def restart(self, form: str) -> None:
        """Store it, and go on with what comes back."""
        machine = self.real
        state = CursorState(machine.mark_delete, machine.holes.copy(), machine.batches.items(), {"x": -1})
        if form == "node":
            found = decode_node("c", encode_node(-1, state, {"k": "v"}, 5)).state
            assert found is not None
        else:
            entry, dropped = encode_position(state, as_long_array=form == "long array")
            assert dropped == 0
            found = decode_position("c", entry)
        assert found.properties == {"x": -1}
        self.real = Acknowledgements(self.ledgers, found.mark_delete)
        self.real.restore(found.holes, found.batches)


def deepcopy_of(machine: Acknowledgements) -> Acknowledgements:
    """With the same ledgers, and a memory of its own."""
    return deepcopy(machine, {id(machine._ledgers): machine._ledgers})


def state_of(machine: Acknowledgements) -> object:
    holes = machine.holes
    return machine.mark_delete, machine.version, list(holes.copy().items()), holes.count, holes.pages, machine.batches.items()


LEDGER = st.integers(0, 16)
ENTRY = st.integers(0, 14)
POSITION = st.builds(Position, LEDGER, ENTRY)
ACK_SET = st.integers(0, ALL)
STEP = st.one_of(
    st.tuples(st.just("individual"), LEDGER, st.lists(ENTRY, max_size=8)),
    st.tuples(st.just("batch"), POSITION, ACK_SET),
    st.tuples(st.just("cumulative"), POSITION, st.one_of(st.just(0), ACK_SET)),
    st.tuples(st.just("append"), st.integers(1, 5)),
    st.tuples(st.just("roll")),
    st.tuples(st.just("trim")),
    st.tuples(st.just("restart"), st.sampled_from(["node", "long array", "ranges"])),
)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.integers(0, 12), min_size=1, max_size=4), st.lists(STEP, max_size=25))
def test_a_cursor_is_a_set_of_acknowledged_messages(sizes: list[int], steps: list[tuple[object, ...]]) -> None:
    twins = Twins(sizes)
    twins.check()
    for name, *arguments in steps:
        getattr(twins, str(name))(*arguments)
        twins.check()


def machine(*sizes: int) -> Acknowledgements:
    return Twins(list(sizes)).real


def test_an_entry_alone_is_plain_in_the_open_ledger_and_nowhere_else() -> None:
    twins = Twins([3, 4])
    for ledger_id, entry_id in ((4, 1), (1, 0), (1, 2), (1, 1), (4, 0), (4, 3), (4, 2), (4, 2)):
        twins.individual(ledger_id, [entry_id])
        twins.check()
    assert (twins.taken, twins.left) == (2, 6)  # 4:3 and 4:2: mark-delete came to ledger 4 with 4:0
    twins.batch(Position(4, 3), 1)
    twins.append(3)
    twins.batch(Position(4, 4), 1)
    twins.individual(4, [5])
    assert (twins.taken, twins.left) == (2, 7), "a batch in parts is not plain"
    twins.individual(4, [4])
    twins.append(1)
    twins.individual(4, [7])
    assert twins.taken == 3
    twins.roll()
    twins.check()


def test_mark_delete_goes_over_the_ends_of_ledgers() -> None:
    cursor = machine(3, 2, 4)
    cursor.acknowledge_entries(4, BitMap([0, 1]))
    cursor.acknowledge_entries(7, BitMap([0, 2]))
    assert cursor.mark_delete == Position(1, -1)
    cursor.acknowledge_entries(1, BitMap([0, 1, 2]))
    assert cursor.mark_delete == Position(7, 0)
    assert cursor.backlog_entries() == 2
    assert cursor.acknowledged_in(7) == BitMap([2])


def test_entries_that_are_acknowledged_in_order_make_no_table_of_holes_over_the_ends_of_ledgers() -> None:
    cursor = machine(2, 3)
    shared = machine(1).holes._by_ledger
    for ledger_id, entry_id in ((1, 0), (1, 1), (4, 0), (4, 1), (4, 2)):
        assert cursor.acknowledge_entries(ledger_id, BitMap([entry_id])) == BitMap([entry_id])
        assert cursor.mark_delete == (ledger_id, entry_id)
    assert cursor.holes._by_ledger is shared
    cursor.check_invariants()


def test_an_acknowledgement_of_a_future_entry_is_refused_and_changes_nothing() -> None:
    cursor = machine(3)
    with pytest.raises(InvalidCursorPosition):
        cursor.acknowledge_entries(1, BitMap([0, 3]))
    with pytest.raises(InvalidCursorPosition):
        cursor.acknowledge_cumulative(Position(2, 0), (), 0)
    assert cursor.version == 0
    assert cursor.backlog_entries() == 3


def test_a_reset_forgets_holes_and_batches() -> None:
    cursor = machine(5)
    cursor.acknowledge_entries(1, BitMap([0, 3]))
    cursor.acknowledge_batch_indexes(Position(1, 1), (0b10,), 3)
    cursor.reset(Position(1, 1))
    assert cursor.backlog_entries() == 3
    assert cursor.batches.get(Position(1, 1)) is None
    cursor.check_invariants()


def test_an_acknowledgement_without_batch_size_counts_the_bits_it_has() -> None:
    cursor = machine(5)
    assert not cursor.acknowledge_batch_indexes(Position(1, 1), (0b110,), 0)
    assert cursor.batches.get(Position(1, 1)) == (0b110,)
    assert cursor.acknowledge_batch_indexes(Position(1, 1), (0,), 0)
    assert cursor.is_acknowledged(Position(1, 1))


def test_mark_delete_leaves_a_ledger_that_is_trimmed_for_the_place_before_the_next_one() -> None:
    ledgers = LedgerSequence()
    for ledger_id in (1, 2):
        ledgers.add_closed(ledger_id, 10, 10, ledger_id)
    cursor = Acknowledgements(ledgers, Position(1, 9))
    cursor.ledgers_trimmed()
    assert cursor.mark_delete == Position(1, 9), "nothing was trimmed"
    ledgers.remove([1])
    cursor.ledgers_trimmed()
    assert cursor.mark_delete == Position(2, -1)


def test_acknowledgements_loaded_for_a_ledger_that_is_gone_are_forgotten() -> None:
    ledgers = LedgerSequence()
    ledgers.add_closed(1, 10, 10, 1)
    ledgers.add_closed(3, 10, 10, 1)
    cursor = Acknowledgements(ledgers, Position(1, 0))
    cursor.restore({}, (), [StoredSegment(Position(2, 0), 7, -1, 3, 2, 40)])
    cursor.load(Position(2, 0), {2: BitMap([4]), 3: BitMap([5, 6])}, {})
    assert cursor.acknowledged_in(2) == BitMap()
    assert cursor.acknowledged_in(3) == BitMap([5, 6])
    cursor.check_invariants()
