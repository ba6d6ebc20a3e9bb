"""Bytes of ledger metadata, and master keys."""

from dataclasses import replace

import pytest

from bookkeeper.ledger_metadata.codec import (
    LedgerMetadata,
    LedgerState,
    MalformedLedgerMetadata,
    Segment,
    decode_ledger_metadata,
    encode_ledger_metadata,
    master_key,
)
from wire.bookie.digests import DigestType

CLOSED = LedgerMetadata(
    ensemble_size=2,
    write_quorum=2,
    ack_quorum=1,
    segments=(Segment(0, ("b1:3181", "b2:3181")), Segment(10, ("b1:3181", "b3:3181"))),
    state=LedgerState.CLOSED,
    last_entry_id=19,
    length_bytes=500,
    password=b"pw",
    custom_metadata={"k": b"v"},
    created_ms=1000,
)


CLOSED_BYTES = bytes.fromhex(
    "426f6f6b69654d65746164617461466f726d617456657273696f6e09330a4c0802100218f4032013280332140a0762313a333138310a0762323a3331"
    "3831100032140a0762313a333138310a0762333a33313831100a380342027077480150e8075a060a016b120176"
)


OPEN_BYTES = bytes.fromhex(
    "426f6f6b69654d65746164617461466f726d617456657273696f6e09330a3108021002180020ffffffffffffffffff01280132140a0762313a333138"
    "310a0762323a333138311000380342004802"
)


def test_closed_metadata_has_the_bytes_of_apache() -> None:
    token = b"\x60\x2a"  # cToken 42
    data = encode_ledger_metadata(replace(CLOSED, creation_token=42))
    assert data == CLOSED_BYTES + token
    assert decode_ledger_metadata(data) == replace(CLOSED, creation_token=42)


def test_open_metadata_has_the_bytes_of_apache() -> None:
    metadata = LedgerMetadata(2, 2, 2, (Segment(0, ("b1:3181", "b2:3181")),), creation_token=42)
    assert encode_ledger_metadata(metadata) == OPEN_BYTES + b"\x60\x2a"
    assert decode_ledger_metadata(OPEN_BYTES + b"\x60\x2a") == metadata
    assert metadata.digest_type == DigestType.CRC32C


def test_fields_of_a_later_version_are_written_back() -> None:
    body = CLOSED_BYTES[31:] + bytes.fromhex("f8062a")  # field 111 is 42
    data = CLOSED_BYTES[:30] + bytes([len(body)]) + body
    metadata = decode_ledger_metadata(data)
    assert metadata.last_entry_id == 19
    assert encode_ledger_metadata(metadata) == data
    assert decode_ledger_metadata(encode_ledger_metadata(metadata.in_recovery())).unknown_fields == body[-3:]


@pytest.mark.parametrize("data", [b"", b"BookieMetadataFormatVersion\t9\n", CLOSED_BYTES[:40], b"\xff" * 40])
def test_bytes_that_are_no_metadata_are_refused(data: bytes) -> None:
    with pytest.raises(MalformedLedgerMetadata):
        decode_ledger_metadata(data)


def test_master_keys_are_those_of_apache() -> None:
    assert master_key(b"").hex() == "850bf1071c5e3d8c24235676f8816ae0cbe2f14f"
    assert master_key(b"pw").hex() == "2aa226ba095b6969a64871977693b14671710d76"
