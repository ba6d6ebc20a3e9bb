"""Rules of placement that do not look at load."""

from broker.service.load.placement.rules import PlacementRules, namespace_counts, namespace_of_bundle, spread


def test_the_namespace_of_a_bundle_is_the_part_before_its_range() -> None:
    assert namespace_of_bundle("tenant/space/0x00000000_0x40000000") == "tenant/space"


def test_namespaces_of_a_group_are_counted_once_for_each_broker_and_without_case() -> None:
    groups = {"t/a": "Red", "t/b": "red", "t/c": "blue"}
    hosted = {"one": ["t/a", "t/a", "t/b"], "two": ["t/c"], "three": ["t/b"]}
    assert namespace_counts("RED", groups, hosted) == {"one": 2, "three": 1}


def test_brokers_with_the_least_of_a_group_are_left_and_domains_count_first() -> None:
    assert spread(["one", "two", "three"], {"one": 2, "three": 1}, {}) == ["two"]
    domains = {"one": "east", "two": "east", "three": "west"}
    assert spread(["one", "two", "three"], {"one": 2, "three": 1}, domains) == ["three"]


def test_a_namespace_without_a_group_may_have_every_broker() -> None:
    assert PlacementRules().homes("t/a/0x0_0x1", ["one", "two"], {"one": ["t/a/0x1_0x2"]}) == ["one", "two"]
    rules = PlacementRules(groups={"t/a": "red", "t/b": "red"})
    assert rules.homes("t/a/0x0_0x1", ["one", "two"], {"one": ["t/b/0x0_0x1"]}) == ["two"]
