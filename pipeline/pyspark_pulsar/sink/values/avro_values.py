"""A struct column as Avro's binary encoding, field by field for all rows at a time. Pure.

Each field is a union of null and its type (`value_schema`): index 0, or index 1 (written 2, zigzag) and the value.
"""

from decimal import Decimal
from typing import Any

import numpy
import pyarrow
import pyarrow.compute

from ...decode.octets import Flags, Words
from ..errors import WrongFrame
from .pieces import Cells, constant, grouped, is_null, joined, little_endian, piece, sizes_of, varints

_NULL, _THERE = b"\x00", b"\x02"
_DECIMAL_BYTES = 16


def avro_values(column: Any) -> Any:
    """Bytes of each row, null where the struct is."""
    return _nulls_again(_record(column), column)


def _record(column: Any) -> Any:
    # flatten() lets a null struct's fields be null
    parts = [_optional(each) for each in column.flatten()]
    return joined(parts) if parts else binary_nothing(len(column))


def binary_nothing(count: int) -> Any:
    return pyarrow.array([b""] * count, pyarrow.binary())


def _nulls_again(encoded: Any, column: Any) -> Any:
    if not column.null_count:
        return encoded
    return pyarrow.compute.if_else(pyarrow.compute.is_null(column), pyarrow.scalar(None, pyarrow.binary()), encoded)


def _optional(column: Any) -> Any:
    there = ~is_null(column)
    count = len(column)
    index = Cells(numpy.where(there, _THERE[0], _NULL[0]).astype(numpy.uint8)[:, None], numpy.ones((count, 1), numpy.bool_))
    kind = column.type
    if pyarrow.types.is_string(kind) or pyarrow.types.is_binary(kind):
        octets = column.cast(pyarrow.binary())
        return joined([piece(index, varints(_zigzag(sizes_of(octets))).where(there)), octets])
    if pyarrow.types.is_struct(kind):
        return joined([piece(index), _nulls_again(_record(column), column)])
    if pyarrow.types.is_list(kind) or pyarrow.types.is_map(kind):
        return joined([piece(index), _items(column, there)])
    return piece(index, _number(column).where(there))


def _number(column: Any) -> Cells:
    kind = column.type
    if pyarrow.types.is_boolean(kind):
        filled = pyarrow.compute.fill_null(column, False)
        values = numpy.asarray(filled.cast(pyarrow.uint8()))
        return Cells(values[:, None], numpy.ones((len(column), 1), numpy.bool_))
    if pyarrow.types.is_floating(kind):
        return little_endian(numpy.ascontiguousarray(pyarrow.compute.fill_null(column, 0.0)))
    if pyarrow.types.is_decimal128(kind):
        return _decimals(column)
    if pyarrow.types.is_timestamp(kind):
        column = column.cast(pyarrow.timestamp("us", tz=kind.tz)).cast(pyarrow.int64())
    elif pyarrow.types.is_date(kind):
        column = column.cast(pyarrow.int32())
    elif not pyarrow.types.is_integer(kind):
        raise WrongFrame(f"column value: {kind} cannot be encoded as Avro")
    return varints(_zigzag(numpy.asarray(pyarrow.compute.fill_null(column, 0)).astype(numpy.int64)))


def _decimals(column: Any) -> Cells:
    """Two's complement, its highest byte first: of sixteen bytes, all that Arrow has, the lowest first."""
    filled = pyarrow.compute.fill_null(column, pyarrow.scalar(Decimal(0), column.type))
    room = numpy.frombuffer(filled.buffers()[1] or b"", numpy.uint8).reshape(-1, _DECIMAL_BYTES)
    found = room[filled.offset : filled.offset + len(filled), ::-1]
    octets = numpy.hstack([numpy.full((len(found), 1), 2 * _DECIMAL_BYTES, numpy.uint8), found])
    return Cells(octets, numpy.ones(octets.shape, numpy.bool_))


def _items(column: Any, there: Flags) -> Any:
    """One block of items (of a map pairs) and an end, or the end alone; nothing in a row that is null."""
    if column.null_count:
        column = pyarrow.compute.fill_null(column, pyarrow.scalar([], column.type))
    offsets = numpy.asarray(column.offsets).astype(numpy.int64)
    counts = numpy.diff(offsets)
    first, count = int(offsets[0]), int(offsets[-1] - offsets[0])
    if pyarrow.types.is_map(column.type):
        keys = column.keys.slice(first, count).cast(pyarrow.binary())
        items = joined([piece(varints(_zigzag(sizes_of(keys)))), keys, _optional(column.items.slice(first, count))])
    else:
        items = _optional(column.values.slice(first, count))
    head = piece(varints(_zigzag(counts)).where(counts > 0))
    return joined([head, grouped(items, offsets - offsets[0]), piece(constant(_NULL, len(counts)).where(there))])


def _zigzag(values: Any) -> Words:
    found: Words = ((values << 1) ^ (values >> 63)).view(numpy.uint64)
    return found
