"""JSON of large values in many small texts, which together equal an encoder's text of the whole. Pure.

An object may be `Written` already, so that its members are not very many objects for the cycle collector to look at: 58 ms for
those of 10,000 subscriptions.

Keeps no member whose text is made: members leave memory one by one. All at once took 100 ms for the stats of 30,000
subscriptions, for which the caller must keep none either.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

from ports.loop.taking_apart import items_taken_apart

LARGE = 500
"""Members, also those of members: a body of less is encoded within a millisecond."""

ENCODER = json.JSONEncoder(separators=(",", ":"))
"""json.dumps would make one for each answer."""


class Written(dict[str, str]):
    """An object whose values are JSON texts."""


def is_large(value: Any) -> bool:
    """Looks at LARGE members at most. What is written counts as large, for it is not encoded again."""
    waiting, seen = [value], 0
    while waiting and seen <= LARGE:
        each = waiting.pop()
        if isinstance(each, Written) and each:
            return True
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
    is_object, is_written = isinstance(value, dict), isinstance(value, Written)
    members = items_taken_apart(value if is_object else dict(enumerate(value)))
    del value
    before, end = "{}" if is_object else "[]"
    for key, each in members:
        head = encode(str(key)) + ":" if is_object else ""
        texts = iter((each,)) if is_written else json_texts(each, encode)
        del each  # the texts alone have it: its own members leave one by one too
        yield before + head
        yield from texts
        before = ","
    yield end
