"""A struct column as JSON objects, field by field for all rows at a time. Pure.

A field that is null is left out, as Apache's JSON schema writes it (Jackson with NON_NULL). Bytes are base 64; times are
numbers as their Avro types have them: microseconds, days.
"""

import base64
import json
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from typing import Any

import numpy
import pyarrow
import pyarrow.compute

from ..errors import WrongFrame
from .pieces import constant, is_null, joined, piece

_EPOCH = datetime(1970, 1, 1)  # without a zone, as `_plain` has them
_MICROSECOND = timedelta(microseconds=1)
_BACKSLASH_AND_QUOTE = ((b"\\", b"\\\\"), (b'"', b'\\"'))


def json_values(column: Any) -> Any:
    """UTF-8 of each row, null where the struct is."""
    return _object(column)


def _object(column: Any) -> Any:
    """JSON objects: fields that are there decide where a comma goes; Arrow joins the pieces."""
    count = len(column)
    parts, is_begun = [piece(constant(b"{", count))], numpy.zeros(count, numpy.bool_)
    for field, values in zip(column.type, column.flatten(), strict=True):
        there = ~is_null(values)
        name = constant(json.dumps(field.name).encode() + b":", count)
        parts += [piece(constant(b",", count).where(there & is_begun), name.where(there)), _value(values)]
        is_begun |= there
    found = joined([*parts, piece(constant(b"}", count))])
    if not column.null_count:
        return found
    return pyarrow.compute.if_else(pyarrow.compute.is_null(column), pyarrow.scalar(None, pyarrow.binary()), found)


def _value(column: Any) -> Any:
    kind = column.type
    if pyarrow.types.is_string(kind):
        return _text(column)
    if pyarrow.types.is_struct(kind):
        return _object(column)
    if pyarrow.types.is_boolean(kind) or pyarrow.types.is_integer(kind) or pyarrow.types.is_decimal(kind):
        return column.cast(pyarrow.string()).cast(pyarrow.binary())
    if pyarrow.types.is_timestamp(kind):
        microseconds = column.cast(pyarrow.timestamp("us", tz=kind.tz)).cast(pyarrow.int64())
        return microseconds.cast(pyarrow.string()).cast(pyarrow.binary())
    if pyarrow.types.is_date(kind):
        return column.cast(pyarrow.int32()).cast(pyarrow.string()).cast(pyarrow.binary())
    return _row_by_row(column)


def _text(column: Any) -> Any:
    found = column.cast(pyarrow.binary())
    if pyarrow.compute.any(pyarrow.compute.match_substring_regex(column, r"[\x00-\x1f]")).as_py():
        return _row_by_row(column)
    for plain, escaped in _BACKSLASH_AND_QUOTE:
        found = pyarrow.compute.replace_substring(found, plain, escaped)
    quote = pyarrow.scalar(b'"', pyarrow.binary())
    return pyarrow.compute.binary_join_element_wise(quote, found, quote, pyarrow.scalar(b"", pyarrow.binary()))


def _row_by_row(column: Any) -> Any:
    """JSON of values that no vector operation writes: floats (shortest form), bytes, lists, maps, control characters."""
    try:
        found = [None if each is None else _json_of(each, column.type).encode() for each in column.to_pylist()]
    except ValueError:
        raise WrongFrame("column value: NaN or an infinite number, which JSON does not have; make it null, or text") from None
    return pyarrow.array(found, pyarrow.binary())


def _json_of(value: Any, kind: Any) -> str:
    if value is None:
        return "null"
    if pyarrow.types.is_list(kind):
        return f"[{','.join(_json_of(each, kind.value_type) for each in value)}]"
    if pyarrow.types.is_struct(kind):
        return _members((field.name, value[field.name], field.type) for field in kind if value[field.name] is not None)
    if pyarrow.types.is_map(kind):
        return _members((name, each, kind.item_type) for name, each in value)
    return str(value) if pyarrow.types.is_decimal(kind) else json.dumps(_plain(value), allow_nan=False)


def _members(found: Iterable[tuple[str, Any, Any]]) -> str:
    return f"{{{','.join(f'{json.dumps(name)}:{_json_of(value, kind)}' for name, value, kind in found)}}}"


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        return (value.replace(tzinfo=None) - _EPOCH) // _MICROSECOND  # Arrow has those with a zone in UTC
    if isinstance(value, date):
        return (value - _EPOCH.date()).days
    return value
