"""The sequence of ledgers against a list of all positions; rolling over and trimming as pure decisions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from managed_ledger.append.rollover import rollover_limits
from managed_ledger.ledgers.sequence import LedgerSequence
from managed_ledger.ledgers.trimming import Retention, retention, trimmable
from managed_ledger.settings import ManagedLedgerSettings
from wire.position import Position

POSITION = st.builds(Position, st.integers(-1, 16), st.integers(-1, 6))


@st.composite
def sequences(draw: st.DrawFn) -> tuple[LedgerSequence, list[Position]]:
    """A sequence that was loaded, appended to, rolled over and trimmed, and its entries."""
    sequence, entries = LedgerSequence(), []
    ledger_id = 1
    for size in draw(st.lists(st.integers(0, 4), max_size=4)):
        sequence.add_closed(ledger_id, size, size * 100, ledger_id)
        entries += [Position(ledger_id, entry) for entry in range(size)]
        ledger_id += 2
    for size in draw(st.lists(st.integers(0, 4), max_size=3)):
        sequence.open(ledger_id)
        if size:
            sequence.confirm(size, size * 100)
            entries += [Position(ledger_id, entry) for entry in range(size)]
        sequence.close_open(ledger_id)
        ledger_id += 2
    ids = [span.ledger_id for span in sequence]
    gone = ids[: draw(st.integers(0, len(ids)))]
    sequence.remove(gone)
    if draw(st.booleans()):
        sequence.open(ledger_id)
        size = draw(st.integers(0, 3))
        if size:
            sequence.confirm(size, size * 100)
            entries += [Position(ledger_id, entry) for entry in range(size)]
    return sequence, [position for position in entries if position.ledger_id not in gone]


@given(sequences(), POSITION)
def test_a_reader_has_the_entries_from_its_first_position_on(
    made: tuple[LedgerSequence, list[Position]], first: Position
) -> None:
    sequence, entries = made
    mark = sequence.mark_before(first)
    assert mark <= sequence.last_confirmed
    assert sequence.end_index - sequence.entries_through(mark) == sum(each >= first for each in entries)


@given(sequences(), POSITION)
def test_positions_are_those_of_a_list_of_all_entries(made: tuple[LedgerSequence, list[Position]], position: Position) -> None:
    sequence, entries = made
    sequence.check_invariants()
    assert sequence.entry_count == len(entries)
    assert sequence.size_bytes == 100 * len(entries)
    after = [each for each in entries if each > position]
    before = [each for each in entries if each < position]
    assert sequence.locate(position) == next((each for each in entries if each >= position), None)
    assert sequence.locate(sequence.next_position(position)) == (after[0] if after else None)
    assert sequence.next_position(position) > position
    if before:
        assert sequence.previous_position(position) == before[-1]
    else:
        assert sequence.previous_position(position).entry_id == -1
    assert sequence.end_index - sequence.entries_through(position) == len(after)
    assert sequence.locate(sequence.first_position()) == (entries[0] if entries else None)


@given(sequences(), POSITION, POSITION)
def test_counting_counts_entries(made: tuple[LedgerSequence, list[Position]], first: Position, last: Position) -> None:
    sequence, entries = made
    assert sequence.count_between(first, last) == sum(first <= each <= last for each in entries)


@given(sequences())
def test_every_entry_has_an_index(made: tuple[LedgerSequence, list[Position]]) -> None:
    sequence, entries = made
    assert [sequence.position_at(sequence.first_index + place) for place in range(len(entries))] == entries
    with pytest.raises(IndexError):
        sequence.position_at(sequence.end_index)


@given(sequences(), st.lists(POSITION, max_size=3))
def test_the_trimmable_ledgers_are_a_consumed_prefix(
    made: tuple[LedgerSequence, list[Position]], marks: list[Position]
) -> None:
    sequence, entries = made
    gone = trimmable(sequence, marks, Retention(), 1000)
    spans = list(sequence)
    assert gone == [span.ledger_id for span in spans[: len(gone)]]
    assert all(position <= mark for position in entries if position.ledger_id in gone for mark in marks)
    assert sequence.open_ledger_id not in gone
    if len(gone) < len(spans) and not spans[len(gone)].is_open:
        kept = Position(spans[len(gone)].ledger_id, spans[len(gone)].entries - 1)
        assert any(mark < kept for mark in marks), "the first that is kept is not consumed"


def closed(*ledgers: tuple[int, int]) -> LedgerSequence:
    """Ledgers of (megabytes, closed at minute)."""
    sequence = LedgerSequence()
    for place, (megabytes, minute) in enumerate(ledgers):
        sequence.add_closed(place + 1, 10, megabytes << 20, minute * 60_000)
    return sequence


@pytest.mark.parametrize(
    ("minutes", "megabytes", "gone"),
    [(0, 0, [1, 2, 3]), (-1, -1, []), (60, -1, [1]), (-1, 4, [1, 2]), (-1, 0, [1, 2, 3]), (60, 0, [1, 2, 3]), (60, 6, [1])],
)
def test_retention_keeps_what_is_young_and_small_enough(minutes: int, megabytes: int, gone: list[int]) -> None:
    settings = ManagedLedgerSettings(default_retention_time_in_minutes=minutes, default_retention_size_in_mb=megabytes)
    sequence = closed((5, 10), (5, 60), (5, 100))
    assert trimmable(sequence, [], retention(settings), 110 * 60_000) == gone


def test_a_ledger_is_full_by_entries_or_size_after_the_least_time_and_by_age_alone_after_the_greatest() -> None:
    limits = rollover_limits(ManagedLedgerSettings())
    assert not limits.is_full(50_000, 0, 599)
    assert limits.is_full(50_000, 0, 600)
    assert not limits.is_full(49_999, 0, 600)
    assert limits.is_full(1, 2048 << 20, 600)
    assert limits.is_full(1, 1, 240 * 60)
    assert not rollover_limits(ManagedLedgerSettings(managed_ledger_max_ledger_rollover_time_minutes=0)).is_full(1, 1, 1e9)


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="RolloverTime"):
        ManagedLedgerSettings(managed_ledger_min_ledger_rollover_time_minutes=300)
    with pytest.raises(ValueError, match="managedledgermaxentriesperledger"):
        ManagedLedgerSettings(managed_ledger_max_entries_per_ledger=0)
    with pytest.raises(ValueError, match="MarkDelete"):
        ManagedLedgerSettings(managed_ledger_default_mark_delete_rate_limit=0)


def test_the_first_position_follows_the_last_entry_when_all_ledgers_are_trimmed() -> None:
    sequence = LedgerSequence()
    sequence.add_closed(1, 3, 300, 1)
    sequence.add_closed(2, 5, 500, 1)
    sequence.remove([1, 2])
    assert sequence.last_confirmed == Position(2, 4)
    assert sequence.first_position() == Position(2, 5)
