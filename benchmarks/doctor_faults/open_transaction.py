"""A transaction that is opened and published in, and stays open: no released client keeps one without working on it."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import crc32c

from benchmarks.raw_client import RawClient, frame, is_kind
from wire.generated.pulsar_api_pb2 import BaseCommand, MessageMetadata

OPEN_MS = 600_000


@contextmanager
def transaction_held_open(broker_url: str, topic: str) -> Iterator[str]:
    """Id of an open transaction, as the admin REST writes it; the connection ends with the block."""
    with closing(RawClient(broker_url)) as client:
        connect = BaseCommand(type=BaseCommand.TC_CLIENT_CONNECT_REQUEST)
        connect.tc_client_connect_request.request_id, connect.tc_client_connect_request.tc_id = 1, 0
        client.ask(connect, BaseCommand.TC_CLIENT_CONNECT_RESPONSE)
        opened = BaseCommand(type=BaseCommand.NEW_TXN)
        opened.new_txn.request_id, opened.new_txn.txn_ttl_seconds, opened.new_txn.tc_id = 2, OPEN_MS, 0
        answer = client.ask(opened, BaseCommand.NEW_TXN_RESPONSE).new_txn_response
        most, least = answer.txnid_most_bits, answer.txnid_least_bits
        taking = BaseCommand(type=BaseCommand.ADD_PARTITION_TO_TXN)
        part = taking.add_partition_to_txn
        part.request_id, part.txnid_most_bits, part.txnid_least_bits = 3, most, least
        part.partitions.append(topic)
        client.ask(taking, BaseCommand.ADD_PARTITION_TO_TXN_RESPONSE)
        client.producer(topic)
        client.send(_send(most, least))
        while not any(is_kind(data, BaseCommand.SEND_RECEIPT) for data in client.frames()):
            continue
        yield f"({most},{least})"


def _send(most: int, least: int) -> bytes:
    command = BaseCommand(type=BaseCommand.SEND)
    command.send.producer_id, command.send.sequence_id = 0, 0
    command.send.txnid_most_bits, command.send.txnid_least_bits = most, least
    metadata = MessageMetadata(
        producer_name="held", sequence_id=0, publish_time=1, txnid_most_bits=most, txnid_least_bits=least
    )
    head = metadata.SerializeToString()
    body = len(head).to_bytes(4, "big") + head + b"in a transaction"
    return frame(command, b"\x0e\x01" + crc32c.crc32c(body).to_bytes(4, "big") + body)
