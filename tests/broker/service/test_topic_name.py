"""Topic and namespace names are taken and refused as Apache takes and refuses them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import BrokerError, ServerError
from broker.service.topic_name import NAME_CHARACTERS_MAX, NamespaceName, TopicName


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("x", "persistent://public/default/x"),
        ("/x", "persistent://public/default/x"),
        ("t/n/x", "persistent://t/n/x"),
        ("persistent://t/n/x", "persistent://t/n/x"),
        ("non-persistent://t/n/x", "non-persistent://t/n/x"),
        ("persistent://a-b=c:d.e_f/n.1/x y%zß", "persistent://a-b=c:d.e_f/n.1/x y%zß"),
    ],
)
def test_names_in_all_their_forms(text: str, full: str) -> None:
    name = TopicName.parse(text)
    assert str(name) == full
    assert TopicName.parse(full) == name
    assert name.is_persistent == full.startswith("persistent")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "a/b",
        "a/b/c/d",
        "a//b/c",
        "persistent://",
        "persistent://t/n",
        "persistent://t/n/",
        "persistent://t/c/n/x",
        "persistent://t/c/n/x/y",
        "persistent:///n/x",
        "persistent://t//x",
        "persistent://t t/n/x",
        "persistent://t/ñ/x",
        "http://t/n/x",
        "Persistent://t/n/x",
        "://t/n/x",
        "x" * (NAME_CHARACTERS_MAX + 1),
    ],
)
def test_names_that_are_refused(text: str) -> None:
    with pytest.raises(BrokerError) as caught:
        TopicName.parse(text)
    assert caught.value.code is ServerError.INVALID_TOPIC_NAME
    assert len(caught.value.message) < 400


@pytest.mark.parametrize("text", ["", "t", "t/", "/n", "t/c/n", "t t/n", "t/n/", "\u0661/n"])
def test_namespaces_that_are_refused(text: str) -> None:
    with pytest.raises(BrokerError):
        NamespaceName.parse(text)


@pytest.mark.parametrize(
    ("local_name", "index", "base"),
    [
        ("x", -1, "x"),
        ("x-partition-0", 0, "x"),
        ("x-partition-12", 12, "x"),
        ("x-partition-012", -1, "x-partition-012"),
        ("x-partition--1", -1, "x-partition--1"),
        ("x-partition-", -1, "x-partition-"),
        ("x-partition-1a", -1, "x-partition-1a"),
        ("x-partition-\u0661", -1, "x-partition-\u0661"),
        ("x-partition-99999999999", -1, "x-partition-99999999999"),
        ("x-partition-2147483648", -1, "x-partition-2147483648"),
        ("x-partition-0-s-DLQ", -1, "x-partition-0-s-DLQ"),
        ("x-partition-1-partition-2", 2, "x-partition-1"),
    ],
)
def test_partitions_are_known_by_their_suffix(local_name: str, index: int, base: str) -> None:
    name = TopicName.parse(f"persistent://t/n/{local_name}")
    assert (name.partition_index, name.is_partition) == (index, index >= 0)
    assert name.partitioned.local_name == base
    if index >= 0:
        assert name.partitioned.partition(index) == name


def test_metadata_paths_are_apaches() -> None:
    name = TopicName.parse("persistent://t/n/a b/c".replace("/c", "%2F~*é"))
    assert name.managed_ledger_name == "t/n/persistent/a+b%252F%7E*%C3%A9"
    assert name.managed_ledger_path == "/managed-ledgers/t/n/persistent/a+b%252F%7E*%C3%A9"
    assert name.partitions_path == "/admin/partitioned-topics/t/n/persistent/a+b%252F%7E*%C3%A9"


@given(st.text(st.characters(exclude_characters="/", exclude_categories=["Cs"]), min_size=1, max_size=40))
def test_a_name_comes_back_from_metadata_as_it_was(local_name: str) -> None:
    name = TopicName.parse(f"persistent://t/n/{local_name}")
    encoded = name.managed_ledger_path.rpartition("/")[2]
    assert encoded.isascii()
    assert TopicName.of_metadata("persistent", name.namespace, encoded) == name


def test_a_node_that_pulsar_would_not_have_written_is_taken_as_it_is() -> None:
    assert TopicName.of_metadata("persistent", NamespaceName("t", "n"), "a%zz").local_name == "a%zz"
