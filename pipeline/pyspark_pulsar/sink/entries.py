"""Batches of messages as entries.

Compressed, with their metadata and a checksum, ready for SEND. Pure but for the time given.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import cramjam
import crc32c
import numpy

from wire.generated.pulsar_api_pb2 import LZ4, NONE, SNAPPY, ZLIB, ZSTD, MessageMetadata

from ..decode.octets import Places
from .messages import OutgoingRows, encoded

COMPRESSIONS = {"NONE": NONE, "LZ4": LZ4, "ZLIB": ZLIB, "ZSTD": ZSTD, "SNAPPY": SNAPPY}
_MAGIC_CHECKSUM = b"\x0e\x01"


@dataclass(frozen=True, slots=True)
class TxnId:
    """`most` is the number of its coordinator."""

    most: int
    least: int


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one entry before compression: the first one reached ends it. A single message may be larger."""

    bytes_max: int
    messages_max: int


@dataclass(frozen=True, slots=True)
class Stamp:
    """Metadata that all entries of a producer have."""

    producer_name: str
    compression: int
    schema_version: bytes | None
    txn_id: TxnId | None


@dataclass(frozen=True, slots=True)
class Section:
    """An entry as it is published, in two pieces: the payload stays where it is."""

    head: bytes
    payload: bytes | memoryview

    def __len__(self) -> int:
        return len(self.head) + len(self.payload)

    @property
    def pieces(self) -> tuple[bytes | memoryview, ...]:
        return self.head, self.payload

    def __bytes__(self) -> bytes:
        return b"".join(self.pieces)


@dataclass(frozen=True, slots=True)
class Entry:
    """Rows `first` to `last` by their sequence ids, `count` of them."""

    first: int
    last: int
    count: int
    section: Section


def entries_of(rows: OutgoingRows, limits: Limits, stamp: Stamp, now_ms: int) -> Iterator[Entry]:
    """Entries in the order of the rows, which is the order of their sequence ids."""
    messages = encoded(rows)
    data, ends = messages.data, messages.ends
    for start, stop in _cuts(ends, limits):
        begin = int(ends[start - 1]) if start else 0
        about = MessageMetadata(
            producer_name=stamp.producer_name,
            sequence_id=int(rows.sequence_ids[start]),
            publish_time=now_ms,
            num_messages_in_batch=stop - start,
            highest_sequence_id=int(rows.sequence_ids[stop - 1]),
        )
        _say_key(about, rows, start)
        section = _section(about, data[begin : int(ends[stop - 1])], stamp)
        yield Entry(about.sequence_id, about.highest_sequence_id, stop - start, section)


def _say_key(about: MessageMetadata, rows: OutgoingRows, first: int) -> None:
    """A batch has its first message's key, by which brokers choose a Key_Shared consumer (initBatchMessageMetadata)."""
    key = None if rows.keys is None else rows.keys.text[first].as_py()
    if rows.keys is not None and key is not None:
        about.partition_key = key.decode()
        if rows.keys.is_base64[first]:
            about.partition_key_b64_encoded = True


def _cuts(ends: Places, limits: Limits) -> Iterator[tuple[int, int]]:
    start, count = 0, len(ends)
    while start < count:
        begin = int(ends[start - 1]) if start else 0
        stop = int(numpy.searchsorted(ends, begin + limits.bytes_max, "right"))
        stop = max(start + 1, min(stop, start + limits.messages_max))
        yield start, stop
        start = stop


def _section(about: MessageMetadata, payload: memoryview, stamp: Stamp) -> Section:
    if stamp.schema_version is not None:
        about.schema_version = stamp.schema_version
    if stamp.txn_id is not None:
        about.txnid_most_bits, about.txnid_least_bits = stamp.txn_id.most, stamp.txn_id.least
    about.uncompressed_size = len(payload)
    if stamp.compression != NONE:
        about.compression = stamp.compression  # type: ignore[assignment]
    encoded = about.SerializeToString()
    packed = _compressed(payload, stamp.compression)
    checked = len(encoded).to_bytes(4) + encoded
    checksum = crc32c.crc32c(packed, crc32c.crc32c(checked))
    return Section(b"".join((_MAGIC_CHECKSUM, checksum.to_bytes(4), checked)), packed)


def _compressed(payload: memoryview, compression: int) -> bytes | memoryview:
    if compression == LZ4:
        return bytes(cramjam.lz4.compress_block(payload, store_size=False))
    if compression == ZLIB:
        return bytes(cramjam.zlib.compress(payload))
    if compression == ZSTD:
        return bytes(cramjam.zstd.compress(payload))
    if compression == SNAPPY:
        return bytes(cramjam.snappy.compress_raw(payload))
    return payload
