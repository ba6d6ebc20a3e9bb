"""Rows as an Arrow record batch: only the columns that are asked for are made.

Values are found, not copied; then all of a column are copied in one pass: by the compiled kernel, or without it by Arrow, which
is handed a view of each value's place in the block and casts them to plain binary. Types are those into which Spark's
`to_arrow_schema(..., timezone="UTC")` turns our columns.
"""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy
import pyarrow

from .compiled import kernel
from .octets import Flags, Octets, Places, words_at
from .plain import MESSAGE_ID as MESSAGE_ID
from .plain import TIME, TIME_MS_MAX
from .protobuf_columns import Fields, Repeated, Spans, scan
from .rooms import Rooms
from .rows import Rows

_VIEW_BYTES_INLINE_MAX = 12
_LOW_BYTES = numpy.array([(1 << 8 * count) - 1 for count in range(9)], numpy.uint64)
"""Masks: of a word, so many bytes from the lowest."""
_OFFSET_MAX = (1 << 31) - 1
"""Bytes of a column of Arrow's."""
_ROOMS = Rooms(4)
_TIME_MS_LAST = TIME_MS_MAX - 86_400_000
"""A day before the end of the year 9999: within it in every time zone."""
SCHEMA = pyarrow.schema(
    [
        pyarrow.field("key", pyarrow.binary()),
        pyarrow.field("value", pyarrow.binary()),
        pyarrow.field("properties", pyarrow.map_(pyarrow.string(), pyarrow.string()), nullable=False),
        pyarrow.field("topic", pyarrow.string(), nullable=False),
        pyarrow.field("message_id", MESSAGE_ID, nullable=False),
        pyarrow.field("index", pyarrow.int64()),
        pyarrow.field("publish_time", TIME, nullable=False),
        pyarrow.field("event_time", TIME),
        pyarrow.field("producer", pyarrow.string()),
        pyarrow.field("sequence_id", pyarrow.int64(), nullable=False),
        pyarrow.field("schema_version", pyarrow.int64()),
        pyarrow.field("error", pyarrow.string()),
    ]
)
"""All columns. `error` says why a record could not be decoded; null for one that could.

Columns that every message has are not nullable: Spark looks for nulls in the others, which is up to a fifth of a row's cost.
"""


def batch_of(
    rows: Rows, topic: str, columns: Sequence[str], kept: Flags | None = None, made: Mapping[str, Any] | None = None
) -> Any:
    """A record batch of these columns, in their order, of the rows in `kept` (all, when it is None).

    `made`: columns of all rows that stand in for those of the same name.
    """
    # kept rows are chosen in the finished columns: filters by time keep nearly all or nearly nothing of a block
    made = made or {}
    arrays = [made[name] if name in made else _COLUMNS[name](rows, topic) for name in columns]
    batch = pyarrow.RecordBatch.from_arrays(arrays, names=list(columns)) if columns else _without_columns(rows.count)
    return batch if kept is None or bool(kept.all()) else batch.filter(pyarrow.array(kept))


def keys_of(rows: Rows) -> Any:
    """The column `key`, as bytes."""
    return _COLUMNS["key"](rows, "")


def _without_columns(count: int) -> Any:
    """A count needs rows and no column."""
    empty = pyarrow.array([None] * count, pyarrow.struct([]))
    return pyarrow.RecordBatch.from_struct_array(empty)


def binary_of(data: Octets, spans: Spans) -> Any:
    """The bytes `data[start:end]` of each row, null where a span is not present."""
    is_whole = bool(spans.present.all())
    validity = None if is_whole else pyarrow.py_buffer(numpy.packbits(spans.present, bitorder="little"))
    size = int(numpy.maximum(spans.ends - spans.starts, 0).sum())
    if kernel is None or size > _OFFSET_MAX:
        return _by_views(data, spans, validity)
    count = len(spans.starts)
    offsets, room = numpy.empty(count + 1, numpy.int32), _ROOMS.of(size)
    starts, ends = (numpy.ascontiguousarray(each).data for each in (spans.starts, spans.ends))
    kernel.gather(data.data, starts, ends, offsets.data, room.data)
    return pyarrow.Array.from_buffers(pyarrow.binary(), count, [validity, pyarrow.py_buffer(offsets), pyarrow.py_buffer(room)])


def _by_views(data: Octets, spans: Spans, validity: Any) -> Any:
    count = len(spans.starts)
    starts = numpy.maximum(spans.starts, 0)
    lengths = numpy.maximum(spans.ends - spans.starts, 0)
    views = numpy.zeros((count, 2), "<u8")
    first = words_at(data, starts)
    views[:, 0] = lengths.astype(numpy.uint64) | (first << numpy.uint64(32))
    views[:, 1] = starts.astype(numpy.uint64) << numpy.uint64(32)
    short = numpy.flatnonzero(lengths <= _VIEW_BYTES_INLINE_MAX)
    if len(short):
        _inline(data, views, short, starts[short], lengths[short])
    buffers = [validity, pyarrow.py_buffer(views), pyarrow.py_buffer(data)]
    return pyarrow.Array.from_buffers(pyarrow.binary_view(), count, buffers).cast(pyarrow.binary())


def _inline(data: Octets, views: Any, rows: Places, starts: Places, lengths: Places) -> None:
    """A value of up to 12 bytes stands in its view, zeros behind it (Arrow's columnar format, variable-size binary view)."""
    begin = words_at(data, starts) & _LOW_BYTES[numpy.minimum(lengths, 4)]
    rest = words_at(data, starts + 4) & _LOW_BYTES[numpy.maximum(lengths - 4, 0)]
    views[rows, 0] = lengths.astype(numpy.uint64) | (begin << numpy.uint64(32))
    views[rows, 1] = rest


def _masked(spans: Spans, is_null: Flags) -> Spans:
    if not bool(is_null.any()):
        return spans
    return Spans(numpy.where(is_null, -1, spans.starts), numpy.where(is_null, -1, spans.ends))


def _value(rows: Rows, topic: str) -> Any:
    """The payload; an entry that cannot be decoded has its stored payload, for readers that can decode it."""
    return binary_of(rows.data, _masked(rows.values, rows.is_null))


def _key(rows: Rows, topic: str) -> Any:
    keys = binary_of(rows.data, rows.keys)
    if not bool(rows.is_base64.any()):
        return keys
    encoded = numpy.flatnonzero(rows.is_base64 & rows.keys.present)
    # keys that are bytes and no text: their producers encode each
    decoded = keys.to_pylist()
    for row in encoded.tolist():
        decoded[row] = _from_base64(decoded[row])
    return pyarrow.array(decoded, pyarrow.binary())


def _from_base64(key: bytes) -> bytes:
    try:
        return base64.b64decode(key, validate=True)
    except binascii.Error:
        return key


def _properties(rows: Rows, topic: str) -> Any:
    of_rows = rows.properties.rows
    keys, values = _pairs(rows)
    repeated = _repeated(of_rows, keys, rows.count)
    if repeated is not None:
        keys, values, of_rows = keys.filter(~repeated), values.filter(~repeated), of_rows[~repeated]
    offsets = numpy.zeros(rows.count + 1, numpy.int32)
    numpy.cumsum(numpy.bincount(of_rows, minlength=rows.count), out=offsets[1:])
    return pyarrow.MapArray.from_arrays(pyarrow.array(offsets), keys, values)


def _repeated(of_rows: Places, keys: Any, count: int) -> Flags | None:
    """Names that come again in the same message: the last one counts, as with Apache's Java client. Spark's maps have each name
    once, and do not look whether that is so. None where there is none."""
    if len(of_rows) < 2 or not bool((of_rows[1:] == of_rows[:-1]).any()):
        return None
    codes = numpy.asarray(keys.dictionary_encode().indices).astype(numpy.int64)
    pairs = of_rows * (int(codes.max()) + 1) + codes
    last = len(pairs) - 1 - numpy.unique(pairs[::-1], return_index=True)[1]
    if len(last) == len(pairs):
        return None
    found = numpy.ones(len(pairs), numpy.bool_)
    found[last] = False
    return found


def _pairs(rows: Rows) -> tuple[Any, Any]:
    found: Repeated = rows.properties
    # these lie in the block or, of compressed batches, behind it: `data` begins with the block's own bytes
    pairs = scan(rows.data, found.starts, found.ends, Fields(spans=(1, 2)))
    keys, values = (text_of(binary_of(rows.data, _present(pairs.spans[number]))) for number in (1, 2))
    return keys, values


def _present(spans: Spans) -> Spans:
    return Spans(numpy.maximum(spans.starts, 0), numpy.maximum(spans.ends, 0))


def text_of(values: Any) -> Any:
    """Text, with U+FFFD for what is none: Spark trusts what it is given."""
    try:
        return values.cast(pyarrow.string())
    except pyarrow.ArrowInvalid:
        return pyarrow.array([each if each is None else each.decode(errors="replace") for each in values.to_pylist()])


def _of_entries(rows: Rows, spans: Spans) -> Any:
    return binary_of(rows.block.data, spans).take(pyarrow.array(rows.entries))


def _producer(rows: Rows, topic: str) -> Any:
    return text_of(_of_entries(rows, rows.producers))


def _schema_version(rows: Rows, topic: str) -> Any:
    numbers = rows.schema_version_numbers()
    return pyarrow.array(numbers, mask=numbers < 0).take(pyarrow.array(rows.entries))


def _event_time(rows: Rows, topic: str) -> Any:
    """Null where it is after the year 9999: no calendar of Python's or Spark's has it, and no clock told it."""
    times = rows.event_times
    is_null = (times == 0) | (times > numpy.uint64(TIME_MS_MAX))
    return pyarrow.array(numpy.where(is_null, 0, times).astype(numpy.int64) * 1000, mask=is_null).cast(TIME)


def _publish_time(rows: Rows, topic: str) -> Any:
    """Each message has one: of a time after the year 9999 a moment at its end."""
    told = rows.entry_publish_times
    of_entries = numpy.where(told > numpy.uint64(TIME_MS_MAX), numpy.uint64(_TIME_MS_LAST), told)
    return pyarrow.array((of_entries.astype(numpy.int64) * 1000)[rows.entries]).view(TIME)


def _error(rows: Rows, topic: str) -> Any:
    return reasons_of(rows, topic, {})


def reasons_of(rows: Rows, topic: str, of_rows: Mapping[int, str]) -> Any:
    """The column `error`: what is wrong with an entry, or (`of_rows`) with one of its messages."""
    if not of_rows and not rows.has_errors:
        return pyarrow.nulls(rows.count, pyarrow.string())
    reasons = [of_rows.get(row) or rows.errors[entry] for row, entry in enumerate(rows.entries.tolist())]
    return pyarrow.array(
        [f"{topic} at {place(rows, row)}: {reason}" if reason else None for row, reason in enumerate(reasons)], pyarrow.string()
    )


def place(rows: Rows, row: int) -> str:
    """`ledger:entry`, as options and errors name a position, and the place in its batch."""
    entry, index = rows.entries[row], rows.batch_indexes[row]
    inside = f", message {index} of its batch" if index >= 0 else ""
    return f"{rows.block.ledger_ids[entry]}:{rows.block.entry_ids[entry]}{inside}"


def _message_id(rows: Rows, topic: str) -> Any:
    ledger_ids, entry_ids = rows.block.ledger_ids[rows.entries], rows.block.entry_ids[rows.entries]
    parts = [pyarrow.array(ledger_ids), pyarrow.array(entry_ids), pyarrow.array(rows.batch_indexes.astype(numpy.int32))]
    return pyarrow.StructArray.from_arrays(parts, fields=list(MESSAGE_ID))


_COLUMNS: Mapping[str, Callable[[Rows, str], Any]] = {
    "key": _key,
    "value": _value,
    "properties": _properties,
    "topic": lambda rows, topic: pyarrow.repeat(topic, rows.count),
    "message_id": _message_id,
    "index": lambda rows, topic: pyarrow.array(rows.indexes, mask=rows.indexes < 0),
    "publish_time": _publish_time,
    "event_time": _event_time,
    "producer": _producer,
    "sequence_id": lambda rows, topic: pyarrow.array(rows.sequence_ids.view(numpy.int64)),
    "schema_version": _schema_version,
    "error": _error,
}
