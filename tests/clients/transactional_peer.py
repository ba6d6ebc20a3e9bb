"""One connection to a broker, ours or Apache's, over which messages are published in transactions and these are ended.

In the place of a client and of a coordinator: the broker of a topic asks neither whether there is such a transaction.
"""

import socket
from types import TracebackType
from typing import Self
from urllib.parse import urlparse

from wire.frames import PONG, encode, next_frame
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand, MessageMetadata
from wire.payloads import payload_section
from wire.transactions import TxnAction, TxnId

_SECONDS_MAX = 60.0


class TransactionalPeer:
    """A producer on one topic, which the broker at `url` serves."""

    def __init__(self, url: str, topic: str) -> None:
        where = urlparse(url)
        self._socket = socket.create_connection((where.hostname, where.port), timeout=_SECONDS_MAX)
        self._received = b""
        self._sent = 0
        self._topic = topic

    def __enter__(self) -> Self:
        try:
            connect = api.CommandConnect(client_version="test", protocol_version=21)
            self._ask(BaseCommand(type=BaseCommand.CONNECT, connect=connect))
            lookup = api.CommandLookupTopic(topic=self._topic, request_id=1, authoritative=True)
            self._ask(BaseCommand(type=BaseCommand.LOOKUP, lookup_topic=lookup))
            producer = api.CommandProducer(topic=self._topic, producer_id=1, request_id=2, txn_enabled=True)
            answered = self._ask(BaseCommand(type=BaseCommand.PRODUCER, producer=producer))
            assert answered.type == BaseCommand.PRODUCER_SUCCESS, answered
            self._name = answered.producer_success.producer_name
        except BaseException:
            self._socket.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._socket.close()

    def publish(self, text: str, txn_id: TxnId | None = None) -> None:
        """Stored when it returns."""
        send = api.CommandSend(producer_id=1, sequence_id=self._sent, num_messages=1)
        metadata = MessageMetadata(producer_name=self._name, sequence_id=self._sent, publish_time=1)
        if txn_id is not None:
            send.txnid_most_bits, send.txnid_least_bits = txn_id
            metadata.txnid_most_bits, metadata.txnid_least_bits = txn_id
        self._sent += 1
        section = payload_section(metadata, text.encode())
        answered = self._ask(BaseCommand(type=BaseCommand.SEND, send=send), section)
        assert answered.type == BaseCommand.SEND_RECEIPT, answered

    def end(self, txn_id: TxnId, action: TxnAction) -> None:
        """Ends the transaction as its coordinator would."""
        asked = api.CommandEndTxnOnPartition(request_id=3, topic=self._topic, txnid_least_bits_of_low_watermark=0)
        asked.txnid_most_bits, asked.txnid_least_bits = txn_id
        asked.txn_action = api.COMMIT if action is TxnAction.COMMIT else api.ABORT
        answered = self._ask(BaseCommand(type=BaseCommand.END_TXN_ON_PARTITION, end_txn_on_partition=asked))
        assert not answered.end_txn_on_partition_response.HasField("error"), answered

    def _ask(self, command: BaseCommand, payload: bytes = b"") -> BaseCommand:
        self._socket.sendall(encode(command, payload))
        while (answered := self._next()).type == BaseCommand.PING:
            self._socket.sendall(PONG)
        return answered

    def _next(self) -> BaseCommand:
        while (frame := next_frame(self._received, 0, len(self._received))) is None:
            data = self._socket.recv(1 << 16)
            assert data, "the broker has closed the connection"
            self._received += data
        self._received = self._received[frame.end :]
        return frame.command
