"""`pulsar-perf consume` and `read`: entries counted by what their metadata say, payloads never looked at."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from cli.admin.message_ids import position
from cli.client.connection import ClientError, PulsarConnection
from cli.client.consume import MASK, POSITIONS, TYPES
from cli.client.topic import connection_of, partitions_of
from cli.client_configuration import ClientConfiguration
from cli.perf.progress import Progress
from wire.generated.pulsar_api_pb2 import BaseCommand, CommandAck, CommandFlow, CommandSubscribe, MessageIdData
from wire.payloads import message_metadata, split_section

WAIT_SECONDS = 1.0


def consume(configuration: ClientConfiguration, values: Mapping[str, Any], write: Callable[[str], None]) -> None:
    about = CommandSubscribe(
        subscription=(values["subscriptions"] or ["sub"])[0],
        sub_type=TYPES[values["subscription-type"]],  # type: ignore[arg-type]
        initial_position=POSITIONS[values["subscription-position"]],  # type: ignore[arg-type]
    )
    _receive(configuration, values, about, write, acknowledge=True)


def read(configuration: ClientConfiguration, values: Mapping[str, Any], write: Callable[[str], None]) -> None:
    ledger, entry = position(values["start-message-id"])
    about = CommandSubscribe(subscription=f"perf-reader-{time.time_ns():x}", durable=False, sub_type=CommandSubscribe.Exclusive)
    about.start_message_id.CopyFrom(MessageIdData(ledger_id=ledger & MASK, entry_id=entry & MASK))
    _receive(configuration, values, about, write, acknowledge=False)


def _receive(
    configuration: ClientConfiguration,
    values: Mapping[str, Any],
    about: CommandSubscribe,
    write: Callable[[str], None],
    acknowledge: bool,
) -> None:
    """Until as many have come as asked for, or the time is over. ClientError."""
    topic = partitions_of(values["topic"], configuration)[0]
    connection = connection_of(topic, configuration)
    try:
        command = BaseCommand(type=BaseCommand.SUBSCRIBE, subscribe=about)
        command.subscribe.topic, command.subscribe.consumer_id = topic, 1
        command.subscribe.request_id = connection.request_id()
        connection.ask(command, BaseCommand.SUCCESS)
        progress = Progress("received", write, values["json"], values["stats-interval-seconds"])
        _count(connection, values, progress, acknowledge)
        progress.finish()
    finally:
        connection.close()


def _count(connection: PulsarConnection, values: Mapping[str, Any], progress: Progress, acknowledge: bool) -> None:
    queue, limit, seconds = values["receiver-queue-size"], values["num-messages"], values["test-duration"]
    _flow(connection, queue)
    taken = 0
    while not (limit and progress.total >= limit) and not (seconds and time.monotonic() - progress.begun >= seconds):
        progress.tick()
        if not connection.has_more() and not connection.readable(WAIT_SECONDS):
            continue
        received = connection.next_waiting()
        if received.command.type == BaseCommand.CLOSE_CONSUMER:
            raise ClientError("the broker closed the consumer; its topic moves or was deleted: try again")
        if received.command.type != BaseCommand.MESSAGE:
            continue
        split = split_section(received.section)
        metadata = message_metadata(split)
        messages = metadata.num_messages_in_batch if metadata.HasField("num_messages_in_batch") else 1
        progress.add(messages, len(split.payload), max(0.0, time.time() * 1000 - metadata.publish_time))
        taken += messages
        if acknowledge:
            place = received.command.message.message_id
            ack = CommandAck(consumer_id=1, ack_type=CommandAck.Individual)
            ack.message_id.add(ledger_id=place.ledger_id, entry_id=place.entry_id)
            connection.send(BaseCommand(type=BaseCommand.ACK, ack=ack))
        if taken * 2 >= queue:
            _flow(connection, taken)
            taken = 0


def _flow(connection: PulsarConnection, permits: int) -> None:
    connection.send(BaseCommand(type=BaseCommand.FLOW, flow=CommandFlow(consumer_id=1, message_permits=permits)))
