"""Properties files and settings dataclasses."""

from dataclasses import dataclass

import pytest

from ports.properties import MalformedProperties, Property, parse_properties
from ports.settings import BadSetting, build_settings, known_key


@dataclass(frozen=True)
class Example:
    managed_ledger_cache_size_mb: int = 64
    journal_sync_data: bool = True
    rate: float = 1.0
    super_user_roles: tuple[str, ...] = ()
    advertised_address: str | None = None

    def __post_init__(self) -> None:
        if self.rate <= 0:
            raise ValueError("rate must be positive")


def test_comments_continuations_and_both_separators_are_read() -> None:
    text = "# a\n! b\n\na=1\nb : two=2\nc=x,\\\n   y\n"
    assert parse_properties(text) == [Property("a", "1", 4), Property("b", "two=2", 5), Property("c", "x,y", 6)]


def test_a_line_without_separator_names_its_number() -> None:
    with pytest.raises(MalformedProperties, match="line 2"):
        parse_properties("a=1\nnonsense\n")


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("clusterName   a b", "clusterName", "a b"),
        ("clusterName : a b", "clusterName", "a b"),
        (r"clusterName=a\tb\u0041\=c", "clusterName", "a\tbA=c"),
        (r"parameters={\"a\":\"b:c\"}", "parameters", '{"a":"b:c"}'),
        ("path=C:" + 2 * "\\" + "data" + 2 * "\\", "path", "C:" + "\\" + "data" + "\\"),
        ("empty=", "empty", ""),
    ],
)
def test_a_line_is_read_as_java_reads_it(text: str, key: str, value: str) -> None:
    """The first three values are what Apache 4.0.8 makes of these lines."""
    assert parse_properties(text) == [Property(key, value, 1)]


@dataclass(frozen=True)
class Several:
    count: int = 3
    share: float = 0.5
    is_on: bool = True
    name: str = "x"
    port: int | None = 5
    names: tuple[str, ...] = ("a",)


def test_an_empty_value_leaves_a_number_a_word_or_a_switch_at_its_default() -> None:
    """Apache's FieldParser does the same; optional values become absent, and a list empty."""
    made = build_settings(Several, {"count": "", "share": " ", "isOn": "", "name": "", "port": "", "names": ""})
    assert made == Several(port=None, names=())


def test_apaches_spelling_finds_the_field_and_its_type() -> None:
    values = {"managedLedgerCacheSizeMB": "5", "journalSyncData": "FALSE", "superUserRoles": "a, b,", "advertisedAddress": ""}
    assert build_settings(Example, values) == Example(5, False, 1.0, ("a", "b"), None)


@pytest.mark.parametrize(("key", "value"), [("journalSyncData", "yes"), ("managedLedgerCacheSizeMB", "1.5"), ("rate", "x")])
def test_a_value_of_the_wrong_kind_is_refused_with_its_key(key: str, value: str) -> None:
    with pytest.raises(BadSetting, match=f"{key}={value}"):
        build_settings(Example, {key: value})


def test_validation_of_the_dataclass_is_a_bad_setting() -> None:
    with pytest.raises(BadSetting, match="rate must be positive"):
        build_settings(Example, {"rate": "0"})


def test_an_unknown_key_is_refused_with_the_nearest_right_name() -> None:
    with pytest.raises(BadSetting, match="did you mean brokerServicePort"):
        known_key("brokerServisePort", ["brokerServicePort", "webServicePort"])
    with pytest.raises(BadSetting, match=r"unknown setting zzzzzz; nothing is called like it"):
        known_key("zzzzzz", ["brokerServicePort"])
