"""Avro's rules: is a definition one, and can one schema read what was written with another. Pure.

Definitions are read by Apache Avro's own library, which is imported with the first schema that needs it: most brokers start
without one. The rules are those of the specification ("Schema Resolution") as Java's ResolvingGrammarGenerator has them, by
which Apache's brokers decide: names of records are not compared, and symbols of an enumeration are a matter of each value.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from .values import SchemaRefused

CanRead: TypeAlias = Callable[[bytes, bytes], str | None]
"""Of a reader's and a writer's definition: None, or why not."""
_IGNORED = ("doc", "aliases")
"""What Avro's Schema.equals does not look at."""
_PROMOTED = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
"""What may be read as what."""


def check_avro(data: bytes) -> str:
    """The kind of schema ("record", "union", "string"...). SchemaRefused when it is none, or has a default of another type."""
    schema = _parsed(data)
    _check_defaults(schema, {})
    kind: str = schema.type
    return kind


def can_read(reader: bytes, writer: bytes) -> str | None:
    """None when data of `writer` can be read with `reader`; otherwise why not. SchemaRefused for what is no Avro schema."""
    return next(_faults(_parsed(reader), _parsed(writer), "", {}), None)


def is_same(one: bytes, other: bytes) -> bool:
    """As Avro's Schema.equals: documentation, aliases, white space and the order of members make no difference."""
    if one == other:
        return True
    try:
        return bool(_plain(json.loads(one)) == _plain(json.loads(other)))
    except ValueError:
        return False


def _parsed(data: bytes) -> Any:
    """Names as Java has them, with $ for inner classes."""
    from avro.errors import AvroException
    from avro.schema import parse

    try:
        return parse(data.decode(), validate_names=False, validate_enum_symbols=False)
    except (AvroException, ValueError, RecursionError, TypeError, AttributeError) as error:
        raise SchemaRefused(f"not an Avro schema: {error}") from error


def _faults(reader: Any, writer: Any, where: str, seen: dict[tuple[int, int], None]) -> Iterator[str]:
    """A pair that is being compared already, as in a list that refers to itself, is taken to fit."""
    if (id(reader), id(writer)) in seen:
        return
    seen[id(reader), id(writer)] = None
    if writer.type == "union":
        for branch in writer.schemas:
            yield from _faults(reader, branch, where, seen)
    elif reader.type == "union":
        if not any(next(_faults(branch, writer, where, dict(seen)), None) is None for branch in reader.schemas):
            yield f"{where or 'it'} was written as {writer.type}, which is none of what is read"
    elif reader.type == writer.type:
        yield from _faults_within(reader, writer, where, seen)
    elif reader.type not in _PROMOTED.get(writer.type, ()):
        yield f"{where or 'it'} was written as {writer.type}, and is read as {reader.type}"


def _faults_within(reader: Any, writer: Any, where: str, seen: dict[tuple[int, int], None]) -> Iterator[str]:
    match reader.type:
        case "record":
            yield from _faults_of_fields(reader, writer, where, seen)
        case "array":
            yield from _faults(reader.items, writer.items, f"{where}[]", seen)
        case "map":
            yield from _faults(reader.values, writer.values, f"{where}{{}}", seen)
        case "enum" | "fixed":
            if writer.fullname not in (reader.fullname, *(reader.get_prop("aliases") or ())):
                yield f"{where or 'it'} was written as {writer.fullname}, and is read as {reader.fullname}"
            elif reader.type == "fixed" and reader.size != writer.size:
                yield f"{where or 'it'} was written with {writer.size} bytes, and is read with {reader.size}"


def _faults_of_fields(reader: Any, writer: Any, where: str, seen: dict[tuple[int, int], None]) -> Iterator[str]:
    written = {field.name: field for field in writer.fields}
    for field in reader.fields:
        names = (field.name, *(field.get_prop("aliases") or ()))
        found = next((written[name] for name in names if name in written), None)
        if found is not None:
            yield from _faults(field.type, found.type, f"{where}.{field.name}", seen)
        elif not field.has_default:
            yield f"{where}.{field.name} is read, has no default, and was not written"


def _check_defaults(schema: Any, seen: dict[int, None]) -> None:
    if id(schema) in seen:
        return
    seen[id(schema)] = None
    match schema.type:
        case "record":
            for field in schema.fields:
                if field.has_default and not _is_default(field.type, field.default):
                    raise SchemaRefused(f"the default of field {field.name} is no {field.type.type}: {field.default!r}")
                _check_defaults(field.type, seen)
        case "array":
            _check_defaults(schema.items, seen)
        case "map":
            _check_defaults(schema.values, seen)
        case "union":
            for branch in schema.schemas:
                _check_defaults(branch, seen)


def _is_default(schema: Any, value: Any) -> bool:
    """As JSON has it; of a union, of its first branch. What is composed is looked at no further than its kind."""
    kind = schema.schemas[0].type if schema.type == "union" else schema.type
    if kind in ("int", "long"):
        return isinstance(value, int) and not isinstance(value, bool)
    if kind in ("float", "double"):
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind in ("string", "bytes", "fixed", "enum"):
        return isinstance(value, str)
    return isinstance(value, {"null": type(None), "boolean": bool, "array": list}.get(kind, dict))


def _plain(node: Any) -> Any:
    if isinstance(node, list):
        return [_plain(each) for each in node]
    if not isinstance(node, dict):
        return node
    plain = {name: _plain(value) for name, value in node.items() if name not in _IGNORED}
    return plain["type"] if list(plain) == ["type"] and isinstance(plain["type"], str) else plain
