"""Lists of available entries."""

from hypothesis import given
from hypothesis import strategies as st

from wire.bookie.availability import decode_availability, encode_availability


@given(st.sets(st.integers(0, 60)))
def test_availability_is_read_as_it_was_written(entries: set[int]) -> None:
    ranges = [(first, first) for first in sorted(entries)]
    decoded = decode_availability(encode_availability(ranges))
    assert {entry_id for first, last in decoded for entry_id in range(first, last + 1)} == entries


def test_apaches_availability_is_read_and_a_striped_ledger_is_one_group() -> None:
    groups = (
        "0" * 32 + "00000003" + "0" * 8,
        ("0" * 15 + "6") * 2 + "00000003" + "0" * 8,
        ("0" * 15 + "c") * 2 + "00000001" + "0" * 8,
    )
    apaches = bytes.fromhex("0000000000000003" + "0" * 112 + "".join(groups))
    assert decode_availability(apaches) == [(0, 2), (6, 8), (12, 12)]
    striped = [(first, first + 1) for first in range(0, 3000, 3)]
    assert len(encode_availability(striped)) == 64 + 24
    assert decode_availability(encode_availability(striped)) == striped
