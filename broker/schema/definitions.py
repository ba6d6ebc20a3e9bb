"""Whether a definition is one: Apache's SchemaDataValidator. Pure; refusals are SchemaRefused."""

import json
from collections.abc import Callable
from typing import TypeVar

from .avro_rules import check_avro
from .key_value import split_key_value
from .protobuf_rules import check_protobuf
from .values import AVRO_TYPES, SchemaData, SchemaRefused, SchemaType

T = TypeVar("T")

DEFINITION_BYTES_MAX = 1 << 20
"""A schema is kept in memory and sent to every client that asks."""

_INVALID = "Invalid schema definition data for"
"""Beginning of the error for an invalid definition; REST answers this error differently from an incompatible one."""
_JSON_TYPES = ("object", "array", "string", "number", "integer", "boolean", "null", "any")


def check_definition(schema: SchemaData) -> None:
    """SchemaRefused: too large, of a type that is none of a message, or no definition of its type."""
    kind = schema.type
    if len(schema.data) > DEFINITION_BYTES_MAX:
        raise SchemaRefused(f"A schema of {len(schema.data)} bytes; at most {DEFINITION_BYTES_MAX} are kept")
    if kind == SchemaType.AUTO_CONSUME:
        raise SchemaRefused(f"{_INVALID} {kind.name} schema: only clients know it")
    if kind in AVRO_TYPES:
        _check_structured(schema)
    elif kind == SchemaType.PROTOBUF_NATIVE:
        _check(kind, lambda: check_protobuf(schema.data))
    elif kind == SchemaType.KEY_VALUE:
        for part in _check(kind, lambda: split_key_value(schema)):
            check_definition(part)
    elif kind.is_primitive and kind != SchemaType.NONE and schema.data not in (b"", b"null"):
        raise SchemaRefused(f"{_INVALID} {kind.name} schema: it has {len(schema.data)} bytes, and needs none")


def _check(kind: SchemaType, check: Callable[[], T]) -> T:
    try:
        return check()
    except SchemaRefused as error:
        raise SchemaRefused(f"{_INVALID} {kind.name} schema: {error}") from error


def _check_structured(schema: SchemaData) -> None:
    try:
        kind = check_avro(schema.data)
    except SchemaRefused as error:
        if schema.type == SchemaType.JSON and is_json_schema(schema.data):
            return
        raise SchemaRefused(f"{_INVALID} {schema.type.name} schema: {error}") from error
    if schema.type == SchemaType.AVRO and kind == "union":
        raise SchemaRefused("Avro schema typed [UNION] is not supported")


def is_json_schema(data: bytes) -> bool:
    """The form in which clients before 2.0 described JSON; newer ones write Avro's."""
    try:
        definition = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(definition, dict) and definition.get("type") in _JSON_TYPES
