"""BookKeeper's nodes in the metadata tree, against what Apache's own jars (4.17.3) write: layouts, old formats, repair."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.ledger_metadata.codec import (
    LedgerState,
    MalformedLedgerMetadata,
    decode_ledger_metadata,
    encode_ledger_metadata,
)
from bookkeeper.ledger_metadata.layouts import (
    FLAT,
    HIERARCHICAL,
    LAYOUTS,
    LEGACY_HIERARCHICAL,
    LONG_HIERARCHICAL,
    LedgerLayout,
    UnknownLayout,
    parse_layout,
)
from bookkeeper.repair.underreplication import tree as underreplication
from bookkeeper.repair.underreplication.tree import MalformedUnderreplication, UnderreplicatedLedger
from metadata.store import MetadataError
from tests.bookkeeper.ledger_metadata.test_ledger_metadata_nodes import CLOSED
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


@pytest.mark.parametrize(
    ("layout", "ledger_id", "path"),
    [
        (HIERARCHICAL, 2147483646, "/21/4748/L3646"),
        (HIERARCHICAL, 2147483647, "/000/0000/0021/4748/L3647"),
        (LONG_HIERARCHICAL, 7, "/000/0000/0000/0000/L0007"),
        (LEGACY_HIERARCHICAL, 1234567890, "/12/3456/L7890"),
        (FLAT, 7, "/L0000000007"),
    ],
)
def test_each_layout_has_ledgers_where_apache_has_them(layout: LedgerLayout, ledger_id: int, path: str) -> None:
    assert layout.path("/ledgers", ledger_id) == "/ledgers" + path
    assert layout.id_at(path.removeprefix("/")) == ledger_id


@given(st.sampled_from(LAYOUTS), st.integers(0, (1 << 63) - 1))
def test_a_path_tells_its_ledger_or_has_none(layout: LedgerLayout, number: int) -> None:
    ledger_id = number % layout.id_limit
    path = layout.relative_path(ledger_id)
    assert layout.id_at(path) == ledger_id
    assert layout.id_at(f"{path}0") is None
    assert all(layout.path("/l", ledger_id).startswith(f"{parent}/") for parent in layout.parents("/l", ledger_id))


def test_what_is_beside_the_ledgers_is_no_ledger() -> None:
    others = ("LAYOUT", "INSTANCEID", "available/b1:3181", "idgen/ID-0000000001", "000/0000/0000/0000/L0007", "00/0000/L007")
    assert [HIERARCHICAL.id_at(path) for path in others] == [None] * len(others)


def test_layouts_are_known_by_their_text_and_ids_beyond_them_are_refused() -> None:
    assert HIERARCHICAL.text == b"2\norg.apache.bookkeeper.meta.HierarchicalLedgerManagerFactory:1"
    for layout in LAYOUTS:
        assert parse_layout(layout.text) is layout
    with pytest.raises(UnknownLayout, match="Strange"):
        parse_layout(b"2\norg.apache.bookkeeper.meta.StrangeLedgerManagerFactory:1")
    with pytest.raises(MetadataError, match="flat layout has ids from 0 to 2147483646"):
        FLAT.path("/ledgers", 1 << 31)


@pytest.mark.parametrize(
    ("ledger_id", "path"),
    [
        (7, "0000/0000/0000/0007/urL0000000007"),
        (1234567890, "0000/0000/4996/02d2/urL1234567890"),
        (2147483648, "0000/0000/8000/0000/urL2147483648"),
        (9223372036854775807, "7fff/ffff/ffff/ffff/urL9223372036854775807"),
    ],
)
def test_underreplicated_ledgers_are_where_apache_has_them(ledger_id: int, path: str) -> None:
    assert underreplication.ledger_path(ledger_id) == "/ledgers/underreplication/ledgers/" + path
    assert underreplication.ledger_id_of(path.rpartition("/")[2]) == ledger_id


def test_values_of_the_underreplication_tree_have_the_bytes_of_apache() -> None:
    ledger = UnderreplicatedLedger(("b1:3181",), 1)
    assert underreplication.encode_ledger(ledger) == b'replica: "b1:3181"\nctime: 1\n'
    assert underreplication.decode_ledger(b'replica: "b1:3181"\nctime: 1\n') == ledger
    assert underreplication.decode_ledger(b"") == UnderreplicatedLedger(())
    assert underreplication.layout_text() == b'type: "BASIC"\nversion: 1\n'
    assert underreplication.encode_vote("b1:3181") == underreplication.encode_lock("b1:3181") == b'bookieId: "b1:3181"\n'
    assert (
        underreplication.decode_vote(b'bookieId: "b1:3181"\n')
        == underreplication.decode_lock(b'bookieId: "b1:3181"\n')
        == "b1:3181"
    )
    with pytest.raises(MalformedUnderreplication):
        underreplication.decode_ledger(b"\xff")


def test_two_auditors_that_miss_replicas_of_one_ledger_are_both_heard() -> None:
    merged = underreplication.merged(UnderreplicatedLedger(("b1:1", "b2:1"), 5), ["b2:1", "b3:1"])
    assert merged == UnderreplicatedLedger(("b1:1", "b2:1", "b3:1"), 5)
