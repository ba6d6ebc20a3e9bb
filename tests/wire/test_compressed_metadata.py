"""wire.compressed_metadata. The golden values come from Apache's MetaStoreImpl (pulsar 4.0.8)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.compressed_metadata import uncompressed
from wire.errors import MalformedMetadata
from wire.generated.managed_ledger_pb2 import ManagedCursorInfo, ManagedLedgerInfo

LEDGERS = bytes.fromhex("0a0808641005183220070a0808651005183220070a0808661005183220070a0308c801")
LEDGERS_ZLIB = bytes.fromhex("47780000000408021023789ce2e2e048116095305260e7e2e04885b3d2a02c668e138c00000000ffff")
LEDGERS_LZ4 = bytes.fromhex("47780000000408011023e50a0808641005183220070a0808650a00c0661005183220070a0308c801")
CURSOR = bytes.fromhex("08ffffffffffffffffff01100318ffffffffffffffffff013009")
CURSOR_ZLIB = bytes.fromhex("4778000000040802101a789ce2f80f038c02cc12088e0127000000ffff")


def test_what_apache_compressed_with_zlib_is_read() -> None:
    assert uncompressed(LEDGERS_ZLIB) == LEDGERS
    assert uncompressed(CURSOR_ZLIB) == CURSOR
    assert [ledger.ledger_id for ledger in ManagedLedgerInfo.FromString(LEDGERS).ledger_info] == [100, 101, 102, 200]
    assert ManagedCursorInfo.FromString(CURSOR).cursors_ledger_id == -1


def test_an_uncompressed_value_is_itself() -> None:
    for value in (LEDGERS, CURSOR, b""):
        assert uncompressed(value) == value
    assert uncompressed(b"\x47\x78\0\0\0\4\x08\0\x10\x23" + LEDGERS) == LEDGERS


def test_another_compression_is_named() -> None:
    with pytest.raises(MalformedMetadata, match="LZ4"):
        uncompressed(LEDGERS_LZ4)


def test_a_value_cut_anywhere_is_refused() -> None:
    for cut in range(2, len(LEDGERS_ZLIB) - 8):  # the last bytes only mark the flush
        with pytest.raises(MalformedMetadata):
            uncompressed(LEDGERS_ZLIB[:cut])


def test_a_wrong_size_is_refused() -> None:
    for size in (b"\x22", b"\x24", b"\x00"):
        with pytest.raises(MalformedMetadata, match="compressed value of"):
            uncompressed(LEDGERS_ZLIB[:9] + size + LEDGERS_ZLIB[10:])


@given(st.binary(max_size=40))
def test_any_bytes_are_a_value_or_refused(data: bytes) -> None:
    try:
        assert isinstance(uncompressed(b"\x47\x78" + data), bytes)
    except MalformedMetadata as error:
        assert error.reason  # noqa: PT017 - either outcome is right
