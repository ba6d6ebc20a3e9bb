"""`pulsar-client produce`: each message is sent and its receipt awaited in order, some in flight at a time."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cli.admin.arguments import WrongUsage
from cli.client.connection import ClientError, PulsarConnection
from cli.client.topic import connection_of, partitions_of
from cli.client_configuration import ClientConfiguration
from wire.frames import encode
from wire.generated.pulsar_api_pb2 import BaseCommand, CommandProducer, CommandSend, KeyValue, MessageMetadata
from wire.payloads import payload_section

IN_FLIGHT_MAX = 500
NO_CLUSTER = "__local__"
"""The replication target that names no cluster (ProducerImpl)."""


def produce(configuration: ClientConfiguration, values: Mapping[str, Any]) -> int:
    """How many were sent; ClientError, WrongUsage, OSError for a file."""
    payloads = list(_payloads(values))
    if not payloads:
        raise WrongUsage("Please supply message content with either --messages or --files")
    properties = [KeyValue(key=key, value=value) for key, _, value in map(_pair, values.get("properties") or ())]
    topics = partitions_of(values["topic"], configuration)
    topic = topics[_index(values.get("key"), len(topics))]
    connection = connection_of(topic, configuration)
    try:
        producer = Producer(connection, topic)
        count = 0
        for _ in range(values["num-produce"]):
            for payload in payloads:
                _pace(producer.begun, count, values["rate"])
                producer.send(payload, properties, values.get("key"), bool(values.get("disable-replication")))
                count += 1
        producer.finish()
        return count
    finally:
        connection.close()


def _index(key: str | None, partitions: int) -> int:
    """A key has its partition, by Java's hash of a string as in Apache's clients; without one it is any of them."""
    if key is None:
        return time.monotonic_ns() % partitions
    value = 0
    for letter in key:
        value = (31 * value + ord(letter)) & 0xFFFFFFFF
    return (value & 0x7FFFFFFF) % partitions


def _payloads(values: Mapping[str, Any]) -> Iterator[bytes]:
    for text in values.get("messages") or ():
        separator = values["separator"]
        yield from (part.encode() for part in (text.split(separator) if separator else [text]))
    for name in values.get("files") or ():
        for each in name.split(","):
            yield Path(each).read_bytes()


def _pair(text: str) -> tuple[str, str, str]:
    found = text.partition("=")
    if not found[1]:
        raise WrongUsage(f"--properties {text}: expected KEY=VALUE")
    return found


def _pace(begun: float, count: int, rate: float) -> None:
    if rate > 0:
        time.sleep(max(0.0, begun + count / rate - time.monotonic()))


class Producer:
    """On one connection. `send` waits when too many receipts are outstanding; receipts come in order."""

    def __init__(self, connection: PulsarConnection, topic: str) -> None:
        self._connection = connection
        self._sent = self._received = 0
        self.begun = time.monotonic()
        command = BaseCommand(type=BaseCommand.PRODUCER)
        command.producer.CopyFrom(CommandProducer(topic=topic, producer_id=1, request_id=connection.request_id()))
        self.name = connection.ask(command, BaseCommand.PRODUCER_SUCCESS).producer_success.producer_name

    def send(self, payload: bytes, properties: list[KeyValue], key: str | None, local: bool) -> None:
        if len(payload) > self._connection.message_bytes_max:
            raise ClientError(f"a message of {len(payload)} bytes, more than the {self._connection.message_bytes_max} allowed")
        metadata = MessageMetadata(producer_name=self.name, sequence_id=self._sent, publish_time=time.time_ns() // 1_000_000)
        metadata.properties.extend(properties)
        metadata.uncompressed_size = len(payload)
        if key is not None:
            metadata.partition_key = key
        if local:
            metadata.replicate_to.append(NO_CLUSTER)
        command = BaseCommand(type=BaseCommand.SEND, send=CommandSend(producer_id=1, sequence_id=self._sent))
        self._connection.send_bytes(encode(command, payload_section(metadata, payload)))
        self._sent += 1
        while self._sent - self._received >= IN_FLIGHT_MAX:
            self._take_receipt()

    def finish(self) -> None:
        while self._received < self._sent:
            self._take_receipt()

    def _take_receipt(self) -> None:
        command = self._connection.next().command
        match command.type:
            case BaseCommand.SEND_RECEIPT:
                self._received += 1
            case BaseCommand.SEND_ERROR:
                raise ClientError(f"message {command.send_error.sequence_id} is refused: {command.send_error.message}")
            case BaseCommand.CLOSE_PRODUCER:
                raise ClientError("the broker closed the producer; its topic moves or was deleted: try again")
            case BaseCommand.ERROR:
                raise ClientError(command.error.message)
