"""ManagedLedgerInfo and ManagedCursorInfo as Apache compresses them (managedLedgerInfoCompressionType, MetaStoreImpl).

`0x4778 | u32 size | header message | compressed value`. A value that does not begin so is not compressed; either is read
whatever the setting is, here as in Apache. LZ4 is one block without a frame, Snappy the raw form.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import cramjam
from google.protobuf.message import DecodeError

from wire.errors import MalformedMetadata
from wire.generated.managed_ledger_pb2 import LZ4, NONE, SNAPPY, ZLIB, ZSTD, ManagedLedgerInfoMetadata

MAGIC = b"\x47\x78"
VALUE_BYTES_MAX = 256 * 1024 * 1024
"""More than any metadata store takes in one value, even well compressed."""
THRESHOLD_BYTES = 16_384

_Into: TypeAlias = Callable[[bytes, bytearray], int]


@dataclass(frozen=True, slots=True)
class Compression:
    """Compression of written values: those longer than `threshold_bytes` with `name`, one of COMPRESSIONS."""

    name: str = "NONE"
    threshold_bytes: int = THRESHOLD_BYTES

    def __post_init__(self) -> None:
        if self.name not in COMPRESSIONS:
            raise ValueError(f"compression {self.name!r}: expected one of {', '.join(COMPRESSIONS)}")


def compressed(value: bytes, compression: Compression) -> bytes:
    """The node's value for a protobuf message."""
    if compression.name == "NONE" or len(value) <= compression.threshold_bytes:
        return value
    header = ManagedLedgerInfoMetadata(compression_type=compression.name, uncompressed_size=len(value)).SerializeToString()
    return b"".join((MAGIC, len(header).to_bytes(4), header, _COMPRESS[compression.name](value)))


def uncompressed(value: bytes) -> bytes:
    """The protobuf message of a node's value. MalformedMetadata when it cannot be had."""
    if not value.startswith(MAGIC):
        return value
    header_bytes = int.from_bytes(value[2:6])
    if len(value) < 6 or header_bytes > len(value) - 6:
        raise MalformedMetadata(f"compression header of {header_bytes} bytes in a value of {len(value)}")
    header = _header(value[6 : 6 + header_bytes])
    body = value[6 + header_bytes :]
    if header.compression_type == NONE:
        return body
    if header.compression_type == ZLIB:
        return _inflated(body, header.uncompressed_size)
    return _unpacked(body, header.uncompressed_size, _DECOMPRESS_INTO[header.compression_type])


def _header(encoded: bytes) -> ManagedLedgerInfoMetadata:
    """The cursors' header message has the same fields."""
    try:
        header = ManagedLedgerInfoMetadata.FromString(encoded)
    except DecodeError as error:
        raise MalformedMetadata("unreadable compression header") from error
    if not header.IsInitialized() or not 0 <= header.uncompressed_size <= VALUE_BYTES_MAX:
        raise MalformedMetadata("compression header without a type or a possible size")
    return header


def _inflated(body: bytes, size: int) -> bytes:
    """Apache ends its stream with a flush and no checksum, so its end is known by the stated size alone."""
    try:
        value = zlib.decompressobj().decompress(body, size + 1)
    except zlib.error as error:
        raise MalformedMetadata(f"damaged compressed value: {error}") from error
    return _of_size(value, len(value), size)


def _unpacked(body: bytes, size: int, decompress_into: _Into) -> bytes:
    value = bytearray(size)
    try:
        found = decompress_into(body, value)
    except cramjam.DecompressionError as error:
        raise MalformedMetadata(f"damaged compressed value: {error}") from error
    return _of_size(bytes(value), found, size)


def _of_size(value: bytes, found: int, size: int) -> bytes:
    if found != size:
        raise MalformedMetadata(f"a compressed value of {size} bytes has {found}")
    return value


def _lz4_block(value: bytes) -> bytes:
    return bytes(cramjam.lz4.compress_block(value, store_size=False))


def _zstd(value: bytes) -> bytes:
    return bytes(cramjam.zstd.compress(value))


def _snappy_raw(value: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(value))


_COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "LZ4": _lz4_block,
    "ZLIB": zlib.compress,
    "ZSTD": _zstd,
    "SNAPPY": _snappy_raw,
}
_DECOMPRESS_INTO: dict[int, _Into] = {
    LZ4: cramjam.lz4.decompress_block_into,
    ZSTD: cramjam.zstd.decompress_into,
    SNAPPY: cramjam.snappy.decompress_raw_into,
}
COMPRESSIONS = ("NONE", *_COMPRESS)
UNCOMPRESSED = Compression()
