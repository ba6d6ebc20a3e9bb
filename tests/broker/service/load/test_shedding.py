"""Bundles that a leader moves from busy brokers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.service.load.loads import BrokerLoad
from broker.service.load.shedding import Move, ThresholdRule, TransferRule, UsageHistory, by_threshold, by_transfer
from tests.broker.service.load.loads_of_brokers import load


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
