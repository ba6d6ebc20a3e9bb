"""wire.compressed_metadata. The golden values come from Apache's MetaStoreImpl (pulsar 4.0.8)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.compressed_metadata import COMPRESSIONS, Compression, compressed, uncompressed
from wire.errors import MalformedMetadata
from wire.generated.managed_ledger_pb2 import ManagedCursorInfo, ManagedLedgerInfo, ManagedLedgerInfoMetadata

LEDGERS = bytes.fromhex("0a0808641005183220070a0808651005183220070a0808661005183220070a0308c801")
LEDGERS_ZLIB = bytes.fromhex("47780000000408021023789ce2e2e048116095305260e7e2e04885b3d2a02c668e138c00000000ffff")
LEDGERS_LZ4 = bytes.fromhex("47780000000408011023e50a0808641005183220070a0808650a00c0661005183220070a0308c801")
LEDGERS_ZSTD = bytes.fromhex(
    "4778000000040803102328b52ffd2423dd0000980a0808641005183220070a080865660308c8010200200b2d8a12fa611c50"
)
LEDGERS_SNAPPY = bytes.fromhex("4778000000040804102323380a0808641005183220070a08086510110a2c661005183220070a0308c801")
CURSOR = bytes.fromhex("08ffffffffffffffffff01100318ffffffffffffffffff013009")
CURSOR_LZ4 = bytes.fromhex("4778000000040801101a2408ff0100f00101100318ffffffffffffffffff013009")
CURSOR_ZSTD = bytes.fromhex("4778000000040803101a28b52ffd241a9500005008ff01100318ff013009020080680260017e55156d")
CURSOR_SNAPPY = bytes.fromhex("4778000000040804101a1a0408ff11013c01100318ffffffffffffffffff013009")
CURSOR_ZLIB = bytes.fromhex("4778000000040802101a789ce2f80f038c02cc12088e0127000000ffff")


def test_metadata_compressed_by_apache_is_read() -> None:
    for value in (LEDGERS_ZLIB, LEDGERS_LZ4, LEDGERS_ZSTD, LEDGERS_SNAPPY):
        assert uncompressed(value) == LEDGERS
    for value in (CURSOR_ZLIB, CURSOR_LZ4, CURSOR_ZSTD, CURSOR_SNAPPY):
        assert uncompressed(value) == CURSOR
    assert [ledger.ledger_id for ledger in ManagedLedgerInfo.FromString(LEDGERS).ledger_info] == [100, 101, 102, 200]
    assert ManagedCursorInfo.FromString(CURSOR).cursors_ledger_id == -1


@pytest.mark.parametrize("name", COMPRESSIONS)
@given(st.binary(max_size=400) | st.integers(0, 3000).map(lambda count: b"acknowledged" * count))
def test_metadata_compressed_by_us_is_read(name: str, value: bytes) -> None:
    if not value.startswith(b"\x47\x78"):  # no protobuf message of ours does
        assert uncompressed(compressed(value, Compression(name, 0))) == value


def test_only_what_is_longer_than_the_threshold_is_compressed() -> None:
    for name in COMPRESSIONS[1:]:
        assert compressed(LEDGERS, Compression(name, len(LEDGERS))) == LEDGERS
        assert compressed(LEDGERS, Compression(name, len(LEDGERS) - 1)).startswith(LEDGERS_ZLIB[:7])
    assert compressed(LEDGERS, Compression("NONE", 0)) == LEDGERS


def test_a_compression_that_apache_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError, match="expected one of NONE, LZ4, ZLIB, ZSTD, SNAPPY"):
        Compression("BROTLI")


def test_an_uncompressed_value_is_itself() -> None:
    for value in (LEDGERS, CURSOR, b""):
        assert uncompressed(value) == value
    assert uncompressed(b"\x47\x78\0\0\0\4\x08\0\x10\x23" + LEDGERS) == LEDGERS


def test_another_compression_is_refused() -> None:
    with pytest.raises(MalformedMetadata):
        uncompressed(LEDGERS_LZ4[:7] + b"\x05" + LEDGERS_LZ4[8:])


@pytest.mark.parametrize("value", [LEDGERS_ZLIB[:-8], LEDGERS_LZ4, LEDGERS_ZSTD, LEDGERS_SNAPPY])
def test_a_value_cut_anywhere_is_refused(value: bytes) -> None:
    for cut in range(2, len(value)):  # (ZLIB: the last bytes only mark the flush)
        with pytest.raises(MalformedMetadata):
            uncompressed(value[:cut])


@pytest.mark.parametrize("value", [LEDGERS_ZLIB, LEDGERS_LZ4, LEDGERS_ZSTD, LEDGERS_SNAPPY])
def test_a_wrong_size_is_refused(value: bytes) -> None:
    for size in (b"\x22", b"\x24", b"\x00"):
        with pytest.raises(MalformedMetadata, match="compressed value"):
            uncompressed(value[:9] + size + value[10:])


@given(st.binary(max_size=40))
def test_any_bytes_are_a_value_or_refused(data: bytes) -> None:
    try:
        assert isinstance(uncompressed(b"\x47\x78" + data), bytes)
    except MalformedMetadata as error:
        assert error.reason  # noqa: PT017 - either outcome is right


@given(st.integers(1, 4), st.integers(0, 3000), st.binary(max_size=60))
def test_any_body_is_a_value_or_refused(kind: int, size: int, body: bytes) -> None:
    header = ManagedLedgerInfoMetadata(compression_type=kind, uncompressed_size=size).SerializeToString()  # type: ignore[arg-type]
    try:
        assert len(uncompressed(b"\x47\x78" + len(header).to_bytes(4) + header + body)) == size
    except MalformedMetadata as error:
        assert error.reason  # noqa: PT017 - either outcome is right
