"""The cache of segments stays within its bound, evicts what was used longest ago, and never a segment that is not stored."""

from hypothesis import given
from hypothesis import strategies as st

from managed_ledger.cursor.holes.segment_cache import HoleCache
from tests.invariants import checked_after_each_step
from wire.position import Position

checked_machines = checked_after_each_step(HoleCache)


class Owner:
    """A cursor that gives its segments away, but for those in `unstored`."""

    def __init__(self) -> None:
        self.unstored: set[Position] = set()
        self.evicted: list[int] = []

    def evict(self, start: Position) -> bool:
        if start in self.unstored:
            return False
        self.evicted.append(start.entry_id)
        return True


def at(entry_id: int) -> Position:
    return Position(1, entry_id)


def filled(owner: Owner, bytes_max: int, weights: list[int]) -> HoleCache:
    cache = HoleCache(bytes_max)
    for number, weight in enumerate(weights):
        cache.used(owner, at(number), weight)
    return cache


def test_a_full_cache_evicts_the_segments_used_longest_ago() -> None:
    owner = Owner()
    cache = filled(owner, 30, [10, 10, 10, 10, 10])
    cache.shrink()
    assert (owner.evicted, cache.size_bytes, cache.evictions, len(cache)) == ([0, 1], 30, 2, 3)


def test_a_segment_that_was_touched_is_evicted_last() -> None:
    owner = Owner()
    cache = filled(owner, 20, [10, 10, 10])
    cache.touched(owner, [at(0), at(99)])
    cache.shrink()
    assert owner.evicted == [1]


def test_a_segment_that_is_not_stored_stays_beyond_the_bound() -> None:
    owner = Owner()
    owner.unstored = {at(0), at(1), at(2)}
    cache = filled(owner, 10, [10, 10, 10])
    cache.shrink()
    assert (owner.evicted, cache.size_bytes, cache.evictions) == ([], 30, 0)


def test_segments_that_are_not_stored_come_on_top_of_the_bound() -> None:
    owner = Owner()
    owner.unstored = {at(0)}
    cache = filled(owner, 20, [10, 10, 10, 10])
    cache.shrink()
    assert (owner.evicted, cache.size_bytes) == ([1], 30)


def test_the_segments_that_the_caller_needs_now_stay_beyond_the_bound() -> None:
    owner = Owner()
    cache = filled(owner, 0, [10, 10, 10])
    cache.shrink(keep=2)
    assert (owner.evicted, len(cache)) == ([0], 2)


def test_a_segment_that_grew_counts_once_with_its_new_weight() -> None:
    owner = Owner()
    cache = filled(owner, 100, [10])
    cache.used(owner, at(0), 25)
    assert (cache.size_bytes, len(cache)) == (25, 1)


def test_a_closed_cursor_takes_its_segments_along_and_no_others() -> None:
    closed, other = Owner(), Owner()
    cache = filled(closed, 100, [10, 10])
    cache.used(other, at(0), 7)
    cache.forget(closed)
    assert (cache.size_bytes, len(cache)) == (7, 1)


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 40), st.booleans())), st.integers(0, 60))
def test_after_shrinking_the_stored_segments_are_within_the_bound(uses: list[tuple[int, int, bool]], bytes_max: int) -> None:
    owner, cache, weights = Owner(), HoleCache(bytes_max), dict[int, int]()
    for number, weight, is_stored in uses:
        weights[number] = weight
        (owner.unstored.discard if is_stored else owner.unstored.add)(at(number))
        cache.used(owner, at(number), weight)
    cache.shrink()
    kept = {number: weight for number, weight in weights.items() if number not in owner.evicted}
    assert cache.size_bytes == sum(kept.values())
    assert sum(weight for number, weight in kept.items() if at(number) not in owner.unstored) <= bytes_max


def test_segments_without_holes_any_more_leave_the_cache_and_unknown_ones_are_ignored() -> None:
    owner = Owner()
    cache = filled(owner, 100, [10, 20])
    cache.drop(owner, [at(1), at(9)])
    assert (cache.size_bytes, len(cache)) == (10, 1)
