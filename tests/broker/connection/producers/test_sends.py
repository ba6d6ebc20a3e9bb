"""SENDs of a transaction: what is stored names it, whatever of it the client's message says."""

from typing import Any

import pytest

from broker.connection.producers.sends import single_send
from broker.errors import BrokerError, ServerError
from broker.topic.transactions.markers import transaction_of
from wire.generated import pulsar_api_pb2 as api
from wire.payloads import message_metadata, payload_section, split_section, verify
from wire.transactions import TxnId

TXN = TxnId(3, (1 << 64) - 7)
HEADER_BYTES = 21


def of(**fields: Any) -> api.MessageMetadata:
    return api.MessageMetadata(producer_name="p", sequence_id=4, publish_time=5, partition_key="k", **fields)


def stored(metadata: api.MessageMetadata, *, has_checksum: bool = True) -> memoryview:
    sent = payload_section(metadata, b"text")
    command = api.CommandSend(producer_id=1, sequence_id=4, txnid_most_bits=TXN.most, txnid_least_bits=TXN.least)
    run = single_send(command, memoryview(sent if has_checksum else sent[6:]), HEADER_BYTES)
    assert run.txn_id == TXN
    assert list(run.entries.offsets) == [0, len(run.entries.buffer)]
    return memoryview(run.entries.buffer)[HEADER_BYTES:]


@pytest.mark.parametrize("has_checksum", [True, False])
@pytest.mark.parametrize("said", [{}, {"txnid_most_bits": 9}, {"txnid_most_bits": TXN.most, "txnid_least_bits": TXN.least}])
def test_a_stored_message_names_its_transaction_and_is_otherwise_unchanged(said: dict[str, int], has_checksum: bool) -> None:
    section = split_section(stored(of(**said), has_checksum=has_checksum))
    verify(section)
    found = message_metadata(section)
    assert transaction_of(found) == TXN
    assert found == of(txnid_most_bits=TXN.most, txnid_least_bits=TXN.least)
    assert (bytes(section.payload), section.checksum is None) == (b"text", not has_checksum)


def test_a_message_that_names_another_transaction_is_refused() -> None:
    with pytest.raises(BrokerError, match="names") as refused:
        stored(of(txnid_most_bits=1, txnid_least_bits=2))
    assert refused.value.code is ServerError.NOT_ALLOWED
