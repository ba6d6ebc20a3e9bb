"""The bytes of every row, by vector operations: varints and fixed octets as cells, and pieces joined row by row. Pure.

A cell is a matrix of octets and which of them count; a piece is an Arrow array of bytes. Each encoding
(protobuf, Avro, JSON) puts these together; no step looks at one row.
"""

from dataclasses import dataclass
from typing import Any

import numpy
import pyarrow
import pyarrow.compute

from ...decode.octets import Flags, Octets, Places, Words


@dataclass(frozen=True, slots=True)
class Cells:
    """`octets[row, i]` counts where `used[row, i]`."""

    octets: numpy.ndarray[Any, numpy.dtype[numpy.uint8]]
    used: numpy.ndarray[Any, numpy.dtype[numpy.bool_]]

    def where(self, is_present: Flags) -> "Cells":
        """Nothing in the other rows."""
        return Cells(self.octets, self.used & is_present[:, None])

    @property
    def sizes(self) -> Places:
        found: Places = self.used.sum(axis=1, dtype=numpy.int64)
        return found


def constant(octets: bytes, count: int) -> Cells:
    row = numpy.frombuffer(octets, numpy.uint8)
    return Cells(numpy.broadcast_to(row, (count, len(row))), numpy.ones((count, len(row)), numpy.bool_))


def varints(values: Words) -> Cells:
    """Base 128, the lowest group first."""
    width = max(1, (int(values.max()).bit_length() + 6) // 7) if len(values) else 1
    shifted = values[:, None] >> (numpy.arange(width, dtype=numpy.uint64) * numpy.uint64(7))
    used = shifted != 0
    used[:, 0] = True
    octets = (shifted & numpy.uint64(127)).astype(numpy.uint8)
    octets[:, :-1] |= used[:, 1:].astype(numpy.uint8) << 7
    return Cells(octets, used)


def big_endian(values: Places) -> Cells:
    """Words of four bytes."""
    octets = values.astype(">u4").view(numpy.uint8).reshape(-1, 4)
    return Cells(octets, numpy.ones(octets.shape, numpy.bool_))


def little_endian(values: Any) -> Cells:
    """Numbers as they lie in memory: IEEE floats for Avro."""
    octets = values.view(numpy.uint8).reshape(len(values), values.itemsize)
    return Cells(octets, numpy.ones(octets.shape, numpy.bool_))


def piece(*cells: Cells) -> Any:
    """Cells beside each other as bytes of each row."""
    used = numpy.hstack([each.used for each in cells])
    octets = numpy.hstack([each.octets for each in cells])
    return binary_array(used.sum(axis=1, dtype=numpy.int64), octets[used])


def binary_array(sizes: Places, data: Octets) -> Any:
    offsets = numpy.zeros(len(sizes) + 1, numpy.int32)
    numpy.cumsum(sizes, out=offsets[1:])
    return pyarrow.Array.from_buffers(pyarrow.binary(), len(sizes), [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(data)])


def joined(pieces: list[Any]) -> Any:
    """Row by row; a null counts as nothing. Up to 2 GB in all: `ArrowInvalid` beyond."""
    if len(pieces) == 1:
        return pyarrow.compute.fill_null(pieces[0], b"") if pieces[0].null_count else pieces[0]
    options = {"null_handling": "replace", "null_replacement": b""}
    return pyarrow.compute.binary_join_element_wise(*pieces, pyarrow.scalar(b"", pyarrow.binary()), **options)


def sizes_of(array: Any) -> Places:
    """The number of bytes of each row; 0 where it is null."""
    lengths = pyarrow.compute.fill_null(pyarrow.compute.binary_length(array), 0)
    return numpy.asarray(lengths).astype(numpy.int64)


def is_null(array: Any) -> Flags:
    return numpy.asarray(pyarrow.compute.is_null(array))


def grouped(array: Any, offsets: Places) -> Any:
    """Rows `offsets[i]` to `offsets[i + 1]` of an array without nulls as one: what they hold lies there already."""
    starts = numpy.frombuffer(array.buffers()[1], numpy.int32)[array.offset : array.offset + len(array) + 1]
    ends = pyarrow.py_buffer(numpy.ascontiguousarray(starts[offsets]))
    return pyarrow.Array.from_buffers(pyarrow.binary(), len(offsets) - 1, [None, ends, array.buffers()[2]])
