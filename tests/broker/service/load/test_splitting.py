"""Splits of bundles: when, and where."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.service.load.loads import BundleStats
from broker.service.load.splitting import (
    ALGORITHMS,
    CannotSplit,
    SplitRule,
    TopicLoad,
    at_positions,
    by_topics,
    by_traffic,
    cut_boundaries,
    in_two,
)
from broker.service.ownership.bundles import HASH_MAX, Bundle
from broker.service.topic_name import NamespaceName

NAMESPACE = NamespaceName("t", "n")


MB = float(1 << 20)


def topics(*hashes: int, rates: tuple[float, ...] = ()) -> list[TopicLoad]:
    return [TopicLoad(each, rate, rate * 100) for each, rate in zip(hashes, rates or (1.0,) * len(hashes), strict=True)]


@pytest.mark.parametrize(
    ("stats", "asks"),
    [
        (BundleStats(topics=1001), True),
        (BundleStats(topics=1000), False),
        (BundleStats(topics=2, consumer_count=600, producer_count=401), True),
        (BundleStats(topics=2, msg_rate_in=20_000, msg_rate_out=10_001), True),
        (BundleStats(topics=2, msg_throughput_out=101 * MB), True),
        (BundleStats(topics=1, msg_throughput_out=1000 * MB), False),
        (BundleStats(topics=2, msg_throughput_out=99 * MB), False),
    ],
)
def test_a_bundle_is_too_much_at_apaches_limits(stats: BundleStats, asks: bool) -> None:
    assert SplitRule().asks(stats) is asks
    assert not SplitRule(0, 0, 0, 0).asks(stats)


def test_the_cuts_of_each_algorithm() -> None:
    bundle = Bundle(NAMESPACE, 0, 1000)
    assert in_two(bundle, []) == [500]
    assert by_topics(bundle, topics(10, 20, 30, 900)) == [25]
    assert by_topics(bundle, topics(10, 10, 10, 900)) == [455]
    assert by_traffic(bundle, topics(10, 20, 30, 40, rates=(9.0, 1.0, 1.0, 1.0))) == [15]
    assert by_traffic(bundle, topics(10, 20, 30, 40, rates=(0.0,) * 4)) == [25]
    assert at_positions(bundle, [700, 300, 700]) == [300, 700]


@pytest.mark.parametrize(
    "cut",
    [
        lambda bundle: in_two(Bundle(NAMESPACE, 5, 6), []),
        lambda bundle: by_topics(bundle, topics(7)),
        lambda bundle: by_topics(bundle, topics(7, 7)),
        lambda bundle: by_traffic(bundle, topics(7)),
        lambda bundle: at_positions(bundle, []),
        lambda bundle: at_positions(bundle, [0]),
        lambda bundle: at_positions(bundle, [500, 1000]),
        lambda bundle: cut_boundaries((0, 500, HASH_MAX), bundle, [100], 0),
        lambda bundle: cut_boundaries((0, 1000, HASH_MAX), bundle, [100, 200], 3),
    ],
)
def test_an_impossible_split_is_refused_and_names_the_namespace(cut: object) -> None:
    with pytest.raises(CannotSplit, match="t/n"):
        cut(Bundle(NAMESPACE, 0, 1000))  # type: ignore[operator]


@given(
    st.lists(st.tuples(st.integers(100, 899), st.integers(0, 9)), min_size=2, max_size=20), st.sampled_from(list(ALGORITHMS))
)
def test_a_cut_leaves_both_sides_something_and_the_space_whole(plan: list[tuple[int, int]], name: str) -> None:
    bundle = Bundle(NAMESPACE, 100, 900)
    held = topics(*[each for each, _ in plan], rates=tuple(float(rate) for _, rate in plan))
    try:
        cuts = ALGORITHMS[name](bundle, held)
    except CannotSplit:
        assert len({each for each, _ in plan}) == 1
        return
    assert all(100 < cut < 900 for cut in cuts)
    if name != "range_equally_divide":
        assert any(each < cuts[0] for each, _ in plan)
        assert any(each >= cuts[0] for each, _ in plan)
    new = cut_boundaries((0, 100, 900, HASH_MAX), bundle, cuts, 128)
    assert all(low < high for low, high in pairwise(new))
    assert set(new) == {0, 100, 900, HASH_MAX, *cuts}
