"""ManagedLedgerInfo: what was decoded is encoded again, what only Apache knows is kept, and what cannot be is refused."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from managed_ledger.errors import BrokenMetadata
from managed_ledger.ledgers.info import LedgerList, ListedLedger, decode_info, encode_info
from wire.generated.managed_ledger_pb2 import ManagedLedgerInfo
from wire.position import Position

NAME = "public/default/persistent/topic"
SIZES = st.integers(0, (1 << 63) - 1)
CLOSED = st.builds(ListedLedger, SIZES, SIZES, SIZES, SIZES, st.booleans())
OPEN = st.builds(ListedLedger, SIZES, st.none(), st.just(0), st.just(0), st.booleans())
LEDGERS = st.lists(CLOSED | OPEN, unique_by=lambda ledger: ledger.ledger_id, max_size=5)
TEXTS = st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=2)


def listed(*ledgers: ManagedLedgerInfo.LedgerInfo) -> bytes:
    return ManagedLedgerInfo(ledger_info=ledgers).SerializeToString()


def facts(ledger: ListedLedger) -> tuple[int | None, ...]:
    return ledger.ledger_id, ledger.entries, ledger.size_bytes, ledger.closed_at_ms, ledger.is_deleting


@settings(max_examples=30)
@given(LEDGERS, st.none() | st.builds(Position, SIZES, st.integers(-1, 1 << 40)), TEXTS)
def test_a_list_that_is_written_is_read_again_with_its_ledgers_ascending(
    ledgers: list[ListedLedger], terminated: Position | None, properties: dict[str, str]
) -> None:
    found = decode_info(NAME, encode_info(ledgers, terminated, properties))
    assert list(map(facts, found.ledgers)) == sorted(map(facts, ledgers), key=lambda each: each[0])  # type: ignore[arg-type, return-value]
    assert (found.terminated, found.properties) == (terminated, properties)


def test_an_empty_node_is_an_empty_list() -> None:
    assert decode_info(NAME, b"") == LedgerList()


def test_offloaded_parts_and_fields_of_later_versions_are_written_back() -> None:
    unknown = bytes([0xF2, 0x3F, 1, 7])  # field 1022, which no version has yet
    offloaded = ManagedLedgerInfo.LedgerInfo(ledger_id=7, entries=3, size=30, timestamp=5)
    offloaded.offload_context.uid_msb = 99
    found = decode_info(NAME, listed(offloaded) + unknown)
    written = encode_info(found.ledgers, found.terminated, found.properties, found.other)
    again = ManagedLedgerInfo.FromString(written)
    assert again.ledger_info[0].offload_context.uid_msb == 99
    assert unknown in written


def test_the_mark_of_a_ledger_that_is_being_deleted_is_written_once() -> None:
    first = encode_info([ListedLedger(7, 3, 30, 5, is_deleting=True)], None, {})
    found = decode_info(NAME, first)
    assert found.ledgers[0].is_deleting
    again = ManagedLedgerInfo.FromString(encode_info(found.ledgers, None, {}))
    assert [(pair.key, pair.value) for pair in again.ledger_info[0].properties] == [("magnetar.deleting", "true")]


BROKEN = {
    "lists ledger 7 twice": listed(ManagedLedgerInfo.LedgerInfo(ledger_id=7), ManagedLedgerInfo.LedgerInfo(ledger_id=7)),
    "lists ledger -1 with": listed(ManagedLedgerInfo.LedgerInfo(ledger_id=-1)),
    "with -2 entries": listed(ManagedLedgerInfo.LedgerInfo(ledger_id=7, entries=-2)),
    "of -5 bytes": listed(ManagedLedgerInfo.LedgerInfo(ledger_id=7, entries=2, size=-5)),
    "cannot be read": b"\xff\xff\xff",
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_list_that_nobody_can_have_written_is_an_error_with_the_name_and_the_fault(fault: str) -> None:
    with pytest.raises(BrokenMetadata, match=f"^{NAME}: .*{fault}"):
        decode_info(NAME, BROKEN[fault])
