"""Buckets of delayed entries, stored and taken in again: no entry is early or lost by it. Conditions for storing a bucket."""

from array import array

from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from broker.dispatchers.delays.delay_buckets import (
    MERGED_MAX,
    START,
    Bucket,
    BucketRule,
    Drop,
    Store,
    Waiting,
    has_ledgers_of_its_own,
    next_step,
)
from broker.dispatchers.delays.delays import Delays
from broker.dispatchers.entry_sets import EntrySet
from wire.kernels.delayed_index import by_ledger
from wire.position import Position

START_MS = 1_700_000_000_123
END = Position(1 << 40, 0)


def positions(entries: EntrySet) -> set[Position]:
    return {Position(ledger_id, entry_id) for ledger_id, ids in entries.ledgers() for entry_id in ids}


def wait(delays: Delays, times: dict[Position, int], now_ms: int) -> None:
    for position, time in times.items():
        delays.add(position.ledger_id, position.entry_id, array("q", [time]), array("I", [0]), now_ms)


def stored(delays: Delays, start: Position = START, end: Position = END) -> list[tuple[Position, int]]:
    part = delays.part(start, end)
    found: list[tuple[Position, int]] = []
    for items in part.sift():
        for time, ledger_id, entry_id in zip(*part.facts(items), strict=True):
            found.append((Position(ledger_id, entry_id), time))
    return found


def take_in(delays: Delays, facts: list[tuple[Position, int]], gone: set[Position], now_ms: int) -> None:
    times, places = array("q", (time for _, time in facts)), [position for position, _ in facts]
    ledger_ids, entry_ids = array("Q", (each.ledger_id for each in places)), array("I", (each.entry_id for each in places))
    for ledger_id, (entries, found) in by_ledger(times, ledger_ids, entry_ids).items():
        without = BitMap(each.entry_id for each in gone if each.ledger_id == ledger_id)
        delays.add_known(ledger_id, BitMap(entries), entries, found, without, now_ms)


places = st.tuples(st.sampled_from((3, 4, 9)), st.one_of(st.integers(0, 40), st.integers(65_500, 65_600), st.just(1 << 31)))
waiting = st.dictionaries(places.map(lambda place: Position(*place)), st.integers(1, 1 << 24), max_size=30)


@settings(max_examples=100, deadline=None)
@given(waiting, st.sampled_from((1, 7, 100)), st.integers(0, 1 << 20), st.data())
def test_stored_delays_wait_as_before_without_gone_entries_and_are_due_at_the_same_tick(
    drawn: dict[Position, int], tick_ms: int, later_ms: int, data: st.DataObject
) -> None:
    times = {position: START_MS + delay for position, delay in drawn.items()}
    gone = data.draw(st.sets(st.sampled_from(sorted(times)))) if times else set()
    known = data.draw(st.sets(st.sampled_from(sorted(times)))) if times else set()
    before, after = Delays(tick_ms), Delays(tick_ms)
    wait(before, times, START_MS)
    facts = stored(before)
    assert {position for position, _ in facts} == set(times)
    assert [time for _, time in facts] == sorted(time for _, time in facts)
    for position, time in facts:
        assert times[position] <= time < times[position] + tick_ms
    now_ms = START_MS + later_ms
    wait(after, {position: times[position] for position in known if times[position] > now_ms}, now_ms)
    already = positions(after.waiting())
    take_in(after, facts, gone, now_ms)
    after.check_invariants()
    assert positions(after.waiting()) == already | set(times) - gone
    assert (
        dict(stored(after)).items() <= {position: max(time, now_ms - now_ms % tick_ms) for position, time in facts}.items()
    ), "another time than before"
    while len(after):
        wanted = after.next_ms()
        assert wanted is not None
        now_ms = max(now_ms, wanted)
        for position in positions(after.take_due(now_ms)):
            assert times[position] <= now_ms, "early"


def test_a_part_is_what_waits_there_and_nothing_that_came_due_or_is_gone() -> None:
    delays = Delays(100)
    times = array("q", range(START_MS, START_MS + 1_000_000, 100))
    delays.add(3, 0, times, array("I", range(len(times))), START_MS)
    delays.add(5, 0, times, array("I", range(10)), START_MS)
    delays.take_due(START_MS + 2000)
    delays.remove(3, BitMap(range(1000, 2000)))
    part = delays.part(Position(3, 500), Position(3, 5000))
    assert (part.first, part.last, len(part)) == (Position(3, 500), Position(3, 4999), 3500)
    found = stored(delays, Position(3, 500), Position(3, 5000))
    assert [position.entry_id for position, _ in found] == [*range(500, 1000), *range(2000, 5000)]
    assert Waiting(delays.waiting()).between(Position(3, 500), Position(3, 5000)) == 3500
    assert Waiting(delays.waiting()).between(START, END) == len(delays)


def test_many_that_are_acknowledged_already_leave_no_items_behind() -> None:
    delays = Delays(100)
    times = array("q", [START_MS + 3_600_000] * 1000)
    entries = array("I", range(1000))
    delays.add_known(3, BitMap(entries), entries, times, BitMap(range(10, 1000)), START_MS)
    delays.check_invariants()
    assert (len(delays), delays.size_bytes) == (10, 80)


def waits(counts: dict[int, int]) -> Delays:
    """Delays with so many entries in each ledger, for an hour."""
    delays = Delays(100)
    for ledger_id, count in counts.items():
        times = array("q", [START_MS + 3_600_000]) * count
        delays.add(ledger_id, 0, times, array("I", range(count)), START_MS)
    return delays


def step(delays: Delays, buckets: list[Bucket], stored_to: Position, reached: Position, *, is_quiet: bool = False) -> object:
    return next_step(buckets, delays, stored_to, reached, BucketRule(100, 1000, 6), is_quiet=is_quiet)


def bucket(number: int, first: tuple[int, int], last: tuple[int, int]) -> Bucket:
    return Bucket(number, f"b{number}", Position(*first), Position(*last))


def test_nothing_is_stored_before_enough_waits() -> None:
    assert step(waits({3: 99}), [], START, Position(3, 99)) is None
    assert step(waits({3: 100}), [], START, Position(3, 100)) == Store(START, Position(3, 100))
    assert step(waits({3: 100}), [], START, Position(3, 99)) is None
    assert next_step([], waits({3: 100}), START, Position(3, 100), BucketRule(0), is_quiet=True) is None
    assert next_step([], waits({3: 100}), START, None, BucketRule(100), is_quiet=True) is None


def test_the_more_waits_the_more_is_stored_at_once_but_in_quiet_times_it_is_soon() -> None:
    delays, known = waits({3: 1600, 4: 110}), [bucket(1, (3, 0), (3, 1599))]
    assert step(delays, known, Position(4, 0), Position(4, 105)) is None
    assert step(delays, known, Position(4, 0), Position(4, 105), is_quiet=True) == Store(Position(4, 0), Position(4, 105))
    assert step(delays, known, Position(4, 0), Position(4, 110)) == Store(Position(4, 0), Position(4, 110))


def test_the_end_of_a_ledger_is_the_end_of_a_bucket_where_that_is_enough() -> None:
    assert step(waits({3: 150, 4: 20}), [], START, Position(4, 20)) == Store(START, Position(4, 0))
    assert step(waits({3: 50, 4: 60}), [], START, Position(4, 60)) == Store(START, Position(4, 60))


def test_entries_too_many_for_one_bucket_are_cut() -> None:
    assert step(waits({3: 700, 4: 900}), [], START, Position(4, 900)) == Store(START, Position(4, 0))
    assert step(waits({3: 700, 4: 900}), [], Position(3, 100), Position(5, 0)) == Store(Position(3, 100), Position(4, 0))
    assert step(waits({3: 50, 4: 1900}), [], START, Position(5, 0)) == Store(START, Position(4, 950))
    assert step(waits({3: 1900}), [], Position(3, 100), Position(4, 0)) == Store(Position(3, 100), Position(3, 1100))


def test_very_many_entries_at_once_fill_a_bucket_of_the_usual_size_and_the_next_follows() -> None:
    """The entries are in memory several times while one bucket is written."""
    delays = waits(dict.fromkeys(range(3, 23), 50_000))
    first = next_step([], delays, START, Position(23, 0), BucketRule(), is_quiet=False)
    assert first == Store(START, Position(9, 0))
    known = [bucket(1, (3, 0), (8, 49_999))]
    assert next_step(known, delays, Position(9, 0), Position(23, 0), BucketRule(), is_quiet=False) == Store(
        Position(9, 0), Position(15, 0)
    )


def test_entries_of_a_lost_bucket_are_stored_again_before_anything_new() -> None:
    delays = waits({3: 200, 4: 200, 5: 200, 6: 300})
    known = [bucket(1, (3, 0), (3, 199)), bucket(3, (5, 0), (5, 199))]
    found = step(delays, known, Position(6, 0), Position(6, 300))
    assert found == Store(Position(3, 200), Position(5, 0))
    again = [*known, bucket(4, (4, 0), (4, 199))]
    assert step(delays, again, Position(6, 0), Position(6, 300)) == Store(Position(6, 0), Position(6, 300))
    assert step(delays, again[1:], Position(6, 0), Position(6, 0)) == Store(START, Position(4, 0))
    delays.remove(3, BitMap(range(101)))
    assert step(delays, again[1:], Position(6, 0), Position(6, 0)) is None, "too few: they are read again"


def test_a_bucket_is_of_no_use_when_nothing_waits_between_its_ends() -> None:
    delays, known = waits({3: 100}), [bucket(1, (3, 0), (3, 49)), bucket(2, (3, 50), (3, 99))]
    assert step(delays, known, Position(3, 100), Position(3, 100)) is None
    delays.remove(3, BitMap(range(50)))
    assert step(delays, known, Position(3, 100), Position(3, 100)) == Drop([known[0]])
    delays.clear()
    assert step(delays, known, Position(3, 100), Position(3, 100)) == Drop(known)


def test_too_many_buckets_merge_the_four_neighbours_with_the_fewest_entries_left() -> None:
    delays = waits(dict.fromkeys(range(6), 150))
    known = [bucket(ledger_id, (ledger_id, 0), (ledger_id, 149)) for ledger_id in range(6)]
    delays.remove(2, BitMap(range(140)))
    delays.remove(5, BitMap(range(100)))
    assert step(delays, known, Position(6, 0), Position(6, 0)) == Store(Position(2, 0), Position(5, 150), tuple(known[2:]))
    full = waits(dict.fromkeys(range(6), 300))
    assert step(full, known, Position(6, 0), Position(6, 0)) is None, "together they would be too large"


def test_a_bucket_has_ledgers_of_its_own_when_no_other_is_or_will_be_about_them() -> None:
    first, last = Position(3, 5), Position(4, 9)
    whole = Store(START, Position(5, 0))
    assert has_ledgers_of_its_own(whole, first, last, [])
    assert has_ledgers_of_its_own(whole, first, last, [bucket(1, (1, 0), (2, 7)), bucket(2, (5, 0), (6, 0))])
    assert not has_ledgers_of_its_own(whole, first, last, [bucket(1, (1, 0), (3, 4))])
    assert not has_ledgers_of_its_own(Store(START, Position(4, 10)), first, last, [])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(1, 50), min_size=MERGED_MAX, max_size=10))
def test_the_neighbours_that_are_merged_are_those_of_which_least_is_left(counts: list[int]) -> None:
    """Against a twin that looks at every group, the last one too."""
    delays = waits({3 + place: count for place, count in enumerate(counts)})
    buckets = [bucket(place, (3 + place, 0), (3 + place, 49)) for place in range(len(counts))]
    found = next_step(buckets, delays, Position(3 + len(counts), 0), None, BucketRule(100, 1000, MERGED_MAX), is_quiet=False)
    groups = [buckets[start : start + MERGED_MAX] for start in range(len(buckets)) if start + MERGED_MAX <= len(buckets)]
    best = min(groups, key=lambda group: sum(counts[each.ledger_id] for each in group))
    assert found == Store(best[0].first, best[-1].end, tuple(best))


def test_the_last_neighbours_are_merged_when_only_they_have_little_left() -> None:
    counts = [50] * MERGED_MAX + [1] * MERGED_MAX
    delays = waits({3 + place: count for place, count in enumerate(counts)})
    buckets = [bucket(place, (3 + place, 0), (3 + place, 49)) for place in range(len(counts))]
    found = next_step(buckets, delays, Position(11, 0), None, BucketRule(100, 1000, MERGED_MAX), is_quiet=False)
    assert found == Store(buckets[MERGED_MAX].first, buckets[-1].end, tuple(buckets[MERGED_MAX:]))


def test_neighbours_that_are_exactly_as_much_as_a_bucket_may_have_are_merged() -> None:
    delays = waits(dict.fromkeys(range(3, 7), 250))
    buckets = [bucket(place, (3 + place, 0), (3 + place, 249)) for place in range(MERGED_MAX)]
    found = next_step(buckets, delays, Position(7, 0), None, BucketRule(100, 1000, MERGED_MAX), is_quiet=False)
    assert found == Store(buckets[0].first, buckets[-1].end, tuple(buckets))


def test_a_bucket_that_begins_in_the_last_ledger_of_another_leaves_it_no_ledgers_of_its_own() -> None:
    first, last = Position(3, 5), Position(4, 9)
    assert not has_ledgers_of_its_own(Store(START, Position(5, 0)), first, last, [bucket(1, (4, 10), (6, 0))])
