"""Records of snapshots, and their schemas."""

from collections.abc import Mapping
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from broker.topic.transactions.aborted import AbortedSegment, AbortedTransactions
from broker.transaction.snapshots import records
from broker.transaction.snapshots.avro_longs import BadSnapshot
from broker.transaction.snapshots.schemas import Kind, schema_of
from wire.position import Position
from wire.transactions import TxnId

TOPIC = "persistent://public/default/x"


BITS = st.integers(0, (1 << 64) - 1)


PLACES = st.builds(Position, st.integers(0, (1 << 63) - 1), st.integers(-1, (1 << 63) - 1))


def aborted_of(ids: Mapping[TxnId, int]) -> AbortedTransactions:
    """Aborted transactions, each with the ledger of its marker."""
    aborted = AbortedTransactions()
    for number, (txn_id, ledger_id) in enumerate(sorted(ids.items(), key=lambda item: item[1])):
        aborted.add(txn_id, Position(ledger_id, number))
    return aborted


@given(st.dictionaries(st.builds(TxnId, BITS, BITS), st.integers(0, 3), max_size=30), PLACES)
def test_a_whole_list_is_read_as_it_was_written(ids: dict[TxnId, int], max_read: Position) -> None:
    aborted = aborted_of(ids)
    for _ in range(2):  # the second from what was kept of the first
        again = records.decode_single(records.encode_single(TOPIC, aborted, max_read))
        assert again.max_read == max_read
        assert all(txn_id in again.aborted for txn_id in ids)
        assert len(again.aborted) == len(ids)
        for ledger_id in range(4):
            again.aborted.forget_before(ledger_id)
            assert len(again.aborted) == sum(ledger >= ledger_id for ledger in ids.values())


@given(
    st.sets(st.builds(TxnId, BITS, BITS), min_size=1, max_size=30), st.sets(st.builds(TxnId, BITS, BITS), max_size=9), PLACES
)
def test_segments_and_their_index_are_read_as_they_were_written(
    sealed: set[TxnId], loose: set[TxnId], max_read: Position
) -> None:
    aborted = aborted_of(dict.fromkeys(sealed, 7))
    aborted.seal(1)
    for txn_id in sorted(loose):
        aborted.add(txn_id, Position(8, 1))
    [segment] = aborted.sealed
    segment.place = Position(3, 4)
    again = records.decode_segment(records.encode_segment(TOPIC, segment))
    assert again == records.Segment(0, segment.last, segment.ids)
    index = records.decode_index(records.encode_index(TOPIC, [segment], records.encode_loose(aborted), max_read))
    assert index.places == (records.SegmentPlace(0, segment.last, Position(3, 4)),)
    assert index.max_read == max_read
    assert set(index.loose) == loose - sealed


@given(st.binary(max_size=40))
def test_arbitrary_bytes_raise_nothing_but_bad_snapshot(data: bytes) -> None:
    for decode in (records.decode_single, records.decode_segment, records.decode_index):
        try:
            decode(data)
        except BadSnapshot:
            continue


_X = "3a70657273697374656e743a2f2f7075626c69632f64656661756c742f78"


def test_records_have_the_bytes_of_apaches() -> None:
    """Schema.AVRO of the classes of pulsar-broker 4.0.8, encoded by pulsar-client-original 4.0.8."""
    two = bytes.fromhex("02040c0a04020c0a8080808080400100d8040e02" + _X)
    found = records.decode_single(two)
    assert found.max_read == Position(7, 300)
    assert all(txn_id in found.aborted for txn_id in (TxnId(1, 2), TxnId((1 << 64) - 1, 1 << 40)))
    assert records.encode_single(TOPIC, found.aborted, found.max_read) == two
    none = records.decode_single(bytes.fromhex("00010e02" + _X))
    assert (len(none.aborted), none.max_read) == (0, Position(7, -1))
    segment = bytes.fromhex("0204040280808080804001000c0a0602" + _X)
    read = records.decode_segment(segment)
    assert (read.sequence_id, read.last) == (3, Position(5, 6))
    assert records.encode_segment(TOPIC, AbortedSegment(read.last, read.ids, 2, read.sequence_id)) == segment
    index = bytes.fromhex("02020c0a12100600020202040200d8040e02" + _X)
    places = (records.SegmentPlace(3, Position(5, 6), Position(8, 9)),)
    assert records.decode_index(index) == records.Index(places, (TxnId(1, 2),), Position(7, 300))
    sealed = AbortedSegment(Position(5, 6), {1: BitMap64([2])}, 1, 3, Position(8, 9))
    loose = aborted_of({TxnId(1, 2): 0})
    assert records.encode_index(TOPIC, [sealed], records.encode_loose(loose), Position(7, 300)) == index


@pytest.mark.parametrize(
    ("kind", "size", "digest"),
    [
        (Kind.SINGLE, 593, 0x6290E273),
        (Kind.SEGMENTS, 567, 0x6A3ACEE1),
        (Kind.INDEXES, 1037, 0x8E572603),
    ],
)
def test_schemas_are_those_that_apache_registers(kind: Kind, size: int, digest: int) -> None:
    """Length and CRC are of Schema.AVRO(...).getSchemaInfo() of the same version."""
    found = schema_of(kind).data
    assert (len(found), crc32(found)) == (size, digest)
