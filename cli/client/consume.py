"""`pulsar-client consume` and `read`: messages as they come, printed in Apache's form, one JSON line each with --json.

Several partitions are taken one after the other's messages: one connection each, looked at in turn.
"""

import json
import selectors
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cli.admin.message_ids import position
from cli.admin.output import dump
from cli.client.connection import ClientError, PulsarConnection, Received
from cli.client.received import Message, Undecodable, messages_of
from cli.client.topic import connection_of, partitions_of
from cli.client_configuration import ClientConfiguration
from wire.errors import RemoteError
from wire.generated.pulsar_api_pb2 import BaseCommand, CommandAck, CommandFlow, CommandSeek, CommandSubscribe, MessageIdData

QUEUE_DEFAULT = 1000
CONSUMER_ID = 1
MASK = (1 << 64) - 1
TYPES = {"Exclusive": 0, "Shared": 1, "Failover": 2, "Key_Shared": 3}
POSITIONS = {"Latest": 0, "Earliest": 1}


def consume(configuration: ClientConfiguration, values: Mapping[str, Any], write: Callable[[str], None]) -> int:
    """How many came; all are acknowledged. ClientError."""
    about = CommandSubscribe(
        subscription=values["subscription-name"],
        sub_type=TYPES[values["subscription-type"]],  # type: ignore[arg-type]
        durable=values["subscription-mode"] == "Durable",
        initial_position=POSITIONS[values["subscription-position"]],  # type: ignore[arg-type]
        replicate_subscription_state=bool(values["replicated"]),
    )
    return _receive(configuration, values, about, write, acknowledge=True)


def read(configuration: ClientConfiguration, values: Mapping[str, Any], write: Callable[[str], None]) -> int:
    """From a message on, without a subscription that stays. How many came."""
    ledger, entry = position(values["start-message-id"])
    about = CommandSubscribe(subscription=f"reader-{time.time_ns():x}", sub_type=TYPES["Exclusive"], durable=False)  # type: ignore[arg-type]
    if values["start-message-id-inclusive"] and ledger >= 0:
        entry -= 1
    about.start_message_id.CopyFrom(MessageIdData(ledger_id=ledger & MASK, entry_id=entry & MASK))
    return _receive(configuration, values, about, write, acknowledge=False)


def _receive(
    configuration: ClientConfiguration,
    values: Mapping[str, Any],
    about: CommandSubscribe,
    write: Callable[[str], None],
    acknowledge: bool,
) -> int:
    wanted, count = values["num-messages"], 0
    queue = values["queue-size"] or QUEUE_DEFAULT
    consumers: list[_Consumer] = []
    try:
        for topic in partitions_of(values["topic"], configuration):
            connection = connection_of(topic, configuration)
            consumers.append(_Consumer(connection, topic, about, queue, values.get("start-timestamp", 0)))
        begun = time.monotonic()
        for consumer, received in _arrivals(consumers):
            messages = _decoded(received.section)
            for message in messages:
                if message.publish_time > values.get("end-timestamp", message.publish_time):
                    return count
                if not wanted or count < wanted:
                    write(_shown(message, values))
                    count += 1
                if values["rate"] > 0:
                    time.sleep(max(0.0, begun + count / values["rate"] - time.monotonic()))
            consumer.done(received, len(messages), acknowledge)
            if wanted and count >= wanted:
                return count
        return count
    finally:
        for consumer in consumers:
            consumer.connection.close()


def _decoded(section: bytes) -> list[Message]:
    try:
        return list(messages_of(section))
    except (RemoteError, Undecodable) as error:
        raise ClientError(f"a message that cannot be read: {error}") from None


class _Consumer:
    """Of one topic or partition; asks for half of its queue again when half has come. `from_ms`: a publish time, 0: none."""

    def __init__(self, connection: PulsarConnection, topic: str, about: CommandSubscribe, queue: int, from_ms: int = 0) -> None:
        self.connection = connection
        self._queue, self._taken = queue, 0
        try:
            self._subscribe(topic, about)
            if from_ms > 0:
                self._seek(from_ms)
                self._subscribe(topic, about)
            self._flow(queue)
        except BaseException:
            connection.close()
            raise

    def _subscribe(self, topic: str, about: CommandSubscribe) -> None:
        command = BaseCommand(type=BaseCommand.SUBSCRIBE, subscribe=about)
        command.subscribe.topic, command.subscribe.consumer_id = topic, CONSUMER_ID
        command.subscribe.request_id = self.connection.request_id()
        self.connection.ask(command, BaseCommand.SUCCESS)

    def _seek(self, publish_time_ms: int) -> None:
        """The broker sends the subscription's consumers away before it answers."""
        seek = CommandSeek(
            consumer_id=CONSUMER_ID, request_id=self.connection.request_id(), message_publish_time=publish_time_ms
        )
        self.connection.ask(BaseCommand(type=BaseCommand.SEEK, seek=seek), BaseCommand.SUCCESS)
        self.connection.waiting.clear()

    def _flow(self, permits: int) -> None:
        flow = CommandFlow(consumer_id=CONSUMER_ID, message_permits=permits)
        self.connection.send(BaseCommand(type=BaseCommand.FLOW, flow=flow))

    def done(self, received: Received, messages: int, acknowledge: bool) -> None:
        if acknowledge:
            ack = CommandAck(consumer_id=CONSUMER_ID, ack_type=CommandAck.Individual)
            place = received.command.message.message_id
            ack.message_id.add(ledger_id=place.ledger_id, entry_id=place.entry_id)
            ack.request_id = self.connection.request_id()
            self.connection.ask(BaseCommand(type=BaseCommand.ACK, ack=ack), BaseCommand.ACK_RESPONSE)
        self._taken += messages
        if self._taken * 2 >= self._queue:
            self._flow(self._taken)
            self._taken = 0


def _arrivals(consumers: list[_Consumer]) -> Iterator[tuple[_Consumer, Received]]:
    """Forever: whichever has a message. ClientError when one of them ends."""
    with selectors.DefaultSelector() as ready:
        for consumer in consumers:
            ready.register(consumer.connection, selectors.EVENT_READ, consumer)
        while True:
            waiting = [each for each in consumers if each.connection.has_more()]
            for consumer in waiting or [key.data for key, _ in ready.select()]:
                received = consumer.connection.next_waiting()
                if received.command.type == BaseCommand.MESSAGE:
                    yield consumer, received
                elif received.command.type == BaseCommand.CLOSE_CONSUMER:
                    raise ClientError("the broker closed the consumer; its topic moves or was deleted: try again")


def _shown(message: Message, values: Mapping[str, Any]) -> str:
    content = message.payload.decode(errors="replace")
    if values["json"]:
        return json.dumps({**message._asdict(), "payload": content}, ensure_ascii=False)
    if values["hex"]:
        content = dump(message.payload)
    if values["hide-content"]:
        return "----- got message -----"
    pairs = ", ".join(f"{key}={value}" for key, value in message.properties.items())
    key = "null" if message.key is None else message.key
    about = f"publishTime:[{message.publish_time}], eventTime:[{message.event_time}], key:[{key}], properties:[{pairs}]"
    return f"----- got message -----\n{about}, content:{content}"
