"""Names as URLEncoder and URLDecoder of a JDK 17 have them, and the shape of paths."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from metadata.paths import check_path, decode_name, encode_name, is_at_or_below, join_path, split_path
from metadata.store import MetadataError

GOLDEN = [
    ("plain-topic_1.x*", "plain-topic_1.x*"),
    ("a b", "a+b"),
    ("a+b", "a%2Bb"),
    ("a/b", "a%2Fb"),
    ("~", "%7E"),
    ("!'()", "%21%27%28%29"),
    ("@:$&,;=?#[]", "%40%3A%24%26%2C%3B%3D%3F%23%5B%5D"),
    ("100%", "100%25"),
    ("ü€😀", "%C3%BC%E2%82%AC%F0%9F%98%80"),
    ("topic-partition-0", "topic-partition-0"),
    ("__change_events", "__change_events"),
    ("pulsar.repl.us-west", "pulsar.repl.us-west"),
    ("\n\x00", "%0A%00"),
]


@pytest.mark.parametrize(("name", "encoded"), GOLDEN)
def test_names_are_encoded_as_by_java(name: str, encoded: str) -> None:
    assert encode_name(name) == encoded
    assert decode_name(encoded) == name


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_every_name_comes_back_and_is_one_path_element(name: str) -> None:
    encoded = encode_name(name)
    assert decode_name(encoded) == name
    assert set(encoded) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-*+%")


def test_java_reads_lower_case_digits_and_a_lone_surrogate_is_a_question_mark() -> None:
    assert decode_name("%c3%bc~") == "ü~"
    assert encode_name("\ud800") == "%3F"


@pytest.mark.parametrize("encoded", ["%", "a%2", "%zz", "%-1", "%+1"])
def test_percent_encodings_that_java_refuses_are_refused(encoded: str) -> None:
    with pytest.raises(ValueError, match="percent"):
        decode_name(encoded)


@pytest.mark.parametrize("path", ["", "a", "a/b", "//", "/a/", "/a//b"])
def test_malformed_paths_are_refused(path: str) -> None:
    with pytest.raises(MetadataError):
        check_path(path)


def test_paths_are_taken_apart_and_put_together() -> None:
    for path in ("/a", "/a/b", "/a/b/c"):
        check_path(path)
        assert join_path(*split_path(path)) == path
    assert split_path("/a") == ("/", "a")
    assert is_at_or_below("/a/b", "/a")
    assert is_at_or_below("/a", "/a")
    assert is_at_or_below("/x", "/")
    assert not is_at_or_below("/ab", "/a")
    assert not is_at_or_below("/", "/a")
