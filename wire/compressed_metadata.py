"""ManagedLedgerInfo and ManagedCursorInfo as Apache compresses them (managedLedgerInfoCompressionType). Reading only.

`0x4778 | u32 size | header message | compressed value`. A value that does not begin so is not compressed. We write uncompressed
values, which Apache reads whatever its setting is.
"""

import zlib

from google.protobuf.message import DecodeError

from wire.errors import MalformedMetadata
from wire.generated.managed_ledger_pb2 import NONE, ZLIB, CompressionType, ManagedLedgerInfoMetadata

MAGIC = b"\x47\x78"
VALUE_BYTES_MAX = 256 * 1024 * 1024
"""More than any metadata store takes in one value, even well compressed."""


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
    if header.compression_type != ZLIB:
        raise MalformedMetadata(f"compressed with {CompressionType.Name(header.compression_type)}, which is not read here")
    return _inflated(body, header.uncompressed_size)


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
    if len(value) != size:
        raise MalformedMetadata(f"a compressed value of {size} bytes has {len(value)}")
    return value
