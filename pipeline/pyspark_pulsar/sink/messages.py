"""Rows as the messages of a batch. Pure.

Each is `u32 size | SingleMessageMetadata | payload`, its fields in the order of their numbers.
"""

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy
import pyarrow
import pyarrow.compute

from ..decode.compiled import compiled
from ..decode.octets import Flags, Places, Words
from .values.pieces import big_endian, constant, grouped, is_null, joined, piece, sizes_of, varints

kernel = compiled("outgoing")
"""`wire.kernels.outgoing`, for what is written."""

_PROPERTIES, _KEY, _PAYLOAD_SIZE, _EVENT_TIME = b"\x0a", b"\x12", b"\x18", b"\x28"
_KEY_IS_BASE64, _SEQUENCE_ID, _NULL_VALUE = b"\x30\x01", b"\x40", b"\x48\x01"
_FIRST, _SECOND = b"\x0a", b"\x12"
_NO_BOUNDS = numpy.zeros(0, numpy.int32)
_NO_WORDS = numpy.zeros(0, numpy.uint64)


@dataclass(frozen=True, slots=True)
class Keys:
    """`text`: keys as on the wire, null for none. A key that is not UTF-8 is in base 64, and `is_base64` says so."""

    text: Any
    is_base64: Flags


@dataclass(frozen=True, slots=True)
class OutgoingRows:
    """One length all. `properties` are encoded; `event_times` in milliseconds, 0 for none; a null value is a tombstone."""

    values: Any
    keys: Keys | None
    properties: Any | None
    event_times: Words | None
    sequence_ids: Words

    @property
    def count(self) -> int:
        return len(self.sequence_ids)

    def take(self, rows: Places) -> "OutgoingRows":
        chosen = pyarrow.array(rows)
        keys = None if self.keys is None else Keys(self.keys.text.take(chosen), self.keys.is_base64[rows])
        return OutgoingRows(
            self.values.take(chosen),
            keys,
            None if self.properties is None else self.properties.take(chosen),
            None if self.event_times is None else self.event_times[rows],
            self.sequence_ids[rows],
        )

    def parts(self, chosen: Places) -> "Iterator[tuple[int, OutgoingRows]]":
        """Rows by number: `chosen` has a number for each row."""
        for number in numpy.unique(chosen).tolist():
            yield number, self.take(numpy.flatnonzero(chosen == number))


@dataclass(frozen=True, slots=True)
class Encoded:
    """Messages one behind the other, and where each ends."""

    data: memoryview
    ends: Places


def encoded(rows: OutgoingRows) -> Encoded:
    """Encoded rows, by the compiled kernel where it is there; numpy makes the same bytes."""
    if kernel is not None and rows.count:
        return _by_kernel(kernel, rows)
    messages = encoded_messages(rows)
    return Encoded(memoryview(messages.buffers()[2] or b"").cast("B"), numpy.cumsum(sizes_of(messages)))


def _by_kernel(kernel: ModuleType, rows: OutgoingRows) -> Encoded:
    keys = None if rows.keys is None else rows.keys.text
    columns = [_laid_out(each) for each in (rows.values, keys, rows.properties)]
    marks = numpy.zeros(rows.count, numpy.uint8)
    if rows.values.null_count:
        marks[is_null(rows.values)] |= kernel.IS_NULL
    if rows.keys is not None:
        marks[~is_null(keys)] |= kernel.HAS_KEY
        marks[rows.keys.is_base64] |= kernel.IS_BASE64
    times = _NO_WORDS if rows.event_times is None else numpy.ascontiguousarray(rows.event_times)
    size = sum(int(bounds[-1] - bounds[0]) for _, bounds in columns if len(bounds)) + kernel.MESSAGE_BYTES_MAX * rows.count
    room, ends = memoryview(pyarrow.allocate_buffer(size)).cast("B"), numpy.empty(rows.count, numpy.int64)
    laid_out = [part for data, bounds in columns for part in (data, bounds.data)]
    ids = numpy.ascontiguousarray(rows.sequence_ids)
    used = kernel.put_messages(*laid_out, times.data, ids.data, marks.data, ends.data, room)
    return Encoded(room[:used], ends)


def _laid_out(array: Any) -> tuple[Any, Any]:
    """The bytes of all rows, and where each begins; nothing for a column that is not there."""
    if array is None:
        return b"", _NO_BOUNDS
    _, bounds, data = array.buffers()
    return data or b"", numpy.frombuffer(bounds, numpy.int32)[array.offset : array.offset + len(array) + 1]


def encoded_messages(rows: OutgoingRows) -> Any:
    """An Arrow array: one message each."""
    fields = [] if rows.properties is None else [rows.properties]
    fields += _key(rows)
    fields.append(_rest(rows))
    sizes = sum((sizes_of(each) for each in fields), numpy.zeros(rows.count, numpy.int64))
    return joined([piece(big_endian(sizes)), *fields, rows.values])


def _key(rows: OutgoingRows) -> list[Any]:
    if rows.keys is None:
        return []
    text = rows.keys.text
    there = ~is_null(text)
    head = piece(constant(_KEY, rows.count).where(there), varints(sizes_of(text).astype(numpy.uint64)).where(there))
    return [head, text]


def _rest(rows: OutgoingRows) -> Any:
    """The fields behind the key: all of them numbers."""
    count = rows.count
    cells = [constant(_PAYLOAD_SIZE, count), varints(sizes_of(rows.values).astype(numpy.uint64))]
    if rows.event_times is not None:
        there = rows.event_times != 0
        cells += [constant(_EVENT_TIME, count).where(there), varints(rows.event_times).where(there)]
    if rows.keys is not None and bool(rows.keys.is_base64.any()):
        cells.append(constant(_KEY_IS_BASE64, count).where(rows.keys.is_base64))
    cells += [constant(_SEQUENCE_ID, count), varints(rows.sequence_ids)]
    if rows.values.null_count:
        cells.append(constant(_NULL_VALUE, count).where(is_null(rows.values)))
    return piece(*cells)


def encoded_properties(properties: Any) -> Any:
    """A map array of texts as field 1 of each row: KeyValues. A null value is "" there: protobuf has no other."""
    offsets = numpy.asarray(properties.offsets).astype(numpy.int64)
    names, values = (each.cast(pyarrow.binary()) for each in (properties.keys, properties.items))
    names, values = names.slice(offsets[0], offsets[-1] - offsets[0]), values.slice(offsets[0], offsets[-1] - offsets[0])
    name_sizes, value_sizes = sizes_of(names), sizes_of(values)
    count = len(names)
    name_varints, value_varints = varints(name_sizes.astype(numpy.uint64)), varints(value_sizes.astype(numpy.uint64))
    inner = 2 + name_varints.sizes + value_varints.sizes + name_sizes + value_sizes
    head = piece(constant(_PROPERTIES, count), varints(inner.astype(numpy.uint64)), constant(_FIRST, count), name_varints)
    return grouped(joined([head, names, piece(constant(_SECOND, count), value_varints), values]), offsets - offsets[0])


def wire_keys(keys: Any) -> Keys:
    """Keys are text on the wire; bytes that are none go as base 64, as Apache's clients send a key of bytes."""
    octets = keys.cast(pyarrow.binary())
    try:
        octets.cast(pyarrow.string())
    except pyarrow.ArrowInvalid:
        return _some_as_base64(octets)
    return Keys(octets, numpy.zeros(len(octets), numpy.bool_))


def _some_as_base64(octets: Any) -> Keys:
    """A look at each row: only where some are no text."""
    found, is_base64 = octets.to_pylist(), numpy.zeros(len(octets), numpy.bool_)
    for row, key in enumerate(found):
        try:
            (key or b"").decode()
        except UnicodeDecodeError:
            found[row], is_base64[row] = base64.b64encode(key), True
    return Keys(pyarrow.array(found, pyarrow.binary()), is_base64)


def base64_keys(keys: Any) -> Keys:
    """All of them, as Java's client sends the keys of a KeyValue: by their text it chooses a partition."""
    found = [None if each is None else base64.b64encode(each) for each in keys.to_pylist()]
    return Keys(pyarrow.array(found, pyarrow.binary()), numpy.array([each is not None for each in found], numpy.bool_))
