"""Definitions of KeyValue schemas: two schemas in one. Apache's KeyValueSchemaInfo. Pure.

The data are the length (4 bytes, big-endian) and the definition of the key's schema, then those of the value's; types and
properties of both stand in the properties.
"""

import json
from typing import NamedTuple

from .values import SchemaData, SchemaRefused, SchemaType

_LENGTH_BYTES = 4


class KeyValue(NamedTuple):
    """Both, each as a schema of its own."""

    key: SchemaData
    value: SchemaData


def split_key_value(schema: SchemaData) -> KeyValue:
    """SchemaRefused when the data are cut off, or a type is none."""
    key, rest = _part(schema.data)
    value, rest = _part(rest)
    if rest:
        raise SchemaRefused(f"A KeyValue schema has {len(rest)} bytes after its value's definition")
    return KeyValue(_schema(schema, "key", key), _schema(schema, "value", value))


def join_key_value(key: bytes, value: bytes) -> bytes:
    """The data of both definitions as those of one."""
    return b"".join(len(part).to_bytes(_LENGTH_BYTES, "big") + part for part in (key, value))


def _part(data: bytes) -> tuple[bytes, bytes]:
    """A definition and the bytes behind it. A length of -1 is none (as Java writes a schema without data)."""
    length = int.from_bytes(data[:_LENGTH_BYTES], "big", signed=True)
    end = _LENGTH_BYTES + max(0, length)
    if length < -1 or end > len(data):
        raise SchemaRefused(f"A part of a KeyValue schema should have {length} bytes, and {len(data) - _LENGTH_BYTES} are left")
    return data[_LENGTH_BYTES:end], data[end:]


def _schema(whole: SchemaData, part: str, data: bytes) -> SchemaData:
    name = whole.properties.get(f"{part}.schema.type", "BYTES")
    if name != "BYTES" and name not in SchemaType.__members__:
        raise SchemaRefused(f"{part}.schema.type of a KeyValue schema: {name[:100]!r} is no type of schema")
    try:
        properties = json.loads(whole.properties.get(f"{part}.schema.properties") or "{}")
    except ValueError as error:
        raise SchemaRefused(f"{part}.schema.properties of a KeyValue schema is no JSON: {error}") from error
    if not isinstance(properties, dict):
        raise SchemaRefused(f"{part}.schema.properties of a KeyValue schema is no JSON object")
    return SchemaData(SchemaType.NONE if name == "BYTES" else SchemaType[name], data, properties)
