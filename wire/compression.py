"""The compressions of payloads (PulsarApi.CompressionType). Pure."""

import zlib
from collections.abc import Callable, Mapping

import cramjam

from wire.errors import MalformedPayload
from wire.generated.pulsar_api_pb2 import LZ4, NONE, SNAPPY, ZLIB, ZSTD
from wire.run import Buffer

UNCOMPRESSED_BYTES_MAX = 128 << 20


def _inflate_into(body: bytes, room: bytearray) -> int:
    """Number of bytes, or one more than the room has. A stream may end with a flush and no checksum, as Apache's do."""
    plain = zlib.decompressobj().decompress(body, len(room) + 1)
    room[: len(plain)] = plain[: len(room)]
    return len(plain)


_DECOMPRESS_INTO: Mapping[int, Callable[[bytes, bytearray], int]] = {
    LZ4: cramjam.lz4.decompress_block_into,
    ZLIB: _inflate_into,
    ZSTD: cramjam.zstd.decompress_into,
    SNAPPY: cramjam.snappy.decompress_raw_into,
}
"""Into room of the size that is stated, so that nothing can become larger than it says."""


def _lz4(body: bytes) -> bytes:
    return bytes(cramjam.lz4.compress_block(body, store_size=False))


_COMPRESS: Mapping[int, Callable[[bytes], bytes]] = {
    LZ4: _lz4,
    ZLIB: zlib.compress,
    ZSTD: lambda body: bytes(cramjam.zstd.compress(body)),
    SNAPPY: lambda body: bytes(cramjam.snappy.compress_raw(body)),
}


def decompress(kind: int, body: Buffer, size: int) -> Buffer:
    """The `size` bytes that `body` is compressed from. MalformedPayload, whose text goes on after the payload's
    name: `body` is not, or the kind is unknown."""
    if kind == NONE:
        return body
    into = _DECOMPRESS_INTO.get(kind)
    if into is None:
        raise MalformedPayload(f"is compressed in a way that is not known: {kind}")
    if size > UNCOMPRESSED_BYTES_MAX:
        raise MalformedPayload(f"says that it is {size} bytes uncompressed: more than {UNCOMPRESSED_BYTES_MAX}")
    room = bytearray(size or 1)  # no room at all would be no bound to zlib
    try:
        found = into(bytes(body), room)
    except (cramjam.DecompressionError, zlib.error) as error:
        raise MalformedPayload(f"cannot be uncompressed: {error}") from error
    if found != size:
        raise MalformedPayload(f"says that it is {size} bytes uncompressed, and is {found}")
    return room if size else b""


def compress(kind: int, body: Buffer) -> bytes:
    """Compress as a client does; `kind` is one that `decompress` knows."""
    return bytes(body) if kind == NONE else _COMPRESS[kind](bytes(body))
