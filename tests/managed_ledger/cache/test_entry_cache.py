"""The entry cache: what it holds, what it lets go, joining; and its twin, a dictionary of entries."""

import inspect
import textwrap
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from managed_ledger.cache import entry_cache, places
from managed_ledger.cache.entry_cache import CachedLog, EntryCache
from managed_ledger.cache.pieces import Pieces
from managed_ledger.cache.places import ReadingPlaces
from tests.invariants import checked_after_each_step
from tests.wire.frame_samples import stored
from wire.kernels.entries import first_damaged, seal
from wire.position import Position
from wire.run import EntryRun
from wire.run_parts import cut, join

from ..fake_ledgers import batch, payloads

checked_machines = checked_after_each_step(EntryCache, CachedLog, ReadingPlaces, Pieces)

MANY = 1 << 30


def sealed(first: int, count: int, size: int = 3, ledger_id: int = 1) -> EntryRun:
    texts = batch(*(b"%0*d" % (size, first + place) for place in range(count)))
    seal(texts, ledger_id, first, first - 1, 0)
    return EntryRun(ledger_id, first, texts.buffer, texts.offsets)


def entries_of(run: EntryRun) -> list[int]:
    assert first_damaged(run) == -1
    return [int(text) for text in payloads(run)]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=8), st.data())
def test_joined_and_cut_runs_hold_the_same_entries(counts: list[int], data: st.DataObject) -> None:
    parts, first = [], 7
    for count in counts:
        whole = sealed(first - 1, count + 2)
        parts.append(whole.entries(first, count))
        first += count
    joined = join(parts)
    assert entries_of(joined) == list(range(7, first))
    start = data.draw(st.integers(7, first - 1))
    entries_max, bytes_max = data.draw(st.integers(1, 20)), data.draw(st.integers(1, 400))
    piece = cut(joined, start, entries_max, bytes_max)
    assert piece.first_entry_id == start
    assert piece.count <= entries_max
    assert piece.size_bytes <= bytes_max or piece.count == 1
    following = piece.count + 1
    if start + following <= first and following <= entries_max:
        assert joined.entries(start, following).size_bytes > bytes_max, "as much as the bounds allow"


def cached() -> tuple[EntryCache, CachedLog]:
    cache = EntryCache(10_000, 1.0)
    return cache, CachedLog(cache)


def test_small_runs_that_follow_one_another_are_one_run_for_the_reader_and_then_in_the_cache() -> None:
    cache, log = cached()
    for entry in range(100):
        log.insert(sealed(entry, 1), 0.0)
    first = log.get(1, 0, 60, MANY, 0.0)
    assert first is not None
    assert entries_of(first) == list(range(60))
    again = log.get(1, 0, 60, MANY, 0.0)
    assert again is not None
    assert again.buffer is first.buffer
    rest = log.get(1, 60, 60, MANY, 0.0)
    assert rest is not None
    assert entries_of(rest) == list(range(60, 100))
    assert cache.size_bytes == first.size_bytes + rest.size_bytes


def read_over_two_headers() -> list[bytes]:
    """Read of two small runs that follow one another, whose entries have headers of different lengths."""
    _, log = cached()
    log.insert(stored([b"one", b"two"], 1, 0, header_bytes=36), 0.0)
    log.insert(stored([b"three", b"four"], 1, 2, header_bytes=52), 0.0)
    found: list[bytes] = []
    while len(found) < 4:
        run = log.get(1, len(found), 10, MANY, 0.0)
        assert run is not None
        found += payloads(run)
    return found


def test_runs_whose_headers_have_other_lengths_are_not_joined() -> None:
    assert read_over_two_headers() == [b"one", b"two", b"three", b"four"]


def test_a_cache_that_joins_runs_whatever_their_headers_is_found() -> None:
    blind = "\n".join(line for line in inspect.getsource(CachedLog._joined).splitlines() if "header_bytes" not in line)
    names = {**vars(entry_cache)}
    exec(textwrap.dedent(blind), names)
    with patch.object(CachedLog, "_joined", names["_joined"]), pytest.raises(AssertionError):
        assert read_over_two_headers() == [b"one", b"two", b"three", b"four"]


def test_the_first_cached_position_is_that_of_the_oldest_ledger() -> None:
    _, log = cached()
    assert log.first_position() is None
    for ledger_id, first in ((7, 0), (3, 5), (3, 9), (5, 1)):
        log.insert(sealed(first, 2, ledger_id=ledger_id), 0.0)
    assert log.first_position() == Position(3, 5)


def test_a_cache_that_is_told_nothing_of_reads_bounds_none() -> None:
    cache, _ = cached()
    assert all(cache.in_flight.try_take(1 << 40) for _ in range(3))
    assert (cache.size_bytes, cache.ahead_bytes, cache.evictions) == (0, 0, 0)


def test_a_gap_ends_a_joined_run() -> None:
    _, log = cached()
    log.insert(sealed(0, 2), 0.0)
    log.insert(sealed(3, 2), 0.0)
    found = log.get(1, 0, 10, MANY, 0.0)
    assert found is not None
    assert entries_of(found) == [0, 1]
    assert log.get(1, 2, 10, MANY, 0.0) is None


def test_unused_entries_are_evicted_when_their_time_is_over_and_used_ones_stay_longer() -> None:
    cache, log = cached()
    log.insert(sealed(0, 1), 0.0)
    log.insert(sealed(5, 1), 0.0)
    assert log.get(1, 5, 1, MANY, 0.9) is not None
    cache.evict(1.1)
    assert log.get(1, 0, 1, MANY, 1.1) is None
    assert log.get(1, 5, 1, MANY, 1.1) is not None
    cache.evict(9.0)
    assert cache.size_bytes == 0
    assert cache.next_eviction_at() is None


def test_a_full_cache_evicts_its_oldest_entries_across_managed_ledgers() -> None:
    cache, log = cached()
    other = CachedLog(cache)
    log.insert(sealed(0, 1, 4000), 0.0)
    other.insert(sealed(0, 1, 4000), 0.0)
    assert log.get(1, 0, 1, MANY, 0.0) is not None
    log.insert(sealed(1, 1, 4000), 0.0)
    assert cache.size_bytes <= cache.bytes_max
    assert log.get(1, 0, 1, MANY, 0.0) is None
    assert other.get(1, 0, 1, MANY, 0.0) is not None


def test_a_full_cache_goes_down_to_its_watermark_at_once() -> None:
    cache = EntryCache(10_000, 1.0, watermark=0.5)
    log = CachedLog(cache)
    for entry in range(9):
        log.insert(sealed(entry, 1, 1000), 0.0)
    assert cache.size_bytes > 9000, "not full yet"
    log.insert(sealed(9, 1, 1000), 0.0)
    assert cache.size_bytes <= 5000
    assert Position(1, 9) in log


def test_a_run_larger_than_the_cache_is_not_kept() -> None:
    cache, log = cached()
    log.insert(sealed(0, 1, 20_000), 0.0)
    assert cache.size_bytes == 0


def test_entries_that_all_readers_have_read_are_removed_and_later_ones_stay() -> None:
    cache, log = cached()
    for entry in range(0, 10, 2):
        log.insert(sealed(entry, 2), 0.0)
    log.remove_before(Position(1, 5))
    assert log.first_position() == Position(1, 4)
    log.remove_before(Position(2, 0))
    assert log.first_position() is None
    assert cache.size_bytes == 0


def test_readers_are_known_by_where_they_go_on() -> None:
    places = ReadingPlaces()
    assert places.moved(Position(1, 0), Position(1, 10))
    assert places.moved(Position(1, 0), Position(1, 10))
    assert Position(1, 10) in places
    assert not places.moved(Position(1, 10), Position(1, 20)), "another one is still at 10"
    assert places.slowest(Position(1, 0)) == Position(1, 10)
    assert places.slowest(Position(1, 11)) == Position(1, 20)
    assert places.moved(Position(1, 10), Position(1, 20))
    assert places.slowest(Position(1, 0)) == Position(1, 20)
    assert places.slowest(Position(1, 21)) is None


STEP = st.one_of(
    st.tuples(st.just("insert"), st.integers(0, 60), st.integers(1, 8)),
    st.tuples(st.just("get"), st.integers(0, 70), st.integers(1, 30)),
    st.tuples(st.just("wait"), st.integers(0, 8), st.just(0)),
    st.tuples(st.just("remove_before"), st.integers(0, 70), st.just(0)),
)


@settings(max_examples=200)
@given(st.lists(STEP, max_size=40))
def test_the_cache_gives_nothing_but_what_was_put_in_and_keeps_its_bounds(steps: list[tuple[str, int, int]]) -> None:
    cache = EntryCache(1500, 1.0)
    log = CachedLog(cache)
    known: set[int] = set()
    now = 0.0
    for name, first, second in steps:
        if name == "insert":
            log.insert(sealed(first, second), now)
            known |= set(range(first, first + second))
        elif name == "get":
            found = log.get(1, first, second, MANY, now)
            assert found is None or entries_of(found) == list(range(first, first + found.count))
            assert found is None or (found.count <= second and set(entries_of(found)) <= known)
        elif name == "remove_before":
            log.remove_before(Position(1, first))
        else:
            now += first / 4
            cache.evict(now)
        assert cache.size_bytes <= cache.bytes_max
        at = cache.next_eviction_at()
        assert (at is None) == (cache.size_bytes == 0)
    cache.evict(now + 10)
    assert cache.size_bytes == 0


def test_eviction_ends_when_removed_runs_stand_behind_one_that_was_asked_for() -> None:
    cache, log = cached()
    log.insert(sealed(0, 1), 0.0)
    log.insert(sealed(5, 1), 0.0)
    log.insert(sealed(6, 1), 0.0)
    assert log.get(1, 0, 1, MANY, 0.5) is not None
    assert log.get(1, 5, 2, MANY, 0.5) is not None, "5 and 6 are joined, and gone from the middle of the queue"
    cache.evict(1.2)
    assert log.get(1, 5, 2, MANY, 1.2) is not None
    cache.evict(5.0)
    assert cache.size_bytes == 0


def test_an_entry_of_the_first_run_of_a_ledger_is_in_the_cache() -> None:
    _, log = cached()
    log.insert(sealed(5, 3), 0.0)
    assert [Position(1, entry_id) in log for entry_id in (4, 5, 7, 8)] == [False, True, True, False]
    assert Position(2, 5) not in log


def test_a_cache_that_is_exactly_full_lets_nothing_go() -> None:
    size = sealed(0, 1).size_bytes
    cache = EntryCache(2 * size, 1000.0, lambda: None)
    log = CachedLog(cache)
    log.insert(sealed(0, 1), 0.0)
    log.insert(sealed(5, 1), 0.0)
    assert (cache.size_bytes, cache.evictions) == (2 * size, 0)


def test_the_reading_places_of_the_latest_readers_up_to_the_bound_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "PLACES_MAX", 3)
    found = ReadingPlaces()
    for number in range(4):
        found.moved(Position(1, 100 * number), Position(1, 100 * number + 1))
        known = [each for each in range(4) if Position(1, 100 * each + 1) in found]
        assert known == list(range(max(0, number - 2), number + 1))


@pytest.mark.parametrize(("pause_s", "is_fast"), [(4.9, True), (5.0, False)])
def test_a_reader_that_needs_less_than_half_of_the_caches_time_for_a_piece_is_read_ahead_for(
    pause_s: float, is_fast: bool
) -> None:
    pieces = Pieces(10.0)
    assert not pieces.entered(Position(1, 0), Position(1, 100), 0.0)
    assert pieces.entered(Position(1, 100), Position(1, 200), pause_s) is is_fast
