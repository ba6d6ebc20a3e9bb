"""Sets of entries, what of a read can be delivered, and replay windows: each against the plain way."""

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from broker.dispatchers.contract import EntriesRead
from broker.dispatchers.entry_sets import EntrySet, entry_set
from broker.dispatchers.reading.readable import readable
from broker.dispatchers.reading.replays import window
from broker.dispatchers.settings import DispatcherSettings
from cli.configuration.loading import known_keys
from ports.settings import fold
from wire.position import Position
from wire.run import FLAG_MARKER, EntryRun, RunMetadata

POSITIONS = st.builds(Position, st.integers(1, 3), st.integers(0, 9))


@given(st.sets(POSITIONS), st.sets(POSITIONS), POSITIONS, POSITIONS)
def test_an_entry_set_is_a_set_of_positions(ours: set[Position], gone: set[Position], start: Position, end: Position) -> None:
    entries = entry_set(ours)
    assert (len(entries), bool(entries), entries.first()) == (len(ours), bool(ours), min(ours, default=None))
    between = {position for position in ours if start <= position < end}
    assert positions(entries.between(start, end)) == between
    for ledger_id, ids in entry_set(gone).ledgers():
        assert set(entries.remove(ledger_id, ids)) == {at.entry_id for at in ours & gone if at.ledger_id == ledger_id}
    entries.check_invariants()
    assert positions(entries) == ours - gone
    assert positions(entries.remove_between(start, end)) == between - gone
    assert positions(entries) == ours - gone - between
    entries.check_invariants()


def positions(entries: EntrySet) -> set[Position]:
    return {Position(ledger_id, entry_id) for ledger_id, ids in entries.ledgers() for entry_id in ids}


def test_positions_that_no_ledger_can_have_are_left_out() -> None:
    assert not entry_set([Position(1, -1), Position(1, 1 << 32), Position(1, (1 << 63) - 1)])


@given(
    st.lists(st.tuples(st.integers(1, 4), st.booleans()), min_size=1, max_size=12),
    st.sets(st.integers(0, 15)),
    st.integers(-1, 15),
    st.one_of(st.none(), st.sets(st.integers(0, 15))),
    st.dictionaries(st.integers(0, 15), st.integers(1, 15)),
    st.integers(1, 20),
)
def test_a_read_yields_its_deliverable_entries_and_their_costs(
    entries: list[tuple[int, bool]],
    acknowledged: set[int],
    mark_delete: int,
    wanted: set[int] | None,
    left: dict[int, int],
    permits: int,
) -> None:
    first = 3
    counts = array("I", [count for count, _ in entries])
    flags = array("B", [FLAG_MARKER * is_marker for _, is_marker in entries])
    run = EntryRun(1, first, b"", array("I", bytes(4 * len(entries) + 4)))
    metadata = RunMetadata(counts, flags, max(flags), sum(counts))
    ack_sets = {entry_id: (bits,) for entry_id, bits in left.items()}
    read = EntriesRead(1, run, metadata, Position(1, mark_delete), BitMap(acknowledged), ack_sets)
    found, markers = readable(read, None if wanted is None else BitMap(wanted))
    gone = {at for at in range(16) if at in acknowledged or at <= mark_delete}
    inside = [(at, *entry) for at, entry in enumerate(entries, first) if at not in gone]
    assert set(markers) == {at for at, _, is_marker in inside if is_marker}
    due = [(at, count) for at, count, is_marker in inside if not is_marker and (wanted is None or at in wanted)]
    assert [first + index for index in found.indexes] == [at for at, _ in due]
    costs = [min(count, left.get(at, 15).bit_count()) for at, count in due]
    assert [found.cost(place, place + 1) for place in range(len(found))] == costs
    taken = 0
    while taken < len(costs) and sum(costs[:taken]) < permits:
        taken += 1
    assert found.fit(0, permits) == taken


@given(st.sets(st.integers(0, 400), min_size=1), st.integers(1, 50), st.integers(1, 120))
def test_a_window_starts_dense_and_stays_within_its_bounds(wanted: set[int], entries_max: int, spread_max: int) -> None:
    length = window(BitMap(wanted), entries_max, spread_max)
    inside = [at for at in wanted if at < min(wanted) + length]
    assert 1 <= length <= spread_max
    assert len(inside) <= entries_max
    assert length <= 2 * len(inside)
    assert min(wanted) + length - 1 in wanted


def test_settings_are_apaches_keys() -> None:
    known = {fold(key) for key in known_keys()}
    assert {fold(name) for name in DispatcherSettings.__dataclass_fields__} <= known


@given(st.sets(st.builds(Position, st.integers(1, 40), st.integers(0, 9)), max_size=60), POSITIONS, st.integers(0, 40))
def test_the_first_entries_are_found_also_among_many_ledgers(ours: set[Position], start: Position, count: int) -> None:
    """With more ledgers than are kept in a plain dict, too."""
    entries = entry_set(ours)
    assert entries.first() == min(ours, default=None)
    assert entries.first_from(start) == min((each for each in ours if each >= start), default=None)
    assert positions(entries.first_few(count)) == set(sorted(ours)[:count])


def test_the_first_of_very_many_ledgers_is_the_lowest() -> None:
    assert entry_set(Position(ledger_id, 5) for ledger_id in range(40, 3, -1)).first() == Position(4, 5)


def test_first_few_gives_no_more_entries_than_asked_across_ledgers() -> None:
    entries = entry_set(Position(ledger_id, entry_id) for ledger_id in (1, 2, 3) for entry_id in (0, 7))
    assert positions(entries.first_few(3)) == {Position(1, 0), Position(1, 7), Position(2, 0)}


def test_a_position_cuts_only_its_own_ledger() -> None:
    entries = entry_set([Position(1, 2), Position(2, 1)])
    assert entries.first_from(Position(1, 5)) == Position(2, 1)
    assert positions(entries.between(Position(1, 2), Position(3, 0))) == {Position(1, 2), Position(2, 1)}
    assert positions(entry_set([Position(1, 0)]).between(Position(1, 0), Position(2, 0))) == {Position(1, 0)}


def test_the_index_of_held_back_messages_may_be_switched_off_and_not_less_than_that() -> None:
    DispatcherSettings(delayed_delivery_min_index_count_per_bucket=0)
    with pytest.raises(ValueError, match="delayedDeliveryMinIndexCountPerBucket"):
        DispatcherSettings(delayed_delivery_min_index_count_per_bucket=-1)
