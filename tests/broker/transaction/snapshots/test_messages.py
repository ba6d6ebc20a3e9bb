"""Messages of snapshots."""

from broker.topic.transactions.aborted import AbortedTransactions
from broker.transaction.snapshots import records
from broker.transaction.snapshots.messages import UNREADABLE, Keyed, keyed_of, section_of
from wire.generated.pulsar_api_pb2 import MessageMetadata
from wire.payloads import payload_section
from wire.position import Position
from wire.transactions import TxnId

TOPIC = "persistent://public/default/x"


def test_a_million_aborted_transactions_fit_into_messages() -> None:
    aborted = AbortedTransactions()
    for number in range(1_000_000):
        aborted.add(TxnId(number % 16, number), Position(number // 50_000, number))
        if number % 87_000 == 0:
            aborted.seal(87_000)
    aborted.seal(40_000)
    sizes = [len(records.encode_segment(TOPIC, segment)) for segment in aborted.sealed]
    assert sum(segment.count for segment in aborted.sealed) == 1_000_000
    assert max(sizes) < 1 << 20
    aborted.forget_before(19)
    assert 50_000 <= len(aborted) < 140_000
    assert TxnId(0, 0) not in aborted


def test_messages_are_read_as_they_were_written_and_others_are_not_taken_for_them() -> None:
    for keyed in (Keyed("k", b"record"), Keyed("k", None)):
        assert keyed_of(section_of(keyed, "p", 5)) == keyed
    plain = MessageMetadata(producer_name="p", sequence_id=1, publish_time=2)
    assert keyed_of(payload_section(plain, b"x")) is None
    assert keyed_of(b"\0\0") is None
    plain.partition_key, plain.num_messages_in_batch = "k", 1
    assert keyed_of(payload_section(plain, b"x")) == Keyed("k", UNREADABLE)
