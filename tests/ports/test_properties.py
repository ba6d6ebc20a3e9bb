"""Java properties files."""

import pytest

from ports.properties import MalformedProperties, Property, parse_properties


def test_the_three_separators_of_java_are_understood() -> None:
    found = parse_properties("a=1\nb: 2\nc 3\nd = x = y\n")
    assert [(each.key, each.value) for each in found] == [("a", "1"), ("b", "2"), ("c", "3"), ("d", "x = y")]


def test_comments_and_empty_lines_have_no_property_and_lines_are_counted() -> None:
    assert parse_properties("# one\n\n! two\nkey=value\n") == [Property("key", "value", 4)]


def test_a_line_that_ends_in_a_backslash_goes_on_and_two_backslashes_are_one() -> None:
    assert parse_properties("a=1,\\\n   2\nb=x\\\\\nc=3\n") == [
        Property("a", "1,2", 1),
        Property("b", "x\\", 3),
        Property("c", "3", 4),
    ]


def test_escapes_are_those_of_java() -> None:
    (found,) = parse_properties("path\\=of=\\u0041\\tB")
    assert (found.key, found.value) == ("path=of", "A\tB")


def test_a_line_without_a_value_is_refused_with_its_number() -> None:
    with pytest.raises(MalformedProperties, match="line 2"):
        parse_properties("a=1\nlonely\n")
