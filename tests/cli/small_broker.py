"""A broker of one topic for tests of reconnects: it breaks connections, and closes producers and consumers, when told to.

Stored messages and acknowledgements outlive the connections, as they outlive a restart. Each connection has a thread of its
own; every fault is at a count of what came, so that nothing depends on time.
"""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from wire.frames import encode, next_frame
from wire.generated.pulsar_api_pb2 import (
    BaseCommand,
    CommandAckResponse,
    CommandCloseConsumer,
    CommandCloseProducer,
    CommandConnected,
    CommandLookupTopicResponse,
    CommandMessage,
    CommandPartitionedTopicMetadataResponse,
    CommandProducerSuccess,
    CommandSendReceipt,
    CommandSuccess,
    MessageIdData,
)
from wire.kernels.sends import FRAME_BYTES_MAX

LEDGER = 7
LATEST = (1 << 63) - 1


@dataclass
class Faults:
    """Times to fail, counted over all connections from 1. `loses`: a connection breaks before what came is stored; `hides`:
    after it is stored, before it is answered; `closes`: the producer or consumer is closed, as an unload does.
    """

    loses_send: set[int] = field(default_factory=set)
    hides_receipt: set[int] = field(default_factory=set)
    closes_producer: set[int] = field(default_factory=set)
    breaks_delivery: set[int] = field(default_factory=set)
    closes_consumer: set[int] = field(default_factory=set)
    loses_ack: set[int] = field(default_factory=set)
    hides_ack: set[int] = field(default_factory=set)
    skips_receipt: set[int] = field(default_factory=set)
    """Stored, and never answered, on a connection that goes on."""
    has_late_acks: bool = False
    """Acknowledgements that come before the first permits of a connection take effect behind the deliveries of those."""


class _Broken(Exception):
    """This connection ends here."""


class SmallBroker:
    """`stored` are payload sections in their order; `acked` numbers of entries."""

    def __init__(self, faults: Faults, stored: list[bytes] | None = None) -> None:
        self.faults = faults
        self.stored: list[bytes] = list(stored or ())
        self.acked: set[int] = set()
        self.producers: list[tuple[str, int]] = []
        """Name and epoch of each PRODUCER."""
        self.subscribes = self.sends = self.deliveries = self.acks = 0
        self.url = ""
        self.dead_lookups, self.dead_url = 0, ""
        """Number of lookups answered with a dead broker, and its URL."""
        self.redelivery_count = 0
        self.on_acked: Callable[[], None] = lambda: None
        """Called when acknowledgements were answered."""
        self._lock = threading.Lock()

    def serve(self, connection: socket.socket) -> None:
        """One connection, to its end."""
        with contextlib.suppress(_Broken, OSError):
            _Link(self, connection).run()

    def hit(self, faults: set[int], count: int) -> None:
        if count in faults:
            raise _Broken

    @property
    def lock(self) -> threading.Lock:
        return self._lock


class _Link:
    """One connection: the producer or consumer on it."""

    def __init__(self, broker: SmallBroker, connection: socket.socket) -> None:
        self._broker, self._connection = broker, connection
        self._next, self._permits, self._is_durable, self._is_open = 0, 0, True, False
        self._late: list[BaseCommand] = []
        self._has_flowed = False

    def run(self) -> None:
        for command, section in self._frames():
            with self._broker.lock:
                self._take(command, section)
                self._deliver()
                if command.type == BaseCommand.FLOW:
                    self._has_flowed = True
                    for late in self._late:
                        self._acknowledge(late)
                    self._late.clear()

    def _frames(self) -> Iterator[tuple[BaseCommand, bytes]]:
        buffer = bytearray()
        while data := self._connection.recv(1 << 16):
            buffer += data
            while (frame := next_frame(bytes(buffer), 0, len(buffer), FRAME_BYTES_MAX)) is not None:
                yield frame.command, bytes(frame.payload)
                del buffer[: frame.end]

    def _say(self, kind: int, section: bytes = b"", **body: object) -> None:
        self._connection.sendall(encode(BaseCommand(type=kind, **body), section))  # type: ignore[arg-type]

    def _take(self, command: BaseCommand, section: bytes) -> None:
        match command.type:
            case BaseCommand.CONNECT:
                self._say(BaseCommand.CONNECTED, connected=CommandConnected(server_version="small", protocol_version=21))
            case BaseCommand.PARTITIONED_METADATA:
                number = command.partition_metadata.request_id
                told = CommandPartitionedTopicMetadataResponse(request_id=number, partitions=0, response=0)  # type: ignore[arg-type]
                self._say(BaseCommand.PARTITIONED_METADATA_RESPONSE, partition_metadata_response=told)
            case BaseCommand.LOOKUP:
                self._broker.dead_lookups -= 1
                found = CommandLookupTopicResponse(
                    request_id=command.lookup_topic.request_id,
                    response=CommandLookupTopicResponse.Connect,
                    broker_service_url=self._broker.dead_url if self._broker.dead_lookups >= 0 else self._broker.url,
                    authoritative=True,
                )
                self._say(BaseCommand.LOOKUP_RESPONSE, lookup_topic_response=found)
            case BaseCommand.PRODUCER:
                self._produce(command)
            case BaseCommand.SEND:
                self._store(command, section)
            case BaseCommand.SUBSCRIBE:
                self._subscribe(command)
            case BaseCommand.FLOW:
                self._permits += command.flow.message_permits
            case BaseCommand.ACK if self._broker.faults.has_late_acks and not self._has_flowed:
                self._late.append(command)
            case BaseCommand.ACK:
                self._acknowledge(command)

    def _produce(self, command: BaseCommand) -> None:
        asked = command.producer
        self._broker.producers.append((asked.producer_name, asked.epoch))
        self._is_open = True
        told = CommandProducerSuccess(request_id=asked.request_id, producer_name=asked.producer_name or "made-up")
        self._say(BaseCommand.PRODUCER_SUCCESS, producer_success=told)

    def _store(self, command: BaseCommand, section: bytes) -> None:
        if not self._is_open:
            return
        broker = self._broker
        broker.sends += 1
        broker.hit(broker.faults.loses_send, broker.sends)
        if broker.sends in broker.faults.closes_producer:
            self._is_open = False
            self._say(BaseCommand.CLOSE_PRODUCER, close_producer=CommandCloseProducer(producer_id=1, request_id=9))
            return
        broker.stored.append(section)
        broker.hit(broker.faults.hides_receipt, broker.sends)
        if broker.sends in broker.faults.skips_receipt:
            return
        place = MessageIdData(ledger_id=LEDGER, entry_id=len(broker.stored) - 1)
        receipt = CommandSendReceipt(producer_id=1, sequence_id=command.send.sequence_id, message_id=place)
        self._say(BaseCommand.SEND_RECEIPT, send_receipt=receipt)

    def _subscribe(self, command: BaseCommand) -> None:
        asked = command.subscribe
        self._broker.subscribes += 1
        self._is_durable, self._is_open, self._permits, self._next = asked.durable, True, 0, 0
        if asked.HasField("start_message_id") and asked.start_message_id.ledger_id == LEDGER:
            self._next = asked.start_message_id.entry_id + 1
        self._say(BaseCommand.SUCCESS, success=CommandSuccess(request_id=asked.request_id))

    def _deliver(self) -> None:
        broker = self._broker
        while self._is_open and self._permits > 0 and self._next < len(broker.stored):
            number = self._next
            self._next += 1
            if self._is_durable and number in broker.acked:
                continue
            broker.deliveries += 1
            self._permits -= 1
            place = MessageIdData(ledger_id=LEDGER, entry_id=number)
            message = CommandMessage(consumer_id=1, message_id=place, redelivery_count=broker.redelivery_count)
            self._say(BaseCommand.MESSAGE, broker.stored[number], message=message)
            broker.hit(broker.faults.breaks_delivery, broker.deliveries)
            if broker.deliveries in broker.faults.closes_consumer:
                self._is_open = False
                self._say(BaseCommand.CLOSE_CONSUMER, close_consumer=CommandCloseConsumer(consumer_id=1, request_id=9))

    def _acknowledge(self, command: BaseCommand) -> None:
        broker = self._broker
        broker.acks += 1
        broker.hit(broker.faults.loses_ack, broker.acks)
        broker.acked |= {place.entry_id for place in command.ack.message_id}
        broker.hit(broker.faults.hides_ack, broker.acks)
        told = CommandAckResponse(consumer_id=1, request_id=command.ack.request_id)
        self._say(BaseCommand.ACK_RESPONSE, ack_response=told)
        broker.on_acked()
