"""Values of the registry's primitive schemas, as Java's clients write them: big-endian, of a fixed length each. Pure.

Times of day have no type on Spark: TIME is a bigint of milliseconds, LOCAL_TIME one of nanoseconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy
import pyarrow

from ..arrow_columns import binary_of, text_of
from ..octets import Flags, Octets, Places, words_at
from ..protobuf_columns import Spans
from .avro_schema import LOCAL_TIME, TIME

_MICROS_OF_A_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class _Kind:
    size: int
    type: Any


_KINDS: Mapping[str, _Kind] = {
    "BOOLEAN": _Kind(1, pyarrow.bool_()),
    "INT8": _Kind(1, pyarrow.int8()),
    "INT16": _Kind(2, pyarrow.int16()),
    "INT32": _Kind(4, pyarrow.int32()),
    "INT64": _Kind(8, pyarrow.int64()),
    "FLOAT": _Kind(4, pyarrow.float32()),
    "DOUBLE": _Kind(8, pyarrow.float64()),
    "DATE": _Kind(8, TIME),
    "TIME": _Kind(8, pyarrow.int64()),
    "TIMESTAMP": _Kind(8, TIME),
    "INSTANT": _Kind(12, TIME),
    "LOCAL_DATE": _Kind(8, pyarrow.date32()),
    "LOCAL_TIME": _Kind(8, pyarrow.int64()),
    "LOCAL_DATE_TIME": _Kind(16, LOCAL_TIME),
}
_VARIABLE = {"STRING": pyarrow.string(), "BYTES": pyarrow.binary(), "NONE": pyarrow.binary()}


def is_primitive(name: str) -> bool:
    return name in _KINDS or name in _VARIABLE


def primitive_type(name: str) -> Any:
    return _VARIABLE.get(name) or _KINDS[name].type


def primitive_column(name: str, data: Octets, spans: Spans) -> tuple[Any, Flags]:
    """A column, and which values have another length than theirs."""
    if name in _VARIABLE:
        found = binary_of(data, spans)
        return (text_of(found) if name == "STRING" else found), numpy.zeros(len(spans.starts), numpy.bool_)
    kind = _KINDS[name]
    broken = spans.ends - spans.starts != kind.size
    starts = numpy.where(broken, 0, spans.starts)
    return _column(name, data, starts), broken


def _column(name: str, data: Octets, starts: Places) -> Any:
    first = words_at(data, starts).byteswap()
    match name:
        case "BOOLEAN":
            return pyarrow.array(data[starts] != 0)
        case "INT8" | "INT16" | "INT32":
            bits = _KINDS[name].size * 8
            shifted = first.view(numpy.int64) >> numpy.int64(64 - bits)
            return pyarrow.array(shifted).cast(_KINDS[name].type)
        case "INT64" | "TIME" | "LOCAL_TIME":
            return pyarrow.array(first.view(numpy.int64))
        case "FLOAT":
            return pyarrow.array((first >> numpy.uint64(32)).astype(numpy.uint32).view(numpy.float32))
        case "DOUBLE":
            return pyarrow.array(first.view(numpy.float64))
        case "DATE" | "TIMESTAMP":
            return pyarrow.array(first.view(numpy.int64) * 1000).view(TIME)
        case "INSTANT":
            nanos = words_at(data, starts + 8).byteswap() >> numpy.uint64(32)
            micros = first.view(numpy.int64) * 1_000_000 + (nanos // numpy.uint64(1000)).astype(numpy.int64)
            return pyarrow.array(micros).view(TIME)
        case "LOCAL_DATE":
            return pyarrow.array(first.view(numpy.int64).astype(numpy.int32)).view(pyarrow.date32())
    nanos_of_day = words_at(data, starts + 8).byteswap().view(numpy.int64)
    return pyarrow.array(first.view(numpy.int64) * _MICROS_OF_A_DAY + nanos_of_day // 1000).view(LOCAL_TIME)
