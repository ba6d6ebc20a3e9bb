"""A column of numbers, times or texts as values of the registry's primitive schemas: what `decode.primitives` reads. Pure."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy
import pyarrow
import pyarrow.compute

from ...decode.values.primitives import is_primitive, primitive_type
from ..errors import WrongFrame
from .pieces import binary_array

_MICROS_OF_A_DAY = 86_400_000_000
_OF_TYPES = {
    pyarrow.string(): "STRING",
    pyarrow.binary(): "BYTES",
    pyarrow.bool_(): "BOOLEAN",
    pyarrow.int8(): "INT8",
    pyarrow.int16(): "INT16",
    pyarrow.int32(): "INT32",
    pyarrow.int64(): "INT64",
    pyarrow.float32(): "FLOAT",
    pyarrow.float64(): "DOUBLE",
    pyarrow.date32(): "LOCAL_DATE",
}


def primitive_kind(found: Any) -> str | None:
    """The schema that has such values and no others: what a frame's own type says."""
    if pyarrow.types.is_timestamp(found):
        return "INSTANT" if found.tz else "LOCAL_DATE_TIME"
    return _OF_TYPES.get(found)


def check_primitive(kind: str, found: Any) -> None:
    """WrongFrame where no column of that type is written as that."""
    wanted = primitive_type(kind) if is_primitive(kind) else None
    is_number = pyarrow.types.is_integer(found) or pyarrow.types.is_floating(found)
    fits = wanted is not None and (
        found == wanted
        or (is_number and (pyarrow.types.is_integer(wanted) or pyarrow.types.is_floating(wanted)))
        or (pyarrow.types.is_timestamp(found) and pyarrow.types.is_timestamp(wanted) and bool(found.tz) == bool(wanted.tz))
    )
    if not fits:
        raise WrongFrame(f"column of {found}: schema {kind.lower()} is of {wanted}; cast it")


def primitive_values(kind: str, column: Any) -> Any:
    """Bytes of each row, null where it is. WrongFrame for a number that does not fit."""
    if kind in ("STRING", "BYTES"):
        return column.cast(pyarrow.binary())
    try:
        # a null's bytes are made, and not used
        filled = column.cast(primitive_type(kind)).fill_null(_nothing(kind))
    except pyarrow.ArrowInvalid as error:
        raise WrongFrame(f"a value that is no {kind.lower()}: {error}") from None
    octets = _ENCODERS[kind](filled)
    width = octets.dtype.itemsize if octets.ndim == 1 else octets.shape[1]
    found = binary_array(numpy.full(len(column), width, numpy.int64), numpy.ascontiguousarray(octets).view(numpy.uint8).ravel())
    if not column.null_count:
        return found
    return pyarrow.compute.if_else(pyarrow.compute.is_null(column), pyarrow.scalar(None, pyarrow.binary()), found)


def _nothing(kind: str) -> Any:
    wanted = primitive_type(kind)
    return pyarrow.scalar(False) if kind == "BOOLEAN" else pyarrow.scalar(0).cast(_plain(wanted)).cast(wanted)


def _plain(wanted: Any) -> Any:
    """Through which a zero of every type is made."""
    return pyarrow.int32() if pyarrow.types.is_date32(wanted) else pyarrow.int64()


def _numbers(dtype: str) -> Callable[[Any], Any]:
    return lambda column: numpy.asarray(column).astype(dtype)


def _micros(column: Any) -> Any:
    return numpy.asarray(column.cast(pyarrow.int64()))


def _milliseconds(column: Any) -> Any:
    return (_micros(column) // 1000).astype(">i8")


def _instant(column: Any) -> Any:
    micros = _micros(column)
    found = numpy.zeros(len(micros), numpy.dtype([("seconds", ">i8"), ("nanos", ">i4")]))
    found["seconds"], found["nanos"] = micros // 1_000_000, micros % 1_000_000 * 1000
    return found


def _local_date_time(column: Any) -> Any:
    micros = _micros(column)
    found = numpy.zeros(len(micros), numpy.dtype([("days", ">i8"), ("nanos", ">i8")]))
    found["days"], found["nanos"] = micros // _MICROS_OF_A_DAY, micros % _MICROS_OF_A_DAY * 1000
    return found


_ENCODERS: Mapping[str, Callable[[Any], Any]] = {
    "BOOLEAN": lambda column: numpy.asarray(column.cast(pyarrow.uint8())),
    "INT8": _numbers("i1"),
    "INT16": _numbers(">i2"),
    "INT32": _numbers(">i4"),
    "INT64": _numbers(">i8"),
    "FLOAT": _numbers(">f4"),
    "DOUBLE": _numbers(">f8"),
    "DATE": _milliseconds,
    "TIMESTAMP": _milliseconds,
    "INSTANT": _instant,
    "TIME": _numbers(">i8"),
    "LOCAL_TIME": _numbers(">i8"),
    "LOCAL_DATE": lambda column: numpy.asarray(column.cast(pyarrow.int32())).astype(">i8"),
    "LOCAL_DATE_TIME": _local_date_time,
}
