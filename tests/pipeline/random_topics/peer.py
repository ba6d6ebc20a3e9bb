"""One connection over which entries are sent as they are, transactions ended, and messages acknowledged. Blocking."""

import socket
from collections import deque
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlparse

from wire.frames import PONG, encode, next_frame
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand, MessageIdData

from .messages import Kind, Sent

_SECONDS_MAX = 60.0
_UNDER_WAY_MAX = 100
Place = tuple[int, int]
NOT_STORED: Place = (-1, -1)


class Refused(Exception):
    """The broker answered with an error."""


class Peer:
    """Peer of one topic; its broker is the one at the URL."""

    def __init__(self, url: str, topic: str) -> None:
        where = urlparse(url)
        self._socket = socket.create_connection((where.hostname, where.port), timeout=_SECONDS_MAX)
        self._buffer = bytearray()
        self._topic, self._request_id = topic, 0
        self._producers: dict[str, int] = {}

    def __enter__(self) -> Self:
        told = api.CommandConnect(client_version="random topics", protocol_version=21)
        self._ask(BaseCommand(type=BaseCommand.CONNECT, connect=told))
        self._request("lookup_topic", BaseCommand.LOOKUP, topic=self._topic, authoritative=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._socket.close()

    def send(self, entries: Sequence[tuple[str, Sent]]) -> list[Place]:
        """Place of each stored entry; NOT_STORED for a repeat. Refused."""
        has_txn = any(each.txn is not None for _, each in entries)
        for name in dict.fromkeys(name for name, _ in entries):
            self._begin(name, has_txn)
        places = [NOT_STORED] * len(entries)
        waiting: dict[int, deque[int]] = {number: deque() for number in self._producers.values()}
        for at, (name, sent) in enumerate(entries):
            waiting[self._producers[name]].append(at)
            self._socket.sendall(encode(_send(self._producers[name], sent), sent.section))
            while sum(map(len, waiting.values())) > _UNDER_WAY_MAX:
                self._take_receipt(waiting, places)
        while any(waiting.values()):
            self._take_receipt(waiting, places)
        return places

    def _take_receipt(self, waiting: dict[int, deque[int]], places: list[Place]) -> None:
        answer = self._next()
        if answer.type == BaseCommand.SEND_ERROR:
            raise Refused(f"{api.ServerError.Name(answer.send_error.error)}: {answer.send_error.message}")
        assert answer.type == BaseCommand.SEND_RECEIPT, answer
        found = answer.send_receipt.message_id
        ids = (found.ledger_id, found.entry_id)
        places[waiting[answer.send_receipt.producer_id].popleft()] = NOT_STORED if max(ids) >= 1 << 63 else ids

    def _begin(self, name: str, has_txn: bool) -> None:
        """A producer begins once; those of one name are one after the other on a connection."""
        if name in self._producers:
            return
        self._producers[name] = len(self._producers) + 1
        members: dict[str, Any] = {"topic": self._topic, "producer_id": self._producers[name], "producer_name": name}
        self._request("producer", BaseCommand.PRODUCER, **members, txn_enabled=has_txn, user_provided_producer_name=True)

    def end(self, txn: int, is_committed: bool) -> None:
        """Ends the transaction as its coordinator would."""
        answer = self._request(
            "end_txn_on_partition",
            BaseCommand.END_TXN_ON_PARTITION,
            topic=self._topic,
            txnid_most_bits=0,
            txnid_least_bits=txn,
            txnid_least_bits_of_low_watermark=0,
            txn_action=api.COMMIT if is_committed else api.ABORT,
        )
        if answer.end_txn_on_partition_response.HasField("error"):
            raise Refused(answer.end_txn_on_partition_response.message)

    def subscribe(self, name: str, is_shared: bool) -> None:
        kind = api.CommandSubscribe.Shared if is_shared else api.CommandSubscribe.Exclusive
        earliest = api.CommandSubscribe.Earliest
        members: dict[str, Any] = {"topic": self._topic, "subscription": name, "sub_type": kind, "consumer_id": 1}
        self._request("subscribe", BaseCommand.SUBSCRIBE, **members, durable=True, initial_position=earliest)

    def acknowledge(self, ids: Iterable[MessageIdData], is_cumulative: bool = False) -> None:
        kind = api.CommandAck.Cumulative if is_cumulative else api.CommandAck.Individual
        self._request_id += 1
        told = api.CommandAck(consumer_id=1, ack_type=kind, message_id=ids, request_id=self._request_id)
        answer = self._ask(BaseCommand(type=BaseCommand.ACK, ack=told)).ack_response
        if answer.HasField("error"):
            raise Refused(answer.message)

    def _request(self, body: str, kind: BaseCommand.Type, **members: Any) -> BaseCommand:
        self._request_id += 1
        command = BaseCommand(type=kind)
        for name, value in {"request_id": self._request_id, **members}.items():
            setattr(getattr(command, body), name, value)
        return self._ask(command)

    def _ask(self, command: BaseCommand) -> BaseCommand:
        self._socket.sendall(encode(command, b""))
        answer = self._next()
        if answer.type == BaseCommand.ERROR:
            raise Refused(f"{api.ServerError.Name(answer.error.error)}: {answer.error.message}")
        return answer

    def _next(self) -> BaseCommand:
        while True:
            frame = next_frame(self._buffer, 0, len(self._buffer))
            if frame is None:
                data = self._socket.recv(1 << 16)
                if not data:
                    raise Refused("the broker closed the connection")
                self._buffer += data
                continue
            command, end = frame.command, frame.end
            del frame
            del self._buffer[:end]
            if command.type == BaseCommand.PING:
                self._socket.sendall(PONG)
            elif command.type != BaseCommand.ACTIVE_CONSUMER_CHANGE:
                return command


def _send(producer_id: int, sent: Sent) -> BaseCommand:
    told = api.CommandSend(producer_id=producer_id, sequence_id=sent.sequence_id)
    if sent.count != 1:
        told.num_messages, told.highest_sequence_id = sent.count, sent.sequence_id + sent.count - 1
    told.is_chunk, told.marker = sent.kind is Kind.CHUNK, sent.kind is Kind.NOTHING
    if sent.txn is not None:
        told.txnid_most_bits, told.txnid_least_bits = 0, sent.txn
    return BaseCommand(type=BaseCommand.SEND, send=told)
