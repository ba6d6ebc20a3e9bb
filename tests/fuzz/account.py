"""Account: what a broker owes one connection, and whether it pays. Pure; the oracle of the fuzz.

Each request is answered once, in a kind of answer that it has; each SEND by a receipt or an error, in the order of its
producer; no answer is a failure of the broker's own; a connection is ended only for a cause.
"""

import logging
import re
from collections import Counter, deque
from dataclasses import dataclass

from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand

from . import odd
from .asked import Asked
from .asking import BODIES
from .knowledge import Knowledge, OpenProducer, Peer

_NUMBERS = re.compile(r"[0-9]+")
log = logging.getLogger(__name__)

NO_REQUEST = odd.WORDS[-1]
_C = BaseCommand
ANSWERS = {
    _C.PRODUCER: _C.PRODUCER_SUCCESS,
    _C.SUBSCRIBE: _C.SUCCESS,
    _C.CLOSE_PRODUCER: _C.SUCCESS,
    _C.CLOSE_CONSUMER: _C.SUCCESS,
    _C.UNSUBSCRIBE: _C.SUCCESS,
    _C.SEEK: _C.SUCCESS,
    _C.ACK: _C.ACK_RESPONSE,
    _C.GET_LAST_MESSAGE_ID: _C.GET_LAST_MESSAGE_ID_RESPONSE,
    _C.CONSUMER_STATS: _C.CONSUMER_STATS_RESPONSE,
    _C.PARTITIONED_METADATA: _C.PARTITIONED_METADATA_RESPONSE,
    _C.LOOKUP: _C.LOOKUP_RESPONSE,
    _C.GET_TOPICS_OF_NAMESPACE: _C.GET_TOPICS_OF_NAMESPACE_RESPONSE,
    _C.WATCH_TOPIC_LIST: _C.WATCH_TOPIC_LIST_SUCCESS,
    _C.WATCH_TOPIC_LIST_CLOSE: _C.SUCCESS,
    _C.GET_SCHEMA: _C.GET_SCHEMA_RESPONSE,
    _C.GET_OR_CREATE_SCHEMA: _C.GET_OR_CREATE_SCHEMA_RESPONSE,
    _C.TC_CLIENT_CONNECT_REQUEST: _C.TC_CLIENT_CONNECT_RESPONSE,
    _C.NEW_TXN: _C.NEW_TXN_RESPONSE,
    _C.ADD_PARTITION_TO_TXN: _C.ADD_PARTITION_TO_TXN_RESPONSE,
    _C.ADD_SUBSCRIPTION_TO_TXN: _C.ADD_SUBSCRIPTION_TO_TXN_RESPONSE,
    _C.END_TXN: _C.END_TXN_RESPONSE,
    _C.END_TXN_ON_PARTITION: _C.END_TXN_ON_PARTITION_RESPONSE,
    _C.END_TXN_ON_SUBSCRIPTION: _C.END_TXN_ON_SUBSCRIPTION_RESPONSE,
}
"""Kind of answer to each request that succeeds, and to those that fail in their own kind of answer."""
FAIL_WITH_ERROR = frozenset(kind for kind, answer in ANSWERS.items() if answer in (_C.SUCCESS, _C.PRODUCER_SUCCESS)) | {
    _C.GET_LAST_MESSAGE_ID,
    _C.GET_TOPICS_OF_NAMESPACE,
    _C.WATCH_TOPIC_LIST,
}
UNKNOWN_AS_APACHE = "Error when resetting subscription: "
"""Beginning of the message of a seek that fails: Apache's brokers have no better code for it."""


@dataclass(frozen=True, slots=True)
class Owed:
    """A request without an answer. `number`: of all that the connection asked."""

    number: int
    command: BaseCommand


class Account:
    """Account of one connection."""

    def __init__(self, peer: Peer, known: Knowledge, errors: Counter[tuple[str, str, str]]) -> None:
        self.peer, self._known, self._errors = peer, known, errors
        self.findings: list[str] = []
        self.may_end = self.is_loose = self.is_lost = False
        """Loose: bytes were sent that are no command of ours; what comes of them is not counted."""
        self._asked = 0
        self._owed: dict[int, list[Owed]] = {}
        self._waiting: dict[int, Owed] = {}
        """Producers by request that were told to wait for their turn, and will be told of it, or of its end."""
        self._sent: dict[int, deque[tuple[int, Asked, str]]] = {}

    @property
    def is_settled(self) -> bool:
        return self.is_lost or not (self._owed or any(self._sent.values()))

    def unpaid(self) -> list[str]:
        """Requests without an outcome."""
        requests = [f"no answer to {_shown(each.command)}" for owed in self._owed.values() for each in owed]
        sends = [f"no answer to SEND {sent[0][0]} of producer {number}" for number, sent in self._sent.items() if sent]
        return requests + sends

    # ---- What is sent

    def sends(self, asked: Asked) -> None:
        log.debug("%d > %s", self.peer.number, asked.data[:300] if asked.command is None else _shown(asked.command))
        self._asked += 1
        self.may_end |= asked.ends
        if asked.command is None:
            self.is_loose = True
            return
        command = asked.command
        if command.type == BaseCommand.SEND and not asked.ends:
            self._send(asked, command.send)
        elif command.type in ANSWERS:
            body = getattr(command, BODIES[command.type])
            if body.HasField("request_id"):
                self._owed.setdefault(body.request_id, []).append(Owed(self._asked, command))

    def _send(self, asked: Asked, told: api.CommandSend) -> None:
        topic = self.peer.producers[told.producer_id].topic
        if self._asks_for_producer(told.producer_id):
            self.may_end = True  # the one that it means may have been closed, and the other one not be there yet
        if asked.is_filtered:
            self._known.unclear.add(topic)
        self._sent.setdefault(told.producer_id, deque()).append((told.sequence_id, asked, topic))

    def _asks_for_producer(self, producer_id: int) -> bool:
        asked = (each.command for owed in self._owed.values() for each in owed)
        return any(each.type == BaseCommand.PRODUCER and each.producer.producer_id == producer_id for each in asked)

    # ---- What comes

    def hears(self, command: BaseCommand) -> None:
        log.debug("%d < %s", self.peer.number, _shown(command))
        self._known.heard(command)
        match command.type:
            case BaseCommand.SEND_RECEIPT:
                self._receipt(command.send_receipt)
            case BaseCommand.SEND_ERROR:
                told = command.send_error
                self._judge("SEND", told.error, told.message)
                self._answered(told.producer_id, told.sequence_id, "SEND_ERROR")
            case BaseCommand.CLOSE_PRODUCER:
                self.peer.producers.pop(command.close_producer.producer_id, None)
                self._sent.pop(command.close_producer.producer_id, None)
            case BaseCommand.CLOSE_CONSUMER:
                self.peer.consumers.pop(command.close_consumer.consumer_id, None)
            case BaseCommand.CONNECTED:
                self.peer.is_connected = True
            case BaseCommand.ERROR:
                self._error(command.error)
            case kind if kind in ANSWERS.values():
                self._response(command, getattr(command, BODIES[kind]))

    def _receipt(self, told: api.CommandSendReceipt) -> None:
        found = self._answered(told.producer_id, told.sequence_id, "SEND_RECEIPT")
        if found is not None and told.message_id.ledger_id != NO_REQUEST and found[1].startswith("persistent"):
            where = (told.message_id.ledger_id, told.message_id.entry_id)
            self._known.stored(found[1], where, is_filtered=found[0].is_filtered)

    def _answered(self, producer_id: int, sequence_id: int, what: str) -> tuple[Asked, str] | None:
        sent = self._sent.get(producer_id)
        if not sent or sent[0][0] != sequence_id:
            expected = sent[0][0] if sent else "none"
            self._finding(f"{what} {sequence_id} of producer {producer_id}, expected {expected}")
            return None
        _, asked, topic = sent.popleft()
        return asked, topic

    def _error(self, told: api.CommandError) -> None:
        owed = self._take(told.request_id, BaseCommand.ERROR)
        if owed is None:
            if told.request_id in self._waiting:
                del self._waiting[told.request_id]
            elif told.request_id != NO_REQUEST:
                self._finding(f"ERROR {told.message!r} for request {told.request_id}, which nobody made")
            return
        self._judge(BaseCommand.Type.Name(owed.command.type), told.error, told.message)

    def _response(self, command: BaseCommand, body: object) -> None:
        request_id = body.request_id  # type: ignore[attr-defined]  # every kind of answer has one
        owed = self._take(request_id, command.type)
        if owed is None:
            waiting = self._waiting.pop(request_id, None)
            if waiting is None or command.type != BaseCommand.PRODUCER_SUCCESS:
                self._finding(f"{_shown(command)} for request {request_id}, which nobody made")
                return
            owed = waiting
        code, message = _refusal(body)
        if code is not None:
            self._judge(BaseCommand.Type.Name(owed.command.type), code, message)
        else:
            self._succeeded(owed, command)

    def _take(self, request_id: int, kind: int) -> Owed | None:
        owed = self._owed.get(request_id, [])
        for index, each in enumerate(owed):
            asked = each.command.type
            if kind == ANSWERS[asked] or (kind == BaseCommand.ERROR and asked in FAIL_WITH_ERROR):
                del owed[index]
                if not owed:
                    del self._owed[request_id]
                elif asked == BaseCommand.PRODUCER:
                    self.may_end = True  # of several with this number it may be another's answer: which of them is there?
                return each
        return None

    def _succeeded(self, owed: Owed, answer: BaseCommand) -> None:
        asked, peer = owed.command, self.peer
        match asked.type:
            case BaseCommand.PRODUCER if not answer.producer_success.producer_ready:
                self._waiting[asked.producer.request_id] = owed
            case BaseCommand.PRODUCER:
                opened = OpenProducer(asked.producer.topic, answer.producer_success.producer_name)
                peer.producers.setdefault(asked.producer.producer_id, opened)
            case BaseCommand.SUBSCRIBE:
                peer.consumers[asked.subscribe.consumer_id] = asked.subscribe.topic
            case BaseCommand.CLOSE_PRODUCER:
                self._closed(asked.close_producer.producer_id, owed.number)
            case BaseCommand.CLOSE_CONSUMER:
                gone = asked.close_consumer.consumer_id
                peer.consumers.pop(gone, None)
                self._waive(BaseCommand.SUBSCRIBE, "consumer_id", gone, owed.number)
            case BaseCommand.UNSUBSCRIBE:
                peer.consumers.pop(asked.unsubscribe.consumer_id, None)

    def _closed(self, producer_id: int, number: int) -> None:
        """Notes a closed producer. Its sends are answered before, or never: it may have been fenced out while it was closed."""
        self.peer.producers.pop(producer_id, None)
        self._sent.pop(producer_id, None)
        self._waive(BaseCommand.PRODUCER, "producer_id", producer_id, number)
        self._waiting = {key: each for key, each in self._waiting.items() if each.command.producer.producer_id != producer_id}

    def _waive(self, kind: int, member: str, number: int, before: int) -> None:
        """Waives an answer: a peer that closes what it has just asked for gets no more answer; so with Apache's broker."""
        for request_id, owed in list(self._owed.items()):
            left = [
                each
                for each in owed
                if each.number > before
                or each.command.type != kind
                or getattr(getattr(each.command, BODIES[kind]), member) != number
            ]
            if left:
                self._owed[request_id] = left
            else:
                del self._owed[request_id]

    def lost(self) -> None:
        """The broker has ended the connection."""
        self.is_lost = True
        if not self.may_end:
            self._finding("the connection was ended without a cause")

    def _judge(self, what: str, code: int, message: str) -> None:
        name = api.ServerError.Name(code)
        self._errors[what, name, _NUMBERS.sub("N", message)[:60]] += 1
        if "Internal" in message or (code == api.UnknownError and not message.startswith(UNKNOWN_AS_APACHE)):
            self._finding(f"{what}: {name}: {message}")

    def _finding(self, text: str) -> None:
        if not self.is_loose:
            self.findings.append(f"peer {self.peer.number}: {text}")


def _refusal(body: object) -> tuple[int | None, str]:
    """The error that an answer holds: its code and its text."""
    for code, message in (("error", "message"), ("error_code", "error_message")):
        if code in body.DESCRIPTOR.fields_by_name and body.HasField(code):  # type: ignore[attr-defined]
            return getattr(body, code), getattr(body, message)
    return None, ""


def _shown(command: BaseCommand) -> str:
    return " ".join(str(command).split())[:500]
