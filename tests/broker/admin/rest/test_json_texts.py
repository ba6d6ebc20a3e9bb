"""Large JSON in many texts: the same document, and no text is long."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from broker.admin.rest.json_texts import LARGE, Written, is_large, json_texts

encode = json.JSONEncoder(separators=(",", ":")).encode
SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
SMALL = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner, max_size=4)
)


@given(SMALL, st.integers(1, 3), st.booleans())
def test_the_texts_together_are_what_the_encoder_makes(value: Any, factor: int, is_list: bool) -> None:
    many: Any = [value] * (factor * LARGE) if is_list else {str(number): value for number in range(factor * LARGE)}
    document = {"a": many, "b": [many, value], "c": value}
    assert "".join(json_texts(document, encode)) == encode(document)


def test_a_large_document_is_encoded_in_short_texts() -> None:
    document = {"subscriptions": {f"s-{number}": {"a": number, "b": [1, 2, 3]} for number in range(3000)}}
    assert max(map(len, json_texts(document, encode))) < 1000


def test_whether_a_value_is_large_is_known_without_a_look_at_all_of_it() -> None:
    assert is_large(list(range(LARGE + 1)))
    assert is_large({"a": {str(number): number for number in range(LARGE)}})
    assert not is_large({"a": list(range(LARGE - 1))})
    assert not is_large("x" * 10_000)


@given(SMALL, st.integers(0, 3))
def test_an_object_that_is_written_already_is_not_encoded_again(value: Any, count: int) -> None:
    members = {f"m{number}": value for number in range(count)}
    written = Written({name: encode(each) for name, each in members.items()})
    assert "".join(json_texts([{"a": written}, value], encode)) == encode([{"a": members}, value])
