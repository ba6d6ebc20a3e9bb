"""Stored state of a cursor: sizes, forms, and values that cannot be read."""

import pytest
from pyroaring import BitMap

from managed_ledger.cursor.state import CursorState, decode_node, decode_position, encode_position, hole_ranges
from managed_ledger.errors import ManagedLedgerError
from wire.generated.managed_ledger_pb2 import PositionInfo
from wire.position import Position


def encoded(holes: dict[int, BitMap]) -> bytes:
    value, dropped = encode_position(CursorState(Position(1, 0), holes), as_long_array=True)
    assert dropped == 0
    assert decode_position("c", value).holes == holes
    return value


def test_many_holes_are_written_as_words_as_apache_does() -> None:
    value = encoded({1: BitMap(range(2, 10_000, 2))})
    info = PositionInfo.FromString(value)
    assert len(info.individual_deleted_message_ranges) == 1
    assert not info.individual_deleted_messages
    assert info.individual_deleted_message_ranges[0].values[0] == 0x5555555555555554


def test_few_holes_in_a_long_span_stay_small() -> None:
    """Apache #25985: 30 million entries with three holes did not fit an entry."""
    holes = BitMap()
    holes.add_range(2, 30_000_000)
    holes -= BitMap([7, 20_000_000, 29_999_998])
    assert len(encoded({1: holes})) < 200


def test_ten_thousand_ranges_and_one_are_all_stored() -> None:
    """Apache #25540: above managedLedgerMaxUnackedRangesToPersist the rest was dropped."""
    holes = {1: BitMap(range(2, 20_000, 2)), 2: BitMap([5])}
    assert hole_ranges(CursorState(Position(1, 0), holes)) == 10_000
    holes[3] = BitMap(range(0, 20_000, 2))
    encoded(holes)


def test_holes_that_do_not_fit_an_entry_are_counted_and_the_farthest_dropped() -> None:
    holes = {ledger_id: BitMap(range(0, 4_000_000, 3)) for ledger_id in range(1, 12)}
    value, dropped = encode_position(CursorState(Position(1, -1), holes), as_long_array=True)
    assert len(value) < 5 << 20
    found = decode_position("c", value).holes
    assert dropped == sum(map(len, holes.values())) - sum(map(len, found.values())) > 0
    assert list(found) == sorted(found)
    assert max(found) < 11


def test_a_range_over_the_end_of_a_ledger_counts_in_its_last_one() -> None:
    info = PositionInfo(ledger_id=1, entry_id=2)
    added = info.individual_deleted_messages.add()
    added.lower_endpoint.ledger_id, added.lower_endpoint.entry_id = 1, 5
    added.upper_endpoint.ledger_id, added.upper_endpoint.entry_id = 2, 3
    assert decode_position("c", info.SerializeToString()).holes == {2: BitMap([0, 1, 2, 3])}


@pytest.mark.parametrize("value", [b"\x08", b"\xff\xff", b"", b"\x47\x78\x00\x00\x00\xff"])
def test_an_unreadable_cursor_state_is_an_error_that_names_the_cursor(value: bytes) -> None:
    with pytest.raises(ManagedLedgerError, match="the-cursor"):
        decode_position("the-cursor", value)
    with pytest.raises(ManagedLedgerError, match="the-cursor"):
        decode_node("the-cursor", value)
