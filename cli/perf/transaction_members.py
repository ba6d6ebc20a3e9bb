"""Producers and consumers of the transactions of `pulsar-perf transaction`, each on a connection of its own.

Without a transaction (`None`) they do the same in the plain way. Blocking; owns the connections. A connection that breaks is
`Lost`: the transaction cannot be completed then, and both are made anew for the next one.
"""

import time
from collections import deque
from collections.abc import Callable

from cli.client.errors import Lost, RefusedByBroker
from cli.client.lasting import Notices
from cli.client.sender import PRODUCER_ID, Sender
from cli.client.subscription import CONSUMER_ID, MASK
from cli.client.topic import connection_of
from cli.client_configuration import ClientConfiguration
from wire.frames import encode
from wire.generated.pulsar_api_pb2 import (
    BaseCommand,
    CommandAck,
    CommandFlow,
    CommandSend,
    CommandSubscribe,
    MessageIdData,
    MessageMetadata,
)
from wire.payloads import message_metadata, payload_section, split_section
from wire.transactions import TxnId

PAYLOAD = bytes(1024)
WAIT_SECONDS = 0.5
OnDone = Callable[[float], None]
"""Called with milliseconds."""


class SendingMember:
    """The producer of one topic."""

    def __init__(self, topic: str, configuration: ClientConfiguration) -> None:
        self.topic = topic
        self._connection = connection_of(topic, configuration)
        self._sequence = 0
        try:
            producer = Sender(topic, configuration, Notices(lambda _: None))
            producer.introduce(self._connection, again=False)
            self._name = producer.name
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._connection.close()

    def send(self, txn: TxnId | None, messages: int, on_done: OnDone) -> None:
        """All of them at once; returns when all are acknowledged."""
        sent = deque(self._send(txn) for _ in range(messages))
        while sent:
            command = self._connection.next().command
            if command.type == BaseCommand.SEND_RECEIPT:
                on_done((time.monotonic() - sent.popleft()) * 1000)
            elif command.type == BaseCommand.CLOSE_PRODUCER:
                raise Lost(f"{self.topic}: the broker closed the producer: its topic moves, or was unloaded")
            elif command.type in (BaseCommand.SEND_ERROR, BaseCommand.ERROR):
                about = command.send_error if command.type == BaseCommand.SEND_ERROR else command.error
                raise RefusedByBroker(f"{self.topic}: {BaseCommand.Type.Name(command.type)} {about.message}", about.error)

    def _send(self, txn: TxnId | None) -> float:
        metadata = MessageMetadata(
            producer_name=self._name, sequence_id=self._sequence, publish_time=time.time_ns() // 1_000_000
        )
        command = BaseCommand(type=BaseCommand.SEND, send=CommandSend(producer_id=PRODUCER_ID, sequence_id=self._sequence))
        if txn is not None:
            metadata.txnid_most_bits, metadata.txnid_least_bits = txn
            command.send.txnid_most_bits, command.send.txnid_least_bits = txn
        self._connection.send_bytes(encode(command, payload_section(metadata, PAYLOAD)))
        self._sequence += 1
        return time.monotonic()


class TakingMember:
    """The consumer of one subscription on one topic."""

    def __init__(self, about: CommandSubscribe, topic: str, queue: int, configuration: ClientConfiguration) -> None:
        self.place = (topic, about.subscription)
        self._queue, self._taken = queue, 0
        self._connection = connection_of(topic, configuration)
        command = BaseCommand(type=BaseCommand.SUBSCRIBE, subscribe=about)
        command.subscribe.topic, command.subscribe.consumer_id = topic, CONSUMER_ID
        command.subscribe.request_id = self._connection.request_id()
        try:
            self._connection.ask(command, BaseCommand.SUCCESS)
            self._flow(queue)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._connection.close()

    def wait(self, is_over: Callable[[], bool]) -> bool:
        """Tell whether something has come, before it is over."""
        while not self._connection.has_more():
            if is_over():
                return False
            if self._connection.readable(WAIT_SECONDS):
                self._connection.waiting.append(self._connection.next())
        return True

    def take(self, txn: TxnId | None, messages: int, is_over: Callable[[], bool], on_done: OnDone) -> int:
        """Receives so many, or fewer when it is over before, and acknowledges each entry. How many it were."""
        count = 0
        while count < messages and self.wait(is_over):
            received = self._connection.next_waiting()
            if received.command.type == BaseCommand.CLOSE_CONSUMER:
                raise Lost(f"{self.place[0]}: the broker closed the consumer: its topic moves, or was unloaded")
            if received.command.type != BaseCommand.MESSAGE:
                continue
            metadata = message_metadata(split_section(received.section))
            count += metadata.num_messages_in_batch if metadata.HasField("num_messages_in_batch") else 1
            self._acknowledge(txn, received.command.message.message_id, on_done)
        self._taken += count
        if self._taken * 2 >= self._queue:
            self._flow(self._taken)
            self._taken = 0
        return count

    def _acknowledge(self, txn: TxnId | None, place: MessageIdData, on_done: OnDone) -> None:
        began = time.monotonic()
        ack = CommandAck(consumer_id=CONSUMER_ID, ack_type=CommandAck.Individual, request_id=self._connection.request_id())
        ack.message_id.add(ledger_id=place.ledger_id & MASK, entry_id=place.entry_id & MASK)
        if txn is not None:
            ack.txnid_most_bits, ack.txnid_least_bits = txn
        answer = self._connection.ask(BaseCommand(type=BaseCommand.ACK, ack=ack), BaseCommand.ACK_RESPONSE).ack_response
        if answer.HasField("error"):
            raise RefusedByBroker(f"{self.place[0]}: acknowledging is refused: {answer.message}", answer.error)
        on_done((time.monotonic() - began) * 1000)

    def _flow(self, permits: int) -> None:
        flow = CommandFlow(consumer_id=CONSUMER_ID, message_permits=permits)
        self._connection.send(BaseCommand(type=BaseCommand.FLOW, flow=flow))
