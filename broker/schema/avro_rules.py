"""Avro's rules: is a definition one, and can one schema read what was written with another. Pure; by Apache Avro's own library.

The library is imported with the first schema that needs it: most brokers start without one.
"""

import json
from collections.abc import Callable
from typing import Any, TypeAlias

from .values import SchemaRefused

CanRead: TypeAlias = Callable[[bytes, bytes], str | None]
"""Of a reader's and a writer's definition: None, or why not."""
_IGNORED = ("doc", "aliases")
"""What Avro's Schema.equals does not look at."""


def check_avro(data: bytes) -> str:
    """The kind of schema ("record", "union", "string"...). SchemaRefused when it is none."""
    kind: str = _parsed(data).type
    return kind


def can_read(reader: bytes, writer: bytes) -> str | None:
    """None when data of `writer` can be read with `reader`; otherwise why not. SchemaRefused for what is no Avro schema."""
    from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType

    checker = ReaderWriterCompatibilityChecker()  # type: ignore[no-untyped-call]  # the library leaves this one out
    found = checker.get_compatibility(_parsed(reader), _parsed(writer))
    if found.compatibility == SchemaCompatibilityType.compatible:
        return None
    places = ", ".join(sorted(found.locations))
    return f"{'; '.join(sorted(found.messages)) or 'they do not match'}{f' (at {places})' if places else ''}"


def is_same(one: bytes, other: bytes) -> bool:
    """As Avro's Schema.equals: documentation, aliases, white space and the order of members make no difference."""
    if one == other:
        return True
    try:
        return bool(_plain(json.loads(one)) == _plain(json.loads(other)))
    except ValueError:
        return False


def _parsed(data: bytes) -> Any:
    """Names as Java has them, with $ for inner classes, and defaults as they come: what Apache's brokers take."""
    from avro.errors import AvroException
    from avro.schema import parse

    try:
        return parse(data.decode(), validate_names=False, validate_enum_symbols=False)
    except (AvroException, ValueError, RecursionError, TypeError, AttributeError) as error:
        raise SchemaRefused(f"not an Avro schema: {error}") from error


def _plain(node: Any) -> Any:
    if isinstance(node, list):
        return [_plain(each) for each in node]
    if not isinstance(node, dict):
        return node
    plain = {name: _plain(value) for name, value in node.items() if name not in _IGNORED}
    return plain["type"] if list(plain) == ["type"] and isinstance(plain["type"], str) else plain
