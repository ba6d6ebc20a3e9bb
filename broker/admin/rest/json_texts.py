"""JSON of large values in many small texts, which together equal an encoder's text of the whole. Pure.

Keeps no member whose text is made: members leave memory one by one. All at once took 100 ms for the stats of 30,000
subscriptions, for which the caller must keep none either.
"""

from collections.abc import Callable, Iterator
from typing import Any

from ports.loop.slices import items_taken_apart

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
        return
    is_object = isinstance(value, dict)
    members = items_taken_apart(value if is_object else dict(enumerate(value)))
    del value
    before, end = "{}" if is_object else "[]"
    for key, each in members:
        head, texts = encode(str(key)) + ":" if is_object else "", json_texts(each, encode)
        del each  # the texts alone have it: its own members leave one by one too
        yield before + head
        yield from texts
        before = ","
    yield end
