"""Payloads as they were before their producer compressed them, one entry at a time: a library's call for each batch."""

import zlib

import cramjam

from wire.generated.pulsar_api_pb2 import LZ4, NONE, SNAPPY, ZLIB, ZSTD

UNCOMPRESSED_BYTES_MAX = 256 * 1024 * 1024
"""A payload that says it becomes longer is not one: brokers take 5 MB, or what maxMessageSize says."""


class Undecodable(Exception):
    """The entry cannot be read; the text says why."""


def uncompressed(payload: bytes, compression: int, size: int) -> bytes:
    """Payload of `size` bytes, as the entry's metadata states it; no more than that is ever made. Undecodable."""
    if not 0 <= size <= UNCOMPRESSED_BYTES_MAX:
        raise Undecodable(f"compressed payload that says it becomes {size} bytes")
    try:
        found = _uncompressed(payload, compression, size)
    except (cramjam.DecompressionError, zlib.error, ValueError) as error:
        raise Undecodable(f"payload cannot be decompressed: {error}") from None
    if len(found) != size:
        raise Undecodable(f"compressed payload of {len(found)} bytes that says it has {size}")
    return found


def _uncompressed(payload: bytes, compression: int, size: int) -> bytes:
    room = bytearray(size)
    match compression:
        case _ if compression == NONE:
            return payload
        case _ if compression == LZ4:
            return bytes(room[: cramjam.lz4.decompress_block_into(payload, room)])
        case _ if compression == ZLIB:
            return zlib.decompressobj().decompress(payload, size + 1)
        case _ if compression == ZSTD:
            return bytes(room[: cramjam.zstd.decompress_into(payload, room)])
        case _ if compression == SNAPPY:
            return bytes(room[: cramjam.snappy.decompress_raw_into(payload, room)])
    raise Undecodable(f"compression of type {compression}, which is not known")
