"""Stored facts of delayed messages: the kernel's bytes are those of the message types, and what is damaged is refused."""

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wire.generated.delayed_index_pb2 import DelayedIndex, DelayedOperationType, SnapshotSegment
from wire.kernels.delayed_index import (
    by_ledger,
    decode_segment,
    encode_segment,
    facts_of,
    items_at,
    items_under,
    sorted_by_tick,
)

fact = st.tuples(st.integers(0, (1 << 62)), st.integers(0, 1 << 40), st.integers(0, (1 << 32) - 1))
facts = st.lists(fact, max_size=40)
Arrays = tuple["array[int]", "array[int]", "array[int]"]


def arrays(given_facts: list[tuple[int, int, int]]) -> Arrays:
    return (
        array("q", (time for time, _, _ in given_facts)),
        array("Q", (ledger_id for _, ledger_id, _ in given_facts)),
        array("I", (entry_id for _, _, entry_id in given_facts)),
    )


@given(facts)
def test_a_segment_is_what_protobuf_makes_of_it_both_ways(given_facts: list[tuple[int, int, int]]) -> None:
    segment = SnapshotSegment(indexes=[DelayedIndex(timestamp=t, ledger_id=n, entry_id=e) for t, n, e in given_facts])
    encoded = encode_segment(*arrays(given_facts))
    assert encoded == segment.SerializeToString()
    assert decode_segment(memoryview(encoded)) == arrays(given_facts)


def test_cancelled_delays_and_unknown_fields_are_passed_over() -> None:
    segment = SnapshotSegment()
    segment.indexes.add(timestamp=5, ledger_id=3, entry_id=1, delayed_operation_type=DelayedOperationType.CANCEL)
    segment.indexes.add(timestamp=6, ledger_id=3, entry_id=2, delayed_operation_type=DelayedOperationType.DELAY)
    unknown = b"\x12\x02ab" + segment.SerializeToString() + b"\x0a\x08\x08\x07\x10\x03\x18\x04\x28\x09"
    assert decode_segment(unknown) == arrays([(6, 3, 2), (7, 3, 4)])


@pytest.mark.parametrize(
    "damaged",
    [
        b"\x0a",
        b"\x0a\x09\x08\x05",
        b"\x0a\x04\x08\x05\x10\x03",
        b"\x0a\x0a\x08\x05\x10\x03\x18\xff\xff\xff\xff\x7f",
        b"\x0b",
    ],
)
def test_a_damaged_segment_is_refused(damaged: bytes) -> None:
    with pytest.raises(ValueError, match="segment"):
        decode_segment(damaged)


@given(st.binary(max_size=60))
def test_any_bytes_are_facts_or_refused(data: bytes) -> None:
    try:
        times, ledger_ids, entry_ids = decode_segment(data)
    except ValueError:
        return
    assert len(times) == len(ledger_ids) == len(entry_ids)


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 4), st.integers(0, 99)), max_size=40))
def test_facts_are_sorted_out_by_ledger_in_their_order(given_facts: list[tuple[int, int, int]]) -> None:
    found = by_ledger(*arrays(given_facts))
    assert set(found) == {ledger_id for _, ledger_id, _ in given_facts}
    for ledger_id, (entry_ids, times) in found.items():
        wanted = [(time, entry_id) for time, other, entry_id in given_facts if other == ledger_id]
        assert list(zip(times, entry_ids, strict=True)) == wanted


@given(
    st.lists(st.tuples(st.integers(-50, 100_000), st.integers(0, 3 << 16)), max_size=40),
    st.integers(1, 1000),
    st.sets(st.integers(0, 3)),
)
def test_items_and_facts_are_the_same_to_the_tick(entries: list[tuple[int, int]], tick_ms: int, highs: set[int]) -> None:
    """Numbers 7, 8, 9, 10 stand for the upper halves 0 to 3 of one ledger's entry ids; what has none is left out."""
    base_ms = 5000
    numbers = array("I", (high + 8 if high in highs else 0 for high in range(4)))
    times = array("q", (base_ms + time for time, _ in entries))
    items = items_at(times, array("I", (entry for _, entry in entries)), numbers, 0, base_ms, tick_ms, 1 << 31)
    kept = [(time, entry) for time, entry in entries if entry >> 16 in highs]
    ledger_of, high_of = array("Q", [0]) * 65_536, array("I", [0]) * 65_536
    for high in range(4):
        ledger_of[high + 7], high_of[high + 7] = 77, high
    ordered = sorted_by_tick(items)
    assert list(ordered) == [item for _, _, item in sorted((item >> 32, place, item) for place, item in enumerate(items))]
    found_times, ledger_ids, entry_ids = facts_of(items, ledger_of, high_of, base_ms, tick_ms)
    assert [entry for _, entry in kept] == list(entry_ids)
    assert set(ledger_ids) <= {77}
    for (time, _), found in zip(kept, found_times, strict=True):
        assert found == base_ms + max(0, -(-time // tick_ms)) * tick_ms
    wanted = bytearray(65_536)
    wanted[8] = 1
    assert list(items_under(items, wanted)) == [item for item in items if item >> 16 & 0xFFFF == 8]
