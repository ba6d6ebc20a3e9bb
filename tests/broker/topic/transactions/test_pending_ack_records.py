"""Records of pending acknowledgements."""

from hypothesis import given
from hypothesis import strategies as st

from broker.topic.transactions.pending_ack_records import Acknowledged, Ended, Record
from broker.topic.transactions.pending_ack_records import decode as decode_record
from broker.topic.transactions.pending_ack_records import encode as encode_record
from broker.topic.transactions.pending_acks import Acked, words_of
from wire.position import Position
from wire.transactions import TxnAction, TxnId

COMMIT, ABORT = TxnAction.COMMIT, TxnAction.ABORT


IDS = st.builds(TxnId, st.integers(0, 2), st.integers(0, 6))


@given(
    st.booleans(),
    IDS,
    st.lists(st.tuples(st.integers(0, 1 << 62), st.lists(st.integers(0, (1 << 64) - 1), max_size=3)), max_size=4),
)
def test_records_of_pending_acks_are_read_as_they_were_written(
    is_cumulative: bool, txn_id: TxnId, parts: list[tuple[int, list[int]]]
) -> None:
    acked = tuple(Acked(Position(entry, entry), tuple(words), len(words) * 64) for entry, words in parts)
    records: list[Record] = [
        Acknowledged(txn_id, is_cumulative, acked),
        Ended(txn_id, COMMIT, is_cumulative),
        Ended(txn_id, ABORT),
    ]
    assert [decode_record(encode_record(record)) for record in records] == records


def test_a_record_has_the_bytes_of_apaches() -> None:
    """PendingAckMetadataEntry of pulsar-broker 4.0.8: op 1, type 2, least bits 3, most bits 4, metadata 5."""
    record = Acknowledged(TxnId(2, 3), False, (Acked(Position(4, 5), words_of(6, 1), 8),))
    assert encode_record(record) == bytes.fromhex("08011000180320022a080804100518062008")


def test_broker_metadata_before_a_record_is_skipped() -> None:
    record = Ended(TxnId(2, 3), COMMIT)
    stamp = bytes.fromhex("0e02000000021000")
    assert decode_record(stamp + encode_record(record)) == record
