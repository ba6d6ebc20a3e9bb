"""Payloads as columns of the types that the registry has for them: of many rows, and of several versions of a schema. Pure.

The reader's schema decides the type of the column. Payloads of another version are resolved to that one (Avro's
rules; members and field numbers of JSON and protobuf go by themselves).
"""

import functools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy
import pyarrow

from ..octets import Flags, Octets, Places, padded, sizes_at
from ..protobuf_columns import Spans
from ..rows import Rows
from . import avro_columns, avro_schema, json_columns, protobuf_messages, protobuf_schema
from .avro_schema import UnusableSchema
from .primitives import is_primitive, primitive_column, primitive_type

_LENGTH_BYTES = 4


@dataclass(frozen=True, slots=True)
class Schema:
    """One version of a topic's schema, as the registry has it. `kind`: the name of its type."""

    kind: str = "NONE"
    data: bytes = b""
    properties: tuple[tuple[str, str], ...] = ()

    @property
    def is_key_value(self) -> bool:
        return self.kind == "KEY_VALUE"

    @property
    def is_separated(self) -> bool:
        """The key of a KeyValue is the message's key, and the payload is the value alone."""
        return dict(self.properties).get("kv.encoding.type", "INLINE") == "SEPARATED"

    def parts(self) -> tuple["Schema", "Schema"]:
        """Schemas of key and value. UnusableSchema."""
        key, rest = _part(self.data)
        value, _ = _part(rest)
        return self._of("key", key), self._of("value", value)

    def _of(self, name: str, data: bytes) -> "Schema":
        known = dict(self.properties)
        try:
            properties = json.loads(known.get(f"{name}.schema.properties") or "{}")
            return Schema(known.get(f"{name}.schema.type", "BYTES"), data, tuple(sorted(properties.items())))
        except (ValueError, AttributeError) as error:
            raise UnusableSchema(f"{name}.schema.properties is no JSON object: {error}") from None


def _part(data: bytes) -> tuple[bytes, bytes]:
    length = int.from_bytes(data[:_LENGTH_BYTES], signed=True)
    end = _LENGTH_BYTES + max(0, length)
    if len(data) < _LENGTH_BYTES or length < -1 or end > len(data):
        raise UnusableSchema("the definition of a KeyValue is cut off")
    return data[_LENGTH_BYTES:end], data[end:]


@functools.lru_cache(maxsize=256)
def _definition(schema: Schema) -> Any:
    """UnusableSchema."""
    match schema.kind:
        case "AVRO" | "JSON":
            return avro_schema.parse(schema.data)
        case "PROTOBUF_NATIVE":
            return protobuf_schema.parse_native(schema.data)
        case "PROTOBUF":
            return protobuf_schema.parse_numbers(dict(schema.properties), schema.data, "message")
        case kind if is_primitive(kind):
            return kind
    raise UnusableSchema(f"schemas of type {schema.kind} have no columns")


def type_of(schema: Schema) -> Any:
    """The Arrow type of such values. UnusableSchema."""
    definition = _definition(schema)
    match schema.kind:
        case "AVRO" | "JSON":
            return avro_schema.arrow_type(definition)
        case "PROTOBUF" | "PROTOBUF_NATIVE":
            return protobuf_schema.arrow_type(definition)
    return primitive_type(definition)


def types_of(schema: Schema) -> dict[str, Any]:
    """The types of the columns that such a topic has typed: `value`, and of a KeyValue `key`. UnusableSchema."""
    if not schema.is_key_value:
        return {"value": type_of(schema)}
    key, value = schema.parts()
    return {"key": type_of(key), "value": type_of(value)}


def column(data: Octets, spans: Spans, written: Schema, wanted: Schema) -> tuple[Any, Flags]:
    """Column of one version; spans are present. UnusableSchema where the written values cannot be read as the wanted type."""
    if written.kind != wanted.kind:
        raise UnusableSchema(f"it was written with a schema of type {written.kind}, and {wanted.kind} is wanted")
    match wanted.kind:
        case "AVRO":
            return avro_columns.decode(data, spans, _definition(written), _definition(wanted))
        case "JSON":
            return json_columns.decode(data, spans, _definition(wanted))
        case "PROTOBUF" | "PROTOBUF_NATIVE":
            return protobuf_messages.decode(data, spans, _definition(wanted))
    return primitive_column(wanted.kind, data, spans)


@dataclass(slots=True)
class TypedColumns:
    """`reasons` by row: why it has no value, where it should have one."""

    columns: dict[str, Any] = field(default_factory=dict)
    reasons: dict[int, str] = field(default_factory=dict)


def typed_columns(
    rows: Rows, keys: Any, names: tuple[str, ...], wanted: Schema, written_as: Callable[[int], Schema | None]
) -> TypedColumns:
    """`keys`: the column of bytes that messages have as their key. `written_as(version)`: that schema, or None.

    Entries that could not be read have null, and no reason of ours.
    """
    found = TypedColumns()
    values = Spans(*(numpy.where(rows.is_null, -1, each) for each in (rows.values.starts, rows.values.ends)))
    is_sound = numpy.array([not error for error in rows.errors], numpy.bool_)[rows.entries]
    values = _only(values, is_sound)
    versions = rows.schema_version_numbers()[rows.entries]
    if not wanted.is_key_value:
        groups = _Groups(versions, written_as, found.reasons)
        found.columns["value"] = groups.column(rows.data, values, wanted, lambda schema: schema)
        return found
    of_key, of_value = _Groups(versions, written_as, {}), _Groups(versions, written_as, {})
    key_data, key_spans = rows.data, values
    if wanted.is_separated:
        key_data, key_spans = _as_spans(keys)
        key_spans = _only(key_spans, is_sound)
    else:
        key_spans, values = _inline(rows.data, values, found.reasons)
    key, value = wanted.parts()
    if "key" in names:
        found.columns["key"] = of_key.column(key_data, key_spans, key, lambda schema: schema.parts()[0])
    if "value" in names:
        found.columns["value"] = of_value.column(rows.data, values, value, lambda schema: schema.parts()[1])
    for name, part in (("key", of_key), ("value", of_value)):  # damage of one leaves the other
        for row, reason in part.reasons.items():
            found.reasons.setdefault(row, f"{name}: {reason}")
    return found


def _only(spans: Spans, kept: Flags) -> Spans:
    return spans if bool(kept.all()) else Spans(numpy.where(kept, spans.starts, -1), numpy.where(kept, spans.ends, -1))


def _as_spans(keys: Any) -> tuple[Octets, Spans]:
    offsets = numpy.frombuffer(keys.buffers()[1], numpy.int32)[keys.offset : keys.offset + len(keys) + 1].astype(numpy.int64)
    present = numpy.asarray(keys.is_valid())
    octets = padded(memoryview(keys.buffers()[2] or b""))
    return octets, _only(Spans(offsets[:-1], offsets[1:]), present)


def _inline(data: Octets, values: Spans, reasons: dict[int, str]) -> tuple[Spans, Spans]:
    """`i32 length | key | i32 length | value`; a length of -1 is null (KeyValue.encode of Apache's client)."""
    present = values.present
    ends = numpy.maximum(values.ends, 0)
    key, at = _length_and_bytes(data, numpy.maximum(values.starts, 0), ends)
    value, at = _length_and_bytes(data, at, ends)
    broken = present & (at != ends)
    for row in numpy.flatnonzero(broken).tolist():
        reasons[row] = "it is no pair of key and value"
    kept = present & ~broken
    return _only(key, kept), _only(value, kept)


def _length_and_bytes(data: Octets, at: Places, ends: Places) -> tuple[Spans, Places]:
    """The place after it; -1 where it does not fit."""
    has_length = (at >= 0) & (at + _LENGTH_BYTES <= ends)
    lengths = sizes_at(data, numpy.where(has_length, at, 0)).astype(numpy.uint32).view(numpy.int32).astype(numpy.int64)
    starts = at + _LENGTH_BYTES
    after = starts + numpy.maximum(lengths, 0)
    fits = has_length & (lengths >= -1) & (after <= ends)
    is_there = fits & (lengths >= 0)
    return Spans(numpy.where(is_there, starts, -1), numpy.where(is_there, after, -1)), numpy.where(fits, after, -1)


class _Groups:
    """Rows by the version that they were written with: a column of each, and all in their order again."""

    def __init__(self, versions: Places, written_as: Callable[[int], Schema | None], reasons: dict[int, str]) -> None:
        self._versions, self._written_as, self.reasons = versions, written_as, reasons

    def column(self, data: Octets, spans: Spans, wanted: Schema, part: Callable[[Schema], Schema]) -> Any:
        kind = type_of(wanted)
        rows, columns = [], []
        present = numpy.flatnonzero(spans.present)
        for version in numpy.unique(self._versions[present]).tolist():
            these = present[self._versions[present] == version]
            found = self._of_version(data, Spans(spans.starts[these], spans.ends[these]), wanted, part, version)
            if isinstance(found, str):
                self._refuse(these, found)
                continue
            column, broken = found
            self._refuse(these[broken], f"it is no {wanted.kind} of schema version {version}")
            rows.append(these)
            columns.append(column)
        return _placed(columns, rows, len(self._versions), kind, self.reasons)

    def _of_version(
        self, data: Octets, spans: Spans, wanted: Schema, part: Callable[[Schema], Schema], version: int
    ) -> tuple[Any, Flags] | str:
        """A message that names no version is read as what is wanted, as Apache's clients do."""
        try:
            written = self._written_as(version) if version >= 0 else None
            if version >= 0 and written is None:
                return f"its schema version {version} is not in the registry"
            return column(data, spans, wanted if written is None else part(written), wanted)
        except UnusableSchema as error:
            return f"schema version {version}: {error}"

    def _refuse(self, rows: Places, reason: str) -> None:
        for row in rows.tolist():
            self.reasons.setdefault(row, reason)


def _placed(columns: list[Any], rows: list[Places], count: int, kind: Any, reasons: Mapping[int, str]) -> Any:
    """Each value at its row, null in the others and in those that have a reason to have none."""
    if not columns:
        return pyarrow.nulls(count, kind)
    every = numpy.concatenate(rows)
    if len(every) == count and len(columns) == 1 and not reasons:
        return columns[0]
    at = numpy.full(count, -1, numpy.int64)
    at[every] = numpy.arange(len(every))
    at[list(reasons)] = -1
    return pyarrow.concat_arrays(columns).take(pyarrow.array(numpy.maximum(at, 0), mask=at < 0))
