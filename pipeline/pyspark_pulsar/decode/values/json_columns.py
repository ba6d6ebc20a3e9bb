"""JSON objects of many messages as one Arrow column of structs, by the definition of Avro's that a JSON schema is kept as.

Arrow's own reader takes them all at a time, a line each. Where one of them is no such object, halves of them are read until
it is alone. Definitions that Arrow has no way for (maps, bytes, times, unions of several) are read an object at a time.
"""

import base64
import json
import math
from collections.abc import Callable
from decimal import Context, Decimal, InvalidOperation
from typing import Any

import numpy
import pyarrow
import pyarrow.json

from ..arrow_columns import binary_of
from ..octets import Flags, Octets
from ..protobuf_columns import Spans
from .avro_schema import Node, arrow_type, is_decimal

_PLAIN = ("boolean", "int", "long", "float", "double", "string", "enum")
_BLOCK_BYTES_MIN = 1 << 16
_FEW = 32
"""Texts up to which Arrow's reader costs more than Python's."""


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
        _by_lines(texts, 0, wanted, parts, broken)
        return pyarrow.concat_arrays(parts), broken
    return _one_by_one(texts, wanted, broken), broken


def _is_plain(node: Node) -> bool:
    if node.kind in ("record", "array"):
        return all(_is_plain(part.node) for part in node.parts)
    if node.kind == "union":
        return len(node.branches) == 1 and _is_plain(node.branches[0])
    return node.kind in _PLAIN and not node.logical


def _by_lines(texts: Any, first: int, wanted: Node, parts: list[Any], broken: Flags) -> None:
    """Halves where they are not all objects, down to a few."""
    found = _lines(texts, arrow_type(wanted))
    if found is not None:
        parts.append(found)
    elif len(texts) <= _FEW:
        these = broken[first : first + len(texts)]
        parts.append(_taken(_one_by_one(texts, wanted, these), texts, these, arrow_type(wanted)))
    else:
        half = len(texts) // 2
        _by_lines(texts[:half], first, wanted, parts, broken)
        _by_lines(texts[half:], first + half, wanted, parts, broken)


def _taken(found: Any, texts: Any, broken: Flags, kind: Any) -> Any:
    """Values with those added that Arrow accepts and Python refuses, such as `-Inf`."""
    for row in numpy.flatnonzero(broken).tolist():
        one = _lines(texts[row : row + 1], kind)
        if one is not None:
            found, broken[row] = pyarrow.concat_arrays([found[:row], one, found[row + 1 :]]), False
    return found


def _lines(texts: Any, kind: Any) -> Any | None:
    """None when they are not an object each, or not for Arrow: it refuses a member that is there twice."""
    # `null` by itself is an access violation of Arrow's, and what has a part of an object makes one with its neighbours
    if not _are_objects(texts) or not _is_text(texts):
        return None
    # a line break can only stand between the tokens of JSON, where a tab does as well, and amid a text neither may
    lines = b"\n".join(each.translate(_TABS) for each in texts.to_pylist())
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


def _are_objects(texts: Any) -> bool:
    """Whether all texts are objects, by their first and last octets."""
    octets = numpy.frombuffer(texts.buffers()[2] or b"", numpy.uint8)
    offsets = numpy.frombuffer(texts.buffers()[1], numpy.int32)[texts.offset : texts.offset + len(texts) + 1]
    if bool((offsets[1:] == offsets[:-1]).any()):
        return False
    if bool((octets[offsets[:-1]] == ord("{")).all() and (octets[offsets[1:] - 1] == ord("}")).all()):
        return True
    return all(each.strip(_BLANKS)[:1] == b"{" and each.strip(_BLANKS)[-1:] == b"}" for each in texts.to_pylist())


def _is_text(texts: Any) -> bool:
    try:
        texts.cast(pyarrow.string())
    except pyarrow.ArrowInvalid:
        return False
    return True


def _chunk(column: Any) -> Any:
    return pyarrow.concat_arrays(column.chunks) if isinstance(column, pyarrow.ChunkedArray) else column


_BLANKS = b" \t\r\n"
_TABS = bytes.maketrans(b"\n\r", b"\t\t")


class _Fraction(str):
    """A number with a point or an exponent, as it is written: what it is to be decides how it is read."""

    __slots__ = ()


def _one_by_one(texts: Any, wanted: Node, broken: Flags) -> Any:
    values = []
    for row, text in enumerate(texts.to_pylist()):
        try:
            value = _plain(json.loads(text, parse_float=_Fraction), wanted)
            pyarrow.array([value], arrow_type(wanted))
        except (ValueError, TypeError, OverflowError, RecursionError, pyarrow.ArrowException):
            broken[row], value = True, None
        values.append(value)
    return pyarrow.array(values, arrow_type(wanted))


def _plain(value: Any, node: Node) -> Any:
    """Value in the form that Arrow takes. ValueError, TypeError for a value that does not fit the node."""
    if value is None:
        return None
    if node.kind == "union":
        return _member(value, node)
    if is_decimal(node):
        return _decimal(value, node)
    return _CONVERSIONS.get(node.kind, _number_or_text)(value, node)


def _member(value: Any, node: Node) -> Any:
    if len(node.branches) == 1:
        return _plain(value, node.branches[0])
    for index, each in enumerate(node.branches):
        try:
            found = _plain(value, each)
            pyarrow.array([found], arrow_type(each))
        except (ValueError, TypeError, OverflowError, pyarrow.ArrowException):
            continue
        return {f"member{index}": found}
    raise ValueError("none of its union")


def _decimal(value: Any, node: Node) -> Decimal:
    """Arrow takes what is very small for 0."""
    try:
        found = Decimal(str(value))
        scaled = found.quantize(Decimal(1).scaleb(-node.scale), context=_CONTEXT)
    except InvalidOperation:
        raise ValueError("no number of so many digits") from None
    if scaled != found:
        raise ValueError("no number of that scale")
    return scaled


_CONTEXT = Context(prec=100, traps=[InvalidOperation])


def _number_or_text(value: Any, node: Node) -> Any:
    if type(value) not in _JSON_KINDS.get(node.kind, (str,)):
        raise ValueError(f"no {node.kind}")
    return value * 1000 if node.logical.endswith("timestamp-millis") else value


def _float(value: Any, node: Node) -> float:
    if type(value) is str and value not in _QUOTED:
        raise ValueError("no number")
    if type(value) not in (int, float, str, _Fraction):
        raise ValueError("no number")
    number = float(value) if isinstance(value, str) else _of_int(value)
    if node.kind == "float" and math.isfinite(number):  # once rounded, and not first to a double
        return float(pyarrow.scalar(str(value)).cast(pyarrow.float32()).as_py())
    return number


def _of_int(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


_QUOTED = ("NaN", "Infinity", "-Infinity")
"""Numbers in quotes, as Java's JSON has them (Jackson)."""


def _record(value: Any, node: Node) -> dict[str, Any]:
    _check(value, dict)
    return {part.name: _plain(value.get(part.name), part.node) for part in node.parts}


def _map(value: Any, node: Node) -> list[tuple[str, Any]]:
    _check(value, dict)
    return [(key, _plain(each, node.parts[0].node)) for key, each in value.items()]


def _array(value: Any, node: Node) -> list[Any]:
    _check(value, list)
    return [_plain(each, node.parts[0].node) for each in value]


def _check(value: Any, kind: type) -> None:
    if type(value) is not kind:
        raise ValueError(f"no {kind.__name__}")


def _bytes(value: Any, node: Node) -> bytes:
    """Bytes of a base64 text, which Java's JSON (Jackson) writes for bytes."""
    _check(value, str)
    return base64.b64decode(value, validate=True)


_JSON_KINDS: dict[str, tuple[type, ...]] = {"boolean": (bool,), "int": (int,), "long": (int,)}
_CONVERSIONS: dict[str, Callable[[Any, Node], Any]] = {
    "record": _record,
    "map": _map,
    "array": _array,
    "bytes": _bytes,
    "fixed": _bytes,
    "float": _float,
    "double": _float,
}
