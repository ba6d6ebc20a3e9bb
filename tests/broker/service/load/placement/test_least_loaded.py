"""The broker that is asked to serve a bundle without an owner."""

from broker.service.load.loads import BrokerLoad, BundleStats, Usage
from broker.service.load.placement.least_loaded import least_loaded
from broker.service.ownership.bundles import HASH_MAX, Bundles
from broker.service.topic_name import NamespaceName
from tests.broker.service.load.loads_of_brokers import history, load

NAMESPACE = NamespaceName("t", "n")


CUT = Bundles(NAMESPACE, tuple(HASH_MAX * index // 8 for index in range(9)))


def chosen(
    loads: dict[str, BrokerLoad], rates: dict[str, float], asked: dict[str, list[str]] | None = None
) -> list[str | None]:
    histories = {name: history(rate) for name, rate in rates.items()}
    return [least_loaded(CUT, bundle, sorted(loads), loads, histories, asked or {}, 0.85) for bundle in CUT.all()]


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
