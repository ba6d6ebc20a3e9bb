"""The fewest messages that are out of order, against the twin that tries everything."""

import itertools

import numpy
from hypothesis import given
from hypothesis import strategies as st

from pipeline.pyspark_pulsar.jobs.on_spark.order import moved


def fewest(ranks: tuple[int, ...]) -> int:
    """Fewest messages out of order, found by trying every choice of those that stay."""
    for size in range(len(ranks), 0, -1):
        for stay in itertools.combinations(ranks, size):
            if list(stay) == sorted(stay):
                return len(ranks) - size
    return 0


@given(st.integers(0, 8).flatmap(lambda count: st.permutations(range(count))))
def test_the_moved_ranks_are_the_fewest_that_leave_the_others_in_order(ranks: list[int]) -> None:
    found = moved(numpy.array(ranks, numpy.int64))
    stay = [rank for rank, is_moved in zip(ranks, found, strict=True) if not is_moved]
    assert stay == sorted(stay)
    assert int(found.sum()) == fewest(tuple(ranks))


@given(st.integers(10, 3000), st.sets(st.integers(0, 1400), max_size=30))
def test_neighbours_that_were_swapped_cost_one_of_the_two(count: int, pairs: set[int]) -> None:
    ranks = numpy.arange(count)
    chosen = [2 * pair for pair in pairs if 2 * pair + 1 < count]
    for first in chosen:
        ranks[[first, first + 1]] = ranks[[first + 1, first]]
    places = numpy.flatnonzero(moved(ranks)).tolist()
    assert sorted(place // 2 * 2 for place in places) == sorted(chosen)


def test_one_that_comes_far_too_late_is_the_only_one() -> None:
    ranks = numpy.concatenate((numpy.arange(1, 100_000), [0]))
    assert numpy.flatnonzero(moved(ranks)).tolist() == [99_999]
