"""Entries that wait for their time, against a naive twin in virtual time: exactly which are due, and when."""

from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from broker.dispatchers.delays.delays import TICKS_MAX, Delays, _halves
from broker.dispatchers.entry_sets import EntrySet
from wire.kernels.delays import in_buckets, items_of, later_than, numbers_of
from wire.position import Position

LEDGERS = (3, 4, 9)
START_MS = 1_700_000_000_000
NEVER = (1 << 63) - 1


def positions(entries: EntrySet) -> set[Position]:
    return {Position(ledger_id, entry_id) for ledger_id, ids in entries.ledgers() for entry_id in ids}


class Twin:
    """A time for each entry. It never changes, also when the entry is taken away and comes again: it is the message's."""

    def __init__(self) -> None:
        self.times: dict[Position, int] = {}
        self._given: dict[Position, int] = {}

    def time_of(self, position: Position, drawn: int) -> int:
        return self._given.setdefault(position, drawn)

    def judge(self, released: set[Position], now_ms: int, tick_ms: int) -> None:
        """Each that was released waited for it and is not early; none is later than a tick."""
        for position in released:
            assert self.times.pop(position) <= now_ms, "early"
        assert all(time + tick_ms > now_ms for time in self.times.values()), "late"


delay = st.one_of(
    st.integers(-50, 300),
    st.integers(0, 1 << 12),
    st.integers(0, 1 << 20),
    st.integers(0, 1 << 29),
)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_each_entry_is_due_once_never_early_and_never_later_than_a_tick(data: st.DataObject) -> None:
    tick_ms = data.draw(st.sampled_from((1, 7, 100)))
    delays, twin, now_ms = Delays(tick_ms), Twin(), START_MS
    for _ in range(data.draw(st.integers(1, 25))):
        action = data.draw(st.integers(0, 9))
        if action <= 3:
            ledger_id, first = data.draw(st.sampled_from(LEDGERS)), data.draw(st.sampled_from((0, 5, 65_530, 1 << 31)))
            drawn = [min(NEVER, now_ms + each) for each in data.draw(st.lists(delay, min_size=1, max_size=12))]
            times = array("q", [twin.time_of(Position(ledger_id, first + index), each) for index, each in enumerate(drawn)])
            chosen = data.draw(st.sets(st.integers(0, len(times) - 1)))
            indexes = array(
                "I", (each for each in later_than(times, now_ms) if each in chosen)
            )  # what is due is never held back
            delays.add(ledger_id, first, times, indexes, now_ms)
            for index in indexes:
                twin.times.setdefault(Position(ledger_id, first + index), times[index])
        elif action <= 7:
            step = data.draw(st.one_of(st.just(tick_ms), st.integers(0, 1000), st.integers(-(1 << 26), 1 << 30)))
            now_ms += step
            twin.judge(positions(delays.take_due(now_ms)), now_ms, tick_ms)
        else:
            ledger_id, end = data.draw(st.sampled_from(LEDGERS)), data.draw(st.integers(0, 20))
            if action == 8:
                delays.remove(ledger_id, BitMap(range(end)))
                gone = [at for at in twin.times if at.ledger_id == ledger_id and at.entry_id < end]
            else:
                delays.remove_between(Position(-1, 0), Position(ledger_id, end))
                gone = [at for at in twin.times if at < Position(ledger_id, end)]
            for position in gone:
                del twin.times[position]
        delays.check_invariants()
        assert positions(delays.waiting()) == set(twin.times)
        assert len(delays) == len(twin.times)


def test_a_delay_of_an_hour_wakes_the_dispatcher_at_its_time_and_at_most_twice_before() -> None:
    delays = Delays(100)
    delays.add(3, 0, array("q", [START_MS + 3_600_000]), array("I", [0]), START_MS)
    now_ms, wakes = START_MS, 0
    while len(delays):
        wanted = delays.next_ms()
        assert wanted is not None
        now_ms, wakes = max(now_ms, wanted), wakes + 1
        delays.take_due(now_ms)
    assert wakes <= 3
    assert now_ms == START_MS + 3_600_000
    assert delays.next_ms() is None


def test_an_entry_due_in_thousands_of_years_is_looked_at_again_before_ticks_run_out() -> None:
    """2^63-1, the year 9999: kept as far ahead as ticks go, then read again and held back again."""
    delays = Delays(100)
    for entry_id, time in enumerate((NEVER, 253_402_300_799_000)):
        delays.add(3, entry_id, array("q", [time]), array("I", [0]), START_MS)
    assert delays.next_ms() is not None
    assert not delays.take_due(START_MS + (TICKS_MAX - 1) * 100)
    assert len(delays.take_due(START_MS + (TICKS_MAX + 1) * 100)) == 2


def test_ticks_are_counted_anew_before_they_run_out() -> None:
    delays, now_ms = Delays(1), START_MS
    for day in range(60):
        now_ms = START_MS + day * 86_400_000
        delays.add(3, day, array("q", [now_ms + 7 * 86_400_000]), array("I", [0]), now_ms)
        due = positions(delays.take_due(now_ms))
        assert due == ({Position(3, day - 7)} if day >= 7 else set())
        delays.check_invariants()


def test_a_bucket_of_a_hundred_thousand_moves_down_piece_by_piece() -> None:
    delays = Delays(100)
    times = array("q", range(START_MS + 3_000_000, START_MS + 3_200_000, 2))
    delays.add(3, 0, times, array("I", range(len(times))), START_MS)
    assert len(delays.take_due(START_MS + 3_100_000)) in range(49_949, 50_002)
    assert len(delays.take_due(START_MS + 3_200_100)) in range(49_999, 50_052)
    assert len(delays) == 0


def test_items_for_which_nothing_waits_any_more_do_not_pile_up() -> None:
    delays = Delays(100)
    for first in range(0, 200_000, 100):
        times = array("q", [START_MS + 86_400_000] * 100)
        delays.add(3, first, times, array("I", range(100)), START_MS)
        delays.remove_between(Position(-1, 0), Position(3, first))
        if first % 10_000 == 0:
            delays.take_due(START_MS)
    assert len(delays) == 100
    assert delays.size_bytes < 8 * 100_000


def test_more_ledgers_than_there_are_numbers_make_it_full_and_room_comes_back() -> None:
    delays = Delays(100)
    ledgers = 0
    while not delays.is_full:
        delays.add(ledgers, 0, array("q", [START_MS + 1000]), array("I", [0]), START_MS)
        ledgers += 1
    assert ledgers > 60_000
    assert len(delays.take_due(START_MS + 1000)) == ledgers
    assert not delays.is_full


def test_an_item_that_was_left_behind_makes_no_later_entry_early() -> None:
    """The item's number is given to another entry one day: 65,536 of them last for billions of messages, not for ever."""
    delays = Delays(100)
    hour, two_hours = array("q", [START_MS + 3_600_000]), array("q", [START_MS + 7_200_000])
    ledgers = 70_000
    delays.add(ledgers, 0, two_hours, array("I", [0]), START_MS)
    for ledger_id in range(ledgers):
        delays.add(ledger_id, 0, hour, array("I", [0]), START_MS)
        delays.remove(ledger_id, BitMap([0]))
    for ledger_id in range(100):
        delays.add(ledger_id, 0, two_hours, array("I", [0]), START_MS)
    delays.check_invariants()
    assert not delays.take_due(START_MS + 3_600_100)
    assert len(delays.take_due(START_MS + 7_200_000)) == 101


def test_another_tick_holds_for_what_waits_already() -> None:
    delays = Delays(1000)
    delays.add(3, 0, array("q", [START_MS + 5_500, START_MS + 90_000]), array("I", [0, 1]), START_MS)
    delays.set_tick(10)
    delays.check_invariants()
    assert not delays.take_due(START_MS + 5_499)
    assert positions(delays.take_due(START_MS + 6_000)) == {Position(3, 0)}
    assert positions(delays.take_due(START_MS + 90_000)) == {Position(3, 1)}


ticks = st.lists(st.integers(0, (1 << 32) - 1), max_size=30)


@given(ticks, st.integers(0, (1 << 32) - 1))
def test_the_kernel_puts_each_item_where_its_level_is(given_ticks: list[int], now_tick: int) -> None:
    items = array("Q", [tick << 32 | number for number, tick in enumerate(given_ticks)])
    found = in_buckets(items, now_tick)
    assert sorted(item for bucket in found.values() for item in bucket) == sorted(items)
    for key, bucket in found.items():
        level = key >> 32
        for item in bucket:
            tick = item >> 32
            assert key & 0xFFFFFFFF == tick >> 8 * level
            assert (level == 0) == (tick <= now_tick or tick >> 8 == now_tick >> 8)
            assert tick <= now_tick or tick >> 8 * (level + 1) == now_tick >> 8 * (level + 1)
    assert list(numbers_of(items)) == list(range(len(items)))


@given(st.lists(st.integers(-5, NEVER), max_size=20), st.integers(-1, NEVER), st.integers(1, 5000))
def test_the_kernel_rounds_up_to_ticks(times: list[int], base_ms: int, tick_ms: int) -> None:
    indexes = later_than(array("q", times), base_ms)
    assert list(indexes) == [index for index, time in enumerate(times) if time > base_ms]
    items = items_of(array("q", times), indexes, 0xFFFFFFF0, base_ms, tick_ms, (1 << 32) - 1)
    for index, item in zip(indexes, items, strict=True):
        assert item >> 32 == min(-((times[index] - base_ms) // -tick_ms), (1 << 32) - 1)
        assert item & 0xFFFFFFFF == (0xFFFFFFF0 + index) & 0xFFFFFFFF


def test_delays_are_full_when_as_many_entries_wait_as_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker.dispatchers.delays.delays.ENTRIES_MAX", 3)
    delays = Delays(100)
    for entry_id, is_full in enumerate((False, False, True)):
        delays.add(3, entry_id, array("q", [START_MS + 1000]), array("I", [0]), START_MS)
        assert delays.is_full is is_full


def test_an_acknowledged_entry_that_waited_alone_causes_no_wake_and_takes_no_memory() -> None:
    delays = Delays(100)
    delays.add(3, 0, array("q", [START_MS + 10_000]), array("I", [0]), START_MS)
    delays.remove(3, BitMap([0]))
    later_ms = START_MS + 5_000
    delays.add(3, 1, array("q", [later_ms + 20_000]), array("I", [0]), later_ms)
    assert delays.next_ms() == later_ms + 20_000
    assert delays.size_bytes == 8


def test_a_run_is_parted_only_where_the_upper_half_of_its_entry_ids_changes() -> None:
    """Each part costs a call of the kernel and a bucket or more."""
    assert _halves(65_530, array("I", range(12))) == [(0, 6), (6, 12)]
    assert _halves(65_530, array("I", [1, 3, 6, 65_542])) == [(0, 2), (2, 3), (3, 4)]
    assert _halves(65_536, array("I", range(12))) == [(0, 12)]
