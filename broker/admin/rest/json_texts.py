"""JSON of large values in many small texts, which together equal an encoder's text of the whole. Pure."""

from collections.abc import Callable, Iterator
from typing import Any

LARGE = 500
"""Members, also those of members: a body of less is encoded within a millisecond."""


def is_large(value: Any) -> bool:
    """Looks at LARGE members at most."""
    waiting, seen = [value], 0
    while waiting and seen <= LARGE:
        each = waiting.pop()
        if isinstance(each, dict | list | tuple):
            seen += len(each)
            if seen <= LARGE:
                waiting.extend(each.values() if isinstance(each, dict) else each)
    return seen > LARGE


def json_texts(value: Any, encode: Callable[[Any], str]) -> Iterator[str]:
    """Pieces of the JSON text, without spaces. Small values are encoded in one piece."""
    if not is_large(value):
        yield encode(value)
    elif isinstance(value, dict):
        yield from _members(((encode(str(key)) + ":", each) for key, each in value.items()), "{}", encode)
    else:
        yield from _members((("", each) for each in value), "[]", encode)


def _members(members: Iterator[tuple[str, Any]], brackets: str, encode: Callable[[Any], str]) -> Iterator[str]:
    before = brackets[0]
    for head, each in members:
        yield before + head
        yield from json_texts(each, encode)
        before = ","
    yield brackets[1]
