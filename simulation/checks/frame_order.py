"""FrameOrder: which frames a broker may send to a client when. One connection's, both ways. Pure.

Clients rely on it: a frame that comes before they can use it they drop, and one that comes too late they wait for. The promises
are in docs/frame-order.md, with what Apache's ServerCnx does; `ANSWERS` and the names of the rules here are that page's tables.
Every connection of every simulation is watched by one of these.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wire.generated.pulsar_api_pb2 import BaseCommand, CommandSubscribe

_B = BaseCommand
_BODIES = {each.number: each.name for each in BaseCommand.DESCRIPTOR.fields if each.number > 1}
_PLAIN = (_B.SUCCESS, _B.ERROR)

ANSWERS: Mapping[int, tuple[int, ...]] = {
    _B.PRODUCER: (_B.PRODUCER_SUCCESS, _B.ERROR),
    _B.CLOSE_PRODUCER: _PLAIN,
    _B.SUBSCRIBE: _PLAIN,
    _B.UNSUBSCRIBE: _PLAIN,
    _B.SEEK: _PLAIN,
    _B.CLOSE_CONSUMER: _PLAIN,
    _B.GET_LAST_MESSAGE_ID: (_B.GET_LAST_MESSAGE_ID_RESPONSE, _B.ERROR),
    _B.CONSUMER_STATS: (_B.CONSUMER_STATS_RESPONSE,),
    _B.ACK: (_B.ACK_RESPONSE,),
    _B.PARTITIONED_METADATA: (_B.PARTITIONED_METADATA_RESPONSE,),
    _B.LOOKUP: (_B.LOOKUP_RESPONSE,),
    _B.GET_TOPICS_OF_NAMESPACE: (_B.GET_TOPICS_OF_NAMESPACE_RESPONSE, _B.ERROR),
    _B.WATCH_TOPIC_LIST: (_B.WATCH_TOPIC_LIST_SUCCESS, _B.ERROR),
    _B.WATCH_TOPIC_LIST_CLOSE: _PLAIN,
    _B.GET_SCHEMA: (_B.GET_SCHEMA_RESPONSE,),
    _B.GET_OR_CREATE_SCHEMA: (_B.GET_OR_CREATE_SCHEMA_RESPONSE,),
    _B.TC_CLIENT_CONNECT_REQUEST: (_B.TC_CLIENT_CONNECT_RESPONSE, _B.ERROR),
    _B.NEW_TXN: (_B.NEW_TXN_RESPONSE, _B.ERROR),
    _B.ADD_PARTITION_TO_TXN: (_B.ADD_PARTITION_TO_TXN_RESPONSE, _B.ERROR),
    _B.ADD_SUBSCRIPTION_TO_TXN: (_B.ADD_SUBSCRIPTION_TO_TXN_RESPONSE, _B.ERROR),
    _B.END_TXN: (_B.END_TXN_RESPONSE, _B.ERROR),
    _B.END_TXN_ON_PARTITION: (_B.END_TXN_ON_PARTITION_RESPONSE, _B.ERROR),
    _B.END_TXN_ON_SUBSCRIPTION: (_B.END_TXN_ON_SUBSCRIPTION_RESPONSE, _B.ERROR),
}
"""Types of the one frame that answers each request."""
_OF_CONSUMERS = (_B.MESSAGE, _B.ACTIVE_CONSUMER_CHANGE, _B.REACHED_END_OF_TOPIC, _B.CLOSE_CONSUMER)
_OF_PRODUCERS = (_B.SEND_RECEIPT, _B.SEND_ERROR, _B.CLOSE_PRODUCER)
_ANSWERS = frozenset(kind for kinds in ANSWERS.values() for kind in kinds)


class OutOfOrder(AssertionError):
    """A frame came that may not come now; names the rule."""


@dataclass(slots=True)
class _Consumer:
    """A consumer from SUBSCRIBE on. `is_active`: as a Failover consumer was notified last."""

    is_failover: bool
    is_open: bool = False
    has_flowed: bool = False
    is_active: bool = False
    knows_end: bool = False
    unsubscribes: bool = False


@dataclass(slots=True)
class _Producer:
    """A producer from PRODUCER on. `unanswered`: sequence ids of its SENDs."""

    is_ready: bool = False
    unanswered: deque[int] = field(default_factory=deque)


class FrameOrder:
    """The order on one connection from CONNECT on. `sent` and `received` are told each frame in its order; OutOfOrder."""

    def __init__(self) -> None:
        self._is_connected = False
        self._pings = 0
        self._requests: dict[int, BaseCommand] = {}
        self._consumers: dict[int, _Consumer] = {}
        self._producers: dict[int, _Producer] = {}
        self._watchers: set[int] = set()

    # ---- From the client

    def sent(self, command: BaseCommand) -> None:
        """A frame of the client."""
        kind, body = command.type, _body(command)
        if kind in ANSWERS and (kind != _B.ACK or body.HasField("request_id")):
            self._requests[body.request_id] = command
        match kind:
            case _B.PING:
                self._pings += 1
            case _B.SUBSCRIBE if not self._is_known(self._consumers.get(body.consumer_id)):
                self._consumers[body.consumer_id] = _Consumer(body.sub_type == CommandSubscribe.Failover)
            case _B.FLOW | _B.UNSUBSCRIBE if body.consumer_id in self._consumers:
                consumer = self._consumers[body.consumer_id]
                consumer.has_flowed |= kind == _B.FLOW
                consumer.unsubscribes |= kind == _B.UNSUBSCRIBE
            case _B.PRODUCER if body.producer_id not in self._producers:
                self._producers[body.producer_id] = _Producer()
            case _B.SEND if body.producer_id in self._producers:
                self._producers[body.producer_id].unanswered.append(body.sequence_id)

    def _is_known(self, consumer: _Consumer | None) -> bool:
        return consumer is not None and consumer.is_open

    # ---- From the broker

    def received(self, command: BaseCommand) -> None:
        """A frame of the broker."""
        kind, body = command.type, _body(command)
        if kind == _B.CONNECTED:
            _require(not self._is_connected, "one CONNECTED", command)
            self._is_connected = True
        elif kind == _B.PONG:
            _require(self._pings > 0, "a PONG for each PING", command)
            self._pings -= 1
        elif kind in _OF_CONSUMERS:
            self._of_consumer(command, body)
        elif kind in _OF_PRODUCERS:
            self._of_producer(command, body)
        elif kind == _B.WATCH_TOPIC_UPDATE:
            _require(body.watcher_id in self._watchers, "updates between WATCH_TOPIC_LIST_SUCCESS and the close", command)
        elif kind in _ANSWERS:
            self._answer(command, body)

    def _of_consumer(self, command: BaseCommand, body: Any) -> None:
        consumer = self._consumers.get(body.consumer_id)
        _require(consumer is not None and consumer.is_open, "frames of a consumer between its SUCCESS and its end", command)
        assert consumer is not None
        match command.type:
            case _B.MESSAGE:
                _require(consumer.has_flowed, "messages after permits", command)
                _require(consumer.is_active or not consumer.is_failover, "messages while told that it is active", command)
                _require(not consumer.knows_end, "the end of the topic after its last message", command)
            case _B.ACTIVE_CONSUMER_CHANGE:
                _require(consumer.is_failover, "ACTIVE_CONSUMER_CHANGE to consumers of Failover alone", command)
                consumer.is_active = body.is_active
            case _B.REACHED_END_OF_TOPIC:
                _require(not consumer.knows_end, "the end of the topic once", command)
                consumer.knows_end = True
            case _:
                _require(not consumer.unsubscribes, "no CLOSE_CONSUMER to the consumer that unsubscribes", command)
                del self._consumers[body.consumer_id]

    def _of_producer(self, command: BaseCommand, body: Any) -> None:
        producer = self._producers.get(body.producer_id)
        _require(
            producer is not None and producer.is_ready, "frames of a producer between its PRODUCER_SUCCESS and its end", command
        )
        assert producer is not None
        if command.type == _B.CLOSE_PRODUCER:
            del self._producers[body.producer_id]
            return
        is_next = bool(producer.unanswered) and producer.unanswered[0] == body.sequence_id
        _require(is_next, "each SEND answered once, in their order", command)
        producer.unanswered.popleft()

    def _answer(self, command: BaseCommand, body: Any) -> None:
        asked = self._requests.get(body.request_id)
        if command.type == _B.ERROR and asked is None:
            _require(not self._is_connected or body.request_id >= 1 << 63, "one answer to each request", command)
            return  # the whole connection is refused
        _require(asked is not None, "one answer to each request", command)
        assert asked is not None
        _require(command.type in ANSWERS[asked.type], "the answer that belongs to the request", command)
        if command.type != _B.PRODUCER_SUCCESS or body.producer_ready:
            del self._requests[body.request_id]
        self._answered(asked, _body(asked), command)

    def _answered(self, asked: BaseCommand, about: Any, answer: BaseCommand) -> None:
        is_done = answer.type != _B.ERROR
        match asked.type:
            case _B.SUBSCRIBE | _B.CLOSE_CONSUMER | _B.UNSUBSCRIBE | _B.SEEK:
                self._answered_of_consumer(asked.type, about.consumer_id, answer, is_done=is_done)
            case _B.PRODUCER if is_done:
                ready = answer.producer_success.producer_ready
                self._producers.setdefault(about.producer_id, _Producer()).is_ready |= ready
            case _B.PRODUCER:
                self._producers.pop(about.producer_id, None)
            case _B.CLOSE_PRODUCER:
                gone = self._producers.pop(about.producer_id, None)
                _require(gone is None or not gone.unanswered, "the SUCCESS of CLOSE_PRODUCER after the last receipt", answer)
            case _B.WATCH_TOPIC_LIST if is_done:
                self._watchers.add(about.watcher_id)
            case _B.WATCH_TOPIC_LIST_CLOSE:
                self._watchers.discard(about.watcher_id)

    def _answered_of_consumer(self, asked: int, consumer_id: int, answer: BaseCommand, *, is_done: bool) -> None:
        consumer = self._consumers.get(consumer_id)
        match asked:
            case _B.SUBSCRIBE if is_done:
                self._consumers.setdefault(consumer_id, _Consumer(False)).is_open = True
            case _B.SUBSCRIBE if not self._is_known(consumer):
                self._consumers.pop(consumer_id, None)
            case _B.CLOSE_CONSUMER:
                self._consumers.pop(consumer_id, None)
            case _B.UNSUBSCRIBE if consumer is not None:
                consumer.unsubscribes = False
                if is_done:
                    del self._consumers[consumer_id]
            case _B.SEEK if is_done:
                _require(consumer is None, "CLOSE_CONSUMER before the SUCCESS of SEEK", answer)


def _body(command: BaseCommand) -> Any:
    return getattr(command, _BODIES[command.type])


def _require(holds: bool, rule: str, command: BaseCommand) -> None:
    if not holds:
        raise OutOfOrder(f"{rule}: {BaseCommand.Type.Name(command.type)} {str(_body(command))[:200]}")
