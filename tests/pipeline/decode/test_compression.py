"""Compressed payloads: as large as their metadata states, and never larger."""

import tracemalloc
import zlib

import pytest

from pipeline.pyspark_pulsar.decode.compression import Undecodable, uncompressed
from wire.compression import compress
from wire.generated.pulsar_api_pb2 import LZ4, SNAPPY, ZLIB, ZSTD

BODY = b"entries " * 1000
KINDS = [LZ4, ZLIB, ZSTD, SNAPPY]


@pytest.mark.parametrize("kind", KINDS)
def test_a_payload_comes_back_as_it_was(kind: int) -> None:
    assert uncompressed(compress(kind, BODY), kind, len(BODY)) == BODY


@pytest.mark.parametrize("size", [0, len(BODY) - 1, len(BODY) + 1])
@pytest.mark.parametrize("kind", KINDS)
def test_a_payload_of_another_size_than_stated_is_refused(kind: int, size: int) -> None:
    with pytest.raises(Undecodable):
        uncompressed(compress(kind, BODY), kind, size)


def test_a_zlib_stream_that_ends_with_a_flush_is_whole() -> None:
    stream = zlib.compressobj()
    assert uncompressed(stream.compress(BODY) + stream.flush(zlib.Z_SYNC_FLUSH), ZLIB, len(BODY)) == BODY


@pytest.mark.parametrize("kind", [ZLIB, SNAPPY])
def test_a_small_payload_that_becomes_huge_takes_no_memory(kind: int) -> None:
    bomb = compress(kind, bytes(64 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(Undecodable):
            uncompressed(bomb, kind, 1000)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_damaged_bytes_are_refused_with_the_reason_of_the_library() -> None:
    with pytest.raises(Undecodable, match="cannot be decompressed"):
        uncompressed(b"no frame", ZSTD, 10)
