"""Compressions of payloads."""

import zlib

import pytest

from wire.compression import UNCOMPRESSED_BYTES_MAX, compress, decompress
from wire.errors import MalformedPayload
from wire.generated.pulsar_api_pb2 import LZ4, NONE, SNAPPY, ZLIB, ZSTD

BODY = b"entries " * 1000
KINDS = [LZ4, ZLIB, ZSTD, SNAPPY]


@pytest.mark.parametrize("kind", [NONE, *KINDS])
@pytest.mark.parametrize("body", [b"", b"a", BODY])
def test_a_compressed_body_is_uncompressed_to_its_bytes(kind: int, body: bytes) -> None:
    assert bytes(decompress(kind, compress(kind, body), len(body))) == body


@pytest.mark.parametrize("kind", KINDS)
def test_a_body_that_is_shorter_than_stated_is_refused(kind: int) -> None:
    compressed = compress(kind, BODY)
    assert len(compressed) < len(BODY)
    with pytest.raises(MalformedPayload):
        decompress(kind, compressed, len(BODY) + 1)


@pytest.mark.parametrize("size", [0, 1, len(BODY) - 1])
@pytest.mark.parametrize("kind", KINDS)
def test_a_body_that_is_longer_than_stated_is_refused(kind: int, size: int) -> None:
    with pytest.raises(MalformedPayload):
        decompress(kind, compress(kind, BODY), size)


def test_a_zlib_stream_that_ends_with_a_flush_is_whole() -> None:
    """Apache's Java client may write no end of the stream."""
    stream = zlib.compressobj()
    assert bytes(decompress(ZLIB, stream.compress(BODY) + stream.flush(zlib.Z_SYNC_FLUSH), len(BODY))) == BODY


def test_a_stated_size_above_the_bound_is_refused_before_any_room_is_made() -> None:
    with pytest.raises(MalformedPayload, match="more than"):
        decompress(ZLIB, zlib.compress(b"a"), UNCOMPRESSED_BYTES_MAX + 1)


def test_damaged_bytes_and_unknown_kinds_are_refused_with_a_reason() -> None:
    with pytest.raises(MalformedPayload, match="cannot be uncompressed"):
        decompress(ZSTD, b"no frame", 10)
    with pytest.raises(MalformedPayload, match="not known: 99"):
        decompress(99, b"", 0)
