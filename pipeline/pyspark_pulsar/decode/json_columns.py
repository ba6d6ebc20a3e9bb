"""JSON objects of many messages as one Arrow column of structs, by the definition of Avro's that a JSON schema is kept as.

Arrow's own reader takes them all at a time, a line each. Where one of them is no such object, halves of them are read until
it is alone. Definitions that Arrow has no way for (maps, bytes, times, unions of several) are read an object at a time.
"""

import base64
import binascii
import json
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy
import pyarrow
import pyarrow.json

from .arrow_columns import binary_of
from .avro_schema import Node, arrow_type, is_decimal
from .octets import Flags, Octets
from .protobuf_columns import Spans

_PLAIN = ("boolean", "int", "long", "float", "double", "string", "enum")
_BLOCK_BYTES_MIN = 1 << 16


def decode(data: Octets, spans: Spans, wanted: Node) -> tuple[Any, Flags]:
    """A column of the type `arrow_type(wanted)`, null where a field is not there, and which values are none of it.

    Members that the definition does not have are left out. Spans have to be present.
    """
    texts = binary_of(data, spans)
    broken = numpy.zeros(len(texts), numpy.bool_)
    if not len(texts):
        return pyarrow.nulls(0, arrow_type(wanted)), broken
    if wanted.kind == "record" and _is_plain(wanted):
        parts: list[Any] = []
        _by_lines(texts, 0, arrow_type(wanted), parts, broken)
        return pyarrow.concat_arrays(parts), broken
    return _one_by_one(texts, wanted, broken), broken


def _is_plain(node: Node) -> bool:
    if node.kind in ("record", "array"):
        return all(_is_plain(part.node) for part in node.parts)
    if node.kind == "union":
        return len(node.branches) == 1 and _is_plain(node.branches[0])
    return node.kind in _PLAIN and not node.logical


def _by_lines(texts: Any, first: int, kind: Any, parts: list[Any], broken: Flags) -> None:
    found = _lines(texts, kind)
    if found is not None:
        parts.append(found)
    elif len(texts) == 1:
        broken[first] = True
        parts.append(pyarrow.nulls(1, kind))
    else:
        half = len(texts) // 2
        _by_lines(texts[:half], first, kind, parts, broken)
        _by_lines(texts[half:], first + half, kind, parts, broken)


def _lines(texts: Any, kind: Any) -> Any | None:
    """None when they are not an object each."""
    # a line break can only stand between the tokens of JSON, where a space does as well
    lines = b"\n".join(each.translate(_SPACES) for each in texts.to_pylist())
    names = pyarrow.schema(list(kind))
    how = pyarrow.json.ParseOptions(explicit_schema=names, unexpected_field_behavior="ignore")
    block = pyarrow.json.ReadOptions(use_threads=False, block_size=max(_BLOCK_BYTES_MIN, len(lines) + 2))
    try:
        table = pyarrow.json.read_json(pyarrow.py_buffer(lines), block, how)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError):
        return None
    if table.num_rows != len(texts):
        return None
    columns = [table.column(field.name).combine_chunks() for field in kind]
    return pyarrow.StructArray.from_arrays([_chunk(each) for each in columns], fields=list(kind))


def _chunk(column: Any) -> Any:
    return pyarrow.concat_arrays(column.chunks) if isinstance(column, pyarrow.ChunkedArray) else column


_SPACES = bytes.maketrans(b"\n\r", b"  ")


def _one_by_one(texts: Any, wanted: Node, broken: Flags) -> Any:
    values = []
    for row, text in enumerate(texts.to_pylist()):
        try:
            value = _plain(json.loads(text, parse_float=Decimal), wanted)
            pyarrow.array([value], arrow_type(wanted))
        except (ValueError, TypeError, AttributeError, OverflowError, pyarrow.ArrowException):
            broken[row], value = True, None
        values.append(value)
    return pyarrow.array(values, arrow_type(wanted))


def _plain(value: Any, node: Node) -> Any:
    """As Arrow takes it. ValueError, TypeError, AttributeError for what is none of the node's."""
    if value is None:
        return None
    if node.kind == "union":
        return _member(value, node)
    if is_decimal(node):
        return _decimal(value)
    return _CONVERSIONS.get(node.kind, _number_or_text)(value, node)


def _member(value: Any, node: Node) -> Any:
    if len(node.branches) == 1:
        return _plain(value, node.branches[0])
    kind = type(value)
    for index, each in enumerate(node.branches):
        if kind in _JSON_KINDS.get(each.kind, (str,)):
            return {f"member{index}": _plain(value, each)}
    raise ValueError("none of its union")


def _decimal(value: Any) -> Decimal:
    try:
        return Decimal(str(value))
    except InvalidOperation:
        raise ValueError("no number") from None


def _number_or_text(value: Any, node: Node) -> Any:
    if type(value) not in _JSON_KINDS.get(node.kind, (str,)):
        raise ValueError(f"no {node.kind}")
    if isinstance(value, Decimal):  # which decimals need: a float has 16 digits
        value = float(value)
    return value * 1000 if node.logical.endswith("timestamp-millis") else value


def _bytes(value: Any, node: Node) -> bytes:
    """As Java's JSON has them (Jackson): base 64."""
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error:
        raise ValueError("no base 64") from None


_JSON_KINDS: dict[str, tuple[type, ...]] = {
    "boolean": (bool,),
    "int": (int,),
    "long": (int,),
    "float": (int, float, Decimal),
    "double": (int, float, Decimal),
    "record": (dict,),
    "map": (dict,),
    "array": (list,),
}
_CONVERSIONS: dict[str, Callable[[Any, Node], Any]] = {
    "record": lambda value, node: {part.name: _plain(value.get(part.name), part.node) for part in node.parts},
    "map": lambda value, node: [(key, _plain(each, node.parts[0].node)) for key, each in value.items()],
    "array": lambda value, node: [_plain(each, node.parts[0].node) for each in value],
    "bytes": _bytes,
    "fixed": _bytes,
}
