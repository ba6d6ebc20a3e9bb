"""Ledger metadata of versions 1 and 2."""

from dataclasses import replace

import pytest

from bookkeeper.ledger_metadata.codec import (
    LedgerState,
    MalformedLedgerMetadata,
    decode_ledger_metadata,
    encode_ledger_metadata,
)
from tests.bookkeeper.ledger_metadata.test_codec import CLOSED
from wire.bookie.digests import DigestType

VERSION_1 = b"BookieMetadataFormatVersion\t1\n2\n2\n500\n0\tb1:3181\tb2:3181\n10\tb1:3181\tb3:3181\n19\tCLOSED"


VERSION_2 = b"""BookieMetadataFormatVersion\t2
quorumSize: 2
ensembleSize: 2
length: 500
lastEntryId: 19
state: CLOSED
segment {
  ensembleMember: "b1:3181"
  ensembleMember: "b2:3181"
  firstEntryId: 0
}
segment {
  ensembleMember: "b1:3181"
  ensembleMember: "b3:3181"
  firstEntryId: 10
}
digestType: CRC32C
password: "pw"
ackQuorumSize: 1
ctime: 1000
customMetadata {
  key: "k"
  value: "v"
}
"""


def test_metadata_of_version_2_has_the_bytes_of_apache_and_keeps_its_version() -> None:
    metadata = decode_ledger_metadata(VERSION_2)
    assert metadata == replace(CLOSED, format_version=2)
    assert encode_ledger_metadata(replace(metadata, creation_token=42)) == VERSION_2


def test_metadata_of_version_1_has_the_bytes_of_apache_and_keeps_its_version() -> None:
    """Version 1 has no ack quorum, digest, password, time or custom metadata."""
    metadata = decode_ledger_metadata(VERSION_1)
    assert metadata == replace(
        CLOSED,
        ack_quorum=2,
        digest_type=DigestType.HMAC,
        password=b"",
        custom_metadata={},
        created_ms=None,
        format_version=1,
    )
    assert encode_ledger_metadata(metadata) == VERSION_1
    recovering = encode_ledger_metadata(metadata.in_recovery())
    assert recovering.endswith(b"\n-102\tCLOSED")
    assert decode_ledger_metadata(recovering).state is LedgerState.IN_RECOVERY
    opened = encode_ledger_metadata(replace(metadata, state=LedgerState.OPEN, last_entry_id=-1, length_bytes=0))
    assert opened.endswith(b"b3:3181")
    assert decode_ledger_metadata(opened).state is LedgerState.OPEN


@pytest.mark.parametrize(
    "data", [VERSION_1[:33], VERSION_1.replace(b"10", b"x"), VERSION_2[:100], b"BookieMetadataFormatVersion\t4\n"]
)
def test_text_that_is_no_metadata_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedLedgerMetadata):
        decode_ledger_metadata(data)
