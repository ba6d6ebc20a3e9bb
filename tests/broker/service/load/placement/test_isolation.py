"""Brokers that may have a bundle: isolation policies, anti-affinity groups, and the moves that follow from them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.service.load.loads import BrokerLoad, BundleStats, Usage
from broker.service.load.placement.isolation import (
    InvalidPolicy,
    IsolationPolicies,
    IsolationPolicy,
    decode_policies,
    encode_policies,
    parse_policy,
    policy_document,
    to_unload,
)
from broker.service.load.placement.rules import PlacementRules, namespace_counts, spread
from broker.service.load.shedding import ThresholdRule, TransferRule, by_threshold, by_transfer
from metadata.store import MetadataError

BROKERS = ["b1:8080", "b2:8080", "b3:8080", "b4:8080"]
MB = float(1 << 20)


def document(**changed: Any) -> dict[str, Any]:
    """Policy as Apache's admin sends and stores it."""
    failover = {"policy_type": "min_available", "parameters": {"min_limit": "2", "usage_threshold": "80"}}
    whole = {"namespaces": ["gold/.*"], "primary": ["b[12]"], "secondary": ["b3"], "auto_failover_policy": failover}
    return whole | changed


def policies(**by_name: IsolationPolicy) -> IsolationPolicies:
    return IsolationPolicies(by_name)


GOLD = IsolationPolicy(("gold/.*",), ("b[12]",), ("b3",), 2, 80)


# Isolation


def test_apaches_document_is_read_and_written_as_it_is() -> None:
    assert parse_policy(document()) == GOLD
    for each in (document(), document(unload_scope="none"), document(secondary=[])):
        assert policy_document(parse_policy(each)) == each
    stored = json.dumps({"p": document()}, separators=(",", ":")).encode()
    assert encode_policies(decode_policies(stored)) == stored


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"namespaces": []}, "namespaces"),
        ({"primary": []}, "primary"),
        ({"primary": ["b["]}, r"primary: invalid policy regex b\["),
        ({"primary": ["b(?!1)."]}, r"primary: invalid policy regex b\(\?!1\)\."),
        ({"namespaces": ["(gold)/\\1"]}, r"namespaces: invalid policy regex \(gold\)"),
        ({"secondary": None}, "secondary"),
        ({"secondary": "b3"}, "secondary"),
        ({"auto_failover_policy": None}, "auto_failover_policy"),
        ({"auto_failover_policy": {"policy_type": "other", "parameters": {}}}, "min_available"),
        ({"auto_failover_policy": {"policy_type": "min_available"}}, "min_limit"),
        ({"auto_failover_policy": {"policy_type": "min_available", "parameters": {"min_limit": "x"}}}, "min_limit"),
        ({"auto_failover_policy": {"policy_type": "min_available", "parameters": {"min_limit": "1"}}}, "usage_threshold"),
        ({"unload_scope": "some"}, "unload_scope"),
    ],
)
def test_an_invalid_isolation_policy_is_refused_by_the_name_of_the_bad_field(changed: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidPolicy, match=named):
        parse_policy(document(**changed))
    with pytest.raises(MetadataError):
        decode_policies(json.dumps({"p": document(**changed)}).encode())


@pytest.mark.parametrize("value", [b"[]", b"{", b"7", b'{"p":7}'])
def test_stored_bytes_that_are_no_policies_are_an_error(value: bytes) -> None:
    with pytest.raises(MetadataError):
        decode_policies(value)


def test_primaries_serve_and_secondaries_help_when_these_are_too_few() -> None:
    cluster = policies(gold=GOLD)
    assert cluster.allowed("gold/a", BROKERS) == ["b1:8080", "b2:8080"]
    assert cluster.allowed("gold/a", BROKERS[1:]) == ["b2:8080", "b3:8080"]
    assert cluster.allowed("gold/a", ["b3:8080", "b4:8080"]) == ["b3:8080"]
    assert cluster.allowed("gold/a", ["b4:8080"]) == []


def test_a_namespace_without_a_policy_is_served_by_brokers_that_are_nobodys_primary() -> None:
    assert policies(gold=GOLD).allowed("silver/a", BROKERS) == ["b3:8080", "b4:8080"]
    assert policies().allowed("silver/a", BROKERS) == BROKERS
    assert policies(gold=GOLD).allowed("silver/a", BROKERS[:2]) == []


def test_expressions_match_as_a_whole_and_a_broker_by_its_host() -> None:
    assert GOLD.is_primary("b1:8080")
    assert not GOLD.is_primary("b11:8080")
    assert not GOLD.is_primary("xb1:8080")
    assert GOLD.covers("gold/a")
    assert not GOLD.covers("notgold/a")
    assert not IsolationPolicy(("gold",), ("b1",), (), 1, 100).covers("gold/a")


def test_the_first_of_two_policies_for_a_namespace_counts() -> None:
    other = IsolationPolicy(("gold/a",), ("b4",), (), 1, 100)
    assert policies(gold=GOLD, other=other).allowed("gold/a", BROKERS) == ["b1:8080", "b2:8080"]
    assert policies(other=other, gold=GOLD).allowed("gold/a", BROKERS) == ["b4:8080"]


def test_a_policy_that_is_set_unloads_what_it_places_anew() -> None:
    names = ["gold/a", "gold/b", "silver/a"]
    first = IsolationPolicy(("gold/a",), ("b1",), (), 1, 100)
    assert to_unload(names, None, first) == ["gold/a"]
    wider = IsolationPolicy(("gold/a", "gold/b"), ("b1",), (), 1, 100)
    assert to_unload(names, first, wider) == ["gold/b"], "gold/a is where it was"
    assert to_unload(names, wider, first) == ["gold/b"], "no longer covered"
    assert to_unload(names, first, IsolationPolicy(("gold/a",), ("b2",), (), 1, 100)) == ["gold/a"]
    assert to_unload(names, first, IsolationPolicy(("gold/a",), ("b1",), (), 1, 100, "all_matching")) == ["gold/a"]
    assert to_unload(names, None, IsolationPolicy(("gold/a",), ("b1",), (), 1, 100, "none")) == []


# Anti-affinity


def test_namespaces_of_a_group_are_counted_once_for_each_broker() -> None:
    groups = {"t/a": "g", "t/b": "G", "t/c": "other"}
    hosted = {"b1": ["t/a", "t/a", "t/b", "t/c"], "b2": ["t/c"], "b3": ["t/b"]}
    assert namespace_counts("g", groups, hosted) == {"b1": 2, "b3": 1}


def test_a_group_is_spread_over_domains_first_and_then_over_brokers() -> None:
    """The example of Apache's LoadManagerShared: domains with 3, 3 and 4, and in each of the first two a broker with 1."""
    counts = {"b1": 2, "b2": 1, "b3": 2, "b4": 1, "b5": 2, "b6": 2}
    domains = {"b1": "d1", "b2": "d1", "b3": "d2", "b4": "d2", "b5": "d3", "b6": "d3"}
    assert spread(list(counts), counts, domains) == ["b2", "b4"]
    assert spread(["b1", "b5"], counts, {}) == ["b1", "b5"]
    assert spread(["b1", "b9"], counts, domains) == ["b9"], "in no domain, and with nothing"
    assert spread([], counts, domains) == []


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 3)),
    st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(["x", "y", "z"])),
    st.sets(st.sampled_from("abcdef"), min_size=1),
)
def test_there_is_always_somebody_left_and_nobody_in_a_domain_with_more(
    counts: dict[str, int], domains: dict[str, str], candidates: set[str]
) -> None:
    found = spread(sorted(candidates), counts, domains)
    assert found
    assert set(found) <= candidates

    def total(broker: str) -> int:
        same = [each for each in candidates if domains.get(each) == domains.get(broker)]
        return sum(counts.get(each, 0) for each in same)

    if domains:
        assert {total(broker) for broker in found} == {min(total(broker) for broker in candidates)}


def test_rules_isolate_before_they_spread() -> None:
    groups = {"gold/a": "g", "gold/b": "g"}
    rules = PlacementRules(policies(gold=GOLD), groups)
    hosted = {"b1:8080": ["gold/b/0x0_0xf"], "b2:8080": [], "b3:8080": [], "b4:8080": []}
    assert rules.homes("gold/a/0x0_0xf", BROKERS, hosted) == ["b2:8080"]
    assert rules.homes("gold/b/0x0_0xf", BROKERS, hosted) == ["b1:8080", "b2:8080"], "where it is it does not count"
    assert rules.homes("silver/a/0x0_0xf", BROKERS, hosted) == ["b3:8080", "b4:8080"]


# Shedding


def load(usage: float, *names: str) -> BrokerLoad:
    return BrokerLoad(
        Usage(usage), {name: BundleStats(msg_throughput_in=(20 + place) * MB) for place, name in enumerate(names)}
    )


LOADS = {"a": load(0.9, "1", "2", "3"), "b": load(0.1), "c": load(0.2)}
USAGES = {name: each.usage.greatest for name, each in LOADS.items()}


def test_a_bundle_that_only_its_broker_may_have_is_not_given_away() -> None:
    assert [move.bundle for move in by_threshold(LOADS, USAGES, (), ThresholdRule(0.1))] == ["3", "2"]
    kept = by_threshold(LOADS, USAGES, (), ThresholdRule(0.1), lambda bundle: ["a"] if bundle == "3" else ["a", "b"])
    assert [move.bundle for move in kept] == ["2", "1"]
    assert by_threshold(LOADS, USAGES, (), ThresholdRule(0.1), lambda _: []) == []


def test_a_bundle_is_transferred_only_to_a_broker_that_may_have_it() -> None:
    free = by_transfer(LOADS, USAGES, (), TransferRule(0.2))
    assert free[0].destination == "b"
    moves = by_transfer(LOADS, USAGES, (), TransferRule(0.2), lambda _: ["a", "c"])
    assert moves
    assert {move.destination for move in moves} == {"c"}
    assert by_transfer(LOADS, USAGES, (), TransferRule(0.2), lambda _: ["a"]) == []
