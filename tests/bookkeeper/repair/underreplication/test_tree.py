"""Paths and values of the under-replication tree."""

import pytest

from bookkeeper.repair.underreplication import tree as underreplication
from bookkeeper.repair.underreplication.tree import MalformedUnderreplication, UnderreplicatedLedger


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
