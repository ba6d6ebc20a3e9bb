"""Decisions about bundles: placement, shedding, splitting."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.service.load.loads import BrokerLoad, BundleHistory, BundleStats, Usage
from broker.service.load.placement.least_loaded import least_loaded
from broker.service.load.shedding import Move, ThresholdRule, TransferRule, UsageHistory, by_threshold, by_transfer
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
from broker.service.ownership.bundles import HASH_MAX, Bundle, Bundles
from broker.service.topic_name import NamespaceName

NAMESPACE = NamespaceName("t", "n")
CUT = Bundles(NAMESPACE, tuple(HASH_MAX * index // 8 for index in range(9)))
MB = float(1 << 20)


def history(rate: float) -> BundleHistory:
    return BundleHistory().after(BundleStats(msg_rate_in=rate))


def load(usage: float, *throughputs: float) -> BrokerLoad:
    """Bundles `0`, `1`, ... with so many MB/s each."""
    bundles = {str(index): BundleStats(msg_throughput_in=each * MB) for index, each in enumerate(throughputs)}
    return BrokerLoad(Usage(usage), bundles)


def chosen(
    loads: dict[str, BrokerLoad], rates: dict[str, float], asked: dict[str, list[str]] | None = None
) -> list[str | None]:
    histories = {name: history(rate) for name, rate in rates.items()}
    return [least_loaded(CUT, bundle, sorted(loads), loads, histories, asked or {}, 0.85) for bundle in CUT.all()]


# Placement


def test_without_any_load_every_broker_gets_as_many_as_any_other() -> None:
    found = chosen({name: BrokerLoad() for name in "abcd"}, {})
    assert sorted(found.count(name) for name in "abcd") == [2, 2, 2, 2]


def test_the_broker_with_the_least_messages_for_long_is_asked() -> None:
    loads = {"a": load(0.1, 1), "b": BrokerLoad(Usage(0.7), {"x": BundleStats(), "y": BundleStats()})}
    assert set(chosen(loads, {"0": 900.0, "x": 300.0, "y": 400.0})) == {"b"}
    assert set(chosen(loads, {"0": 600.0, "x": 300.0, "y": 400.0})) == {"a"}
    assert set(chosen(loads, {"0": 600.0, "x": 100.0, "y": 100.0}, {"b": ["z1", "z2", "z3", "z4", "z5"]})) == {"a"}


def test_a_broker_that_is_used_up_is_asked_only_when_all_are() -> None:
    assert set(chosen({"a": load(0.9), "b": load(0.5, 1)}, {"0": 5000.0})) == {"b"}
    assert set(chosen({"a": load(0.9), "b": load(0.95, 1)}, {"0": 5000.0})) == {"a"}
    assert chosen({}, {}) == [None] * 8


# Shedding


def usages(loads: dict[str, BrokerLoad]) -> dict[str, float]:
    return {name: each.usage.greatest for name, each in loads.items()}


def test_a_broker_far_above_the_mean_gives_its_busiest_bundles_away() -> None:
    loads = {"a": load(0.9, 40, 30, 20, 10), "b": load(0.3, 1), "c": load(0.3, 1)}
    moves = by_threshold(loads, usages(loads), (), ThresholdRule(0.1))
    assert moves == [Move("0", "a")]  # 0.9 - 0.5 - 0.1 + 0.05 of 0.9 is 39 %
    assert by_threshold(loads, usages(loads), ["0"], ThresholdRule(0.1)) == [Move("1", "a"), Move("2", "a")]


@pytest.mark.parametrize(
    "loads",
    [
        {"a": load(0.9, 40, 30)},
        {"a": load(0.55, 40, 30), "b": load(0.4, 1)},
        {"a": load(0.9, 100), "b": load(0.1)},
        {"a": load(0.9, 3, 3), "b": load(0.1)},
        {"a": load(0.9, 40, 30), "b": load(0.9, 40, 30)},
    ],
    ids=["alone", "within the threshold", "one bundle", "hardly any traffic", "all alike"],
)
def test_nothing_is_moved_for_nothing(loads: dict[str, BrokerLoad]) -> None:
    assert by_threshold(loads, usages(loads), (), ThresholdRule(0.1)) == []


def test_transfers_bring_the_usages_together() -> None:
    loads = {"a": load(0.9, 30, 30, 20, 10), "b": load(0.1, 1), "c": load(0.2, 1)}
    moves = by_transfer(loads, usages(loads), (), TransferRule(0.1))
    assert {move.source for move in moves} == {"a"}
    assert {move.destination for move in moves} == {"b", "c"}
    assert len({move.bundle for move in moves}) == len(moves)
    assert by_transfer(loads, usages(loads), (), TransferRule(0.5)) == []
    assert by_transfer(loads, usages(loads), list("0123"), TransferRule(0.1)) == []


@given(st.lists(st.tuples(st.integers(0, 100), st.lists(st.integers(0, 50), max_size=6)), max_size=6))
def test_no_transfer_makes_it_worse(plan: list[tuple[int, list[int]]]) -> None:
    loads = {}
    for number, (usage, throughputs) in enumerate(plan):
        each = load(usage / 100, *map(float, throughputs))
        loads[str(number)] = BrokerLoad(each.usage, {f"{number}-{name}": stats for name, stats in each.bundles.items()})
    before = usages(loads)
    after = dict(before)
    for move in by_transfer(loads, before, (), TransferRule(0.05)):
        source = loads[move.source]
        share = before[move.source] * source.bundles[move.bundle].msg_throughput / source.total.msg_throughput
        assert move.destination is not None
        assert after[move.source] - share >= after[move.destination] + share - 1e-9
        after[move.source] -= share
        after[move.destination] += share


def test_a_peak_alone_is_averaged_away() -> None:
    history = UsageHistory(0.2)
    assert history.after(1.0, 0.9).usage == pytest.approx(0.28)


# Splitting


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
def test_what_cannot_be_cut_says_why(cut: object) -> None:
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
