"""Entries taken apart: broker entry metadata, checksum, message metadata and payload of a whole block of them at a time.

`[0x0e02 | u32 size | BrokerEntryMetadata] [0x0e01 | u32 crc32c] u32 size | MessageMetadata | payload`, big-endian, as Apache's
`Commands` writes it.
"""

from dataclasses import dataclass

import crc32c
import numpy

from .octets import Flags, Octets, Places, sizes_at
from .protobuf_columns import Columns, Fields, scan

PRODUCER_NAME, SEQUENCE_ID, PUBLISH_TIME, PROPERTIES, PARTITION_KEY = 1, 2, 3, 4, 6
COMPRESSION, UNCOMPRESSED_SIZE, BATCH_COUNT, EVENT_TIME, ENCRYPTION_KEYS = 8, 9, 11, 12, 13
SCHEMA_VERSION, KEY_IS_BASE64, MARKER_TYPE, TXN_ID, NULL_VALUE, CHUNK_COUNT = 16, 17, 20, 22, 25, 27

_METADATA = Fields(
    numbers=(
        *(SEQUENCE_ID, PUBLISH_TIME, COMPRESSION, UNCOMPRESSED_SIZE, BATCH_COUNT, EVENT_TIME),
        *(KEY_IS_BASE64, MARKER_TYPE, TXN_ID, NULL_VALUE, CHUNK_COUNT),
    ),
    spans=(PRODUCER_NAME, PARTITION_KEY, ENCRYPTION_KEYS, SCHEMA_VERSION),
    repeated=(PROPERTIES,),
)
_BROKER_INDEX = 2
_BROKER_METADATA = Fields(numbers=(_BROKER_INDEX,))
_MAGIC_BROKER_METADATA, _MAGIC_CHECKSUM = 0x0E02, 0x0E01


@dataclass(frozen=True, slots=True)
class Block:
    """Entries of one topic, in order: `data[starts[i]:ends[i]]` is one section. `data` has padding (`octets.padded`)."""

    data: Octets
    starts: Places
    ends: Places
    ledger_ids: Places
    entry_ids: Places
    has_right_checksums: bool = False
    """Whether the block's maker has verified all of them."""

    @property
    def count(self) -> int:
        return len(self.starts)

    def chosen(self, rows: Places) -> "Block":
        """These entries; the bytes stay where they are."""
        places = (self.starts[rows], self.ends[rows], self.ledger_ids[rows], self.entry_ids[rows])
        return Block(self.data, *places, self.has_right_checksums)


@dataclass(frozen=True, slots=True)
class Sections:
    """`errors[i]` says why an entry cannot be read, "" where it can. `last_indexes`: the index of the last message, or -1."""

    metadata: Columns
    payload_starts: Places
    last_indexes: Places
    errors: list[str]


def split(block: Block, verifies_checksums: bool = True) -> Sections:
    """No entry makes this fail: what is wrong with it is in `errors`."""
    errors = [""] * block.count
    at, last_indexes = _after_broker_metadata(block, errors)
    at = _after_checksum(block, at, errors, verifies_checksums)
    starts = at + 4
    ends = starts + sizes_at(block.data, at)
    _mark(errors, (ends > block.ends), "the metadata of the message is cut off")
    ends = numpy.where(_sound(errors), ends, starts)
    metadata = scan(block.data, starts, ends, _METADATA)
    is_whole = metadata.spans[PRODUCER_NAME].present & metadata.numbers[PUBLISH_TIME].present
    _mark(errors, metadata.is_broken | ~is_whole, "the metadata of the message is unreadable")
    return Sections(metadata, ends, last_indexes, errors)


def _after_broker_metadata(block: Block, errors: list[str]) -> tuple[Places, Places]:
    words = sizes_at(block.data, block.starts)
    found = (words >> 16) == _MAGIC_BROKER_METADATA
    last_indexes = numpy.full(block.count, -1, numpy.int64)
    if not bool(found.any()):
        return block.starts, last_indexes
    starts = block.starts + 6
    ends = numpy.where(found, starts + sizes_at(block.data, block.starts + 2), block.starts)
    _mark(errors, ends > block.ends, "the broker entry metadata is cut off")
    ends = numpy.minimum(ends, block.ends)
    columns = scan(block.data, numpy.where(found, starts, ends), ends, _BROKER_METADATA)
    index = columns.numbers[_BROKER_INDEX]
    return ends, numpy.where(index.present, index.values.astype(numpy.int64), -1)


def _after_checksum(block: Block, at: Places, errors: list[str], verifies: bool) -> Places:
    found = (sizes_at(block.data, at) >> 16) == _MAGIC_CHECKSUM
    if verifies and not block.has_right_checksums and bool(found.any()):
        stated = sizes_at(block.data, at + 2)
        view = block.data.data
        spans = zip((at + 6).tolist(), block.ends.tolist(), strict=True)
        # one call for each entry: the processor's instruction takes one span at a time
        computed = numpy.array([crc32c.crc32c(view[start:end]) for start, end in spans], numpy.int64)
        _mark(errors, found & (stated != computed), "its checksum is wrong")
    return numpy.where(found, at + 6, at)


def _sound(errors: list[str]) -> Flags:
    return numpy.array([not error for error in errors], numpy.bool_)


def _mark(errors: list[str], is_bad: Flags, reason: str) -> None:
    for row in numpy.flatnonzero(is_bad).tolist():
        errors[row] = errors[row] or reason
