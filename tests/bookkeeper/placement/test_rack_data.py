"""RackData: places of bookies, from the value of /bookies."""

import pytest

from bookkeeper.placement.rack_data import MalformedRackData, parse_groups, parse_rack_data

VALUE = b"""{"default": {"a:3181": {"rack": "/r1/", "hostname": "a"}, "b:3181": {"rack": "zone//d1"}},
    "other": {"c:3181": {"rack": "/r2"}}}"""


def test_places_begin_with_a_slash_and_have_one_between_two_names() -> None:
    assert parse_rack_data(VALUE) == {"a:3181": "/r1", "b:3181": "/zone/d1", "c:3181": "/r2"}


def test_groups_have_the_bookies_that_the_value_names_in_them() -> None:
    assert parse_groups(VALUE) == {"default": {"a:3181", "b:3181"}, "other": {"c:3181"}}


def test_an_empty_value_names_no_bookie() -> None:
    assert parse_rack_data(b"") == {}
    assert parse_groups(b"") == {}


@pytest.mark.parametrize(
    "value", [b"{", b"[1]", b'{"g": {"a": {}}}', b'{"g": {"a": {"rack": "/"}}}', b'{"g": {"a": {"rack": 1}}}', b'{"g": 1}']
)
def test_another_value_is_refused_with_the_value_in_the_error(value: bytes) -> None:
    with pytest.raises(MalformedRackData) as refused:
        parse_rack_data(value)
    assert repr(value) in str(refused.value)
