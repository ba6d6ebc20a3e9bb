"""The short way from entries to columns, by compiled kernels: for blocks of nothing but plain batches, read by most queries.

Plain: every entry is a batch, neither compressed nor encrypted, of no transaction and in no chunks, and every message of it has
a value. Such a block is taken apart in two passes, and each value is copied once. Everything else is `rows`' part: both make
the same of a block, and here None is said of what is not plain.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
import pyarrow

from .compiled import entries_kernel, kernel
from .octets import Places
from .rooms import Rooms
from .sections import Block

_MESSAGE_BYTES_MIN = 6
_OFFSET_MAX = (1 << 31) - 1
TIME_MS_MAX = 253_402_300_799_999
"""The last millisecond of the year 9999."""
_ROOMS = Rooms(4)
MESSAGE_ID = pyarrow.struct(
    [
        pyarrow.field("ledger_id", pyarrow.int64(), nullable=False),
        pyarrow.field("entry_id", pyarrow.int64(), nullable=False),
        pyarrow.field("batch_index", pyarrow.int32(), nullable=False),
    ]
)
TIME = pyarrow.timestamp("us", tz="UTC")


@dataclass(frozen=True, slots=True)
class PlainBatches:
    """Entries of a block: the start and the number of their messages, and their publish times in milliseconds."""

    block: Block
    starts: Places
    counts: Places
    publish_times: Places

    @property
    def message_count(self) -> int:
        return int(self.counts.sum())


def plain_batches(block: Block, verifies_checksums: bool) -> PlainBatches | None:
    """None where an entry is anything else, or damaged."""
    if entries_kernel is None or kernel is None or not block.count:
        return None
    table = numpy.empty((entries_kernel.COLUMNS, block.count), numpy.int64)
    starts, ends = numpy.ascontiguousarray(block.starts), numpy.ascontiguousarray(block.ends)
    verifies = verifies_checksums and not block.has_right_checksums
    if not entries_kernel.take_batches(block.data.data, starts.data, ends.data, verifies, table.reshape(-1).data):
        return None
    found = PlainBatches(block, *table)
    if bool((found.counts > (ends - found.starts) // _MESSAGE_BYTES_MIN).any()):
        return None
    return None if bool((found.publish_times > TIME_MS_MAX).any()) else found


def plain_columns(batches: PlainBatches, topic: str, columns: Sequence[str]) -> Any:
    """A record batch of all messages. None where a message is not plain, or a column is none of these."""
    if not columns or not _COLUMNS.keys() | _COPIED >= set(columns):
        return None
    copied = _copied(batches, "key" in columns, "value" in columns)
    if copied is None:
        return None
    arrays = [copied[name] if name in _COPIED else _COLUMNS[name](batches, topic) for name in columns]
    return pyarrow.RecordBatch.from_arrays(arrays, names=list(columns))


def _copied(batches: PlainBatches, with_keys: bool, with_values: bool) -> dict[str, Any] | None:
    """Keys and values. Messages are looked at though neither is wanted: one that was compacted out is no row."""
    assert kernel is not None
    count, ends = batches.message_count, batches.block.ends
    size = int((ends - batches.starts).sum())  # neither has more
    if size > _OFFSET_MAX:
        return None
    keys, values = (_ROOMS.of(size if is_wanted else 0) for is_wanted in (with_keys, with_values))
    offsets = numpy.empty((2, count + 1), numpy.int32)
    has_key = numpy.empty(count, numpy.uint8)
    places = numpy.concatenate((batches.starts, ends, batches.counts)).data
    data = batches.block.data.data
    absent = kernel.take_columns(data, places, keys.data, offsets[0].data, values.data, offsets[1].data, has_key.data)
    if absent < 0:
        return None
    validity = pyarrow.py_buffer(numpy.packbits(has_key, bitorder="little")) if absent else None
    return {"key": _binary(count, validity, offsets[0], keys), "value": _binary(count, None, offsets[1], values)}


def _binary(count: int, validity: Any, offsets: Any, room: Any) -> Any:
    buffers = [validity, pyarrow.py_buffer(offsets), pyarrow.py_buffer(room[: offsets[-1]])]
    return pyarrow.Array.from_buffers(pyarrow.binary(), count, buffers)


def _publish_time(batches: PlainBatches, topic: str) -> Any:
    return pyarrow.array(numpy.repeat(batches.publish_times * 1000, batches.counts)).view(TIME)


def _message_id(batches: PlainBatches, topic: str) -> Any:
    counts, block = batches.counts, batches.block
    firsts = numpy.cumsum(counts) - counts
    indexes = (numpy.arange(batches.message_count) - numpy.repeat(firsts, counts)).astype(numpy.int32)
    ids = [pyarrow.array(numpy.repeat(each, counts)) for each in (block.ledger_ids, block.entry_ids)]
    return pyarrow.StructArray.from_arrays([*ids, pyarrow.array(indexes)], fields=list(MESSAGE_ID))


_COPIED = frozenset({"key", "value"})
_COLUMNS: Mapping[str, Callable[[PlainBatches, str], Any]] = {
    "topic": lambda batches, topic: pyarrow.repeat(topic, batches.message_count),
    "message_id": _message_id,
    "publish_time": _publish_time,
}
