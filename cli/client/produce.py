"""`pulsar-client produce`: each message is sent and its receipt awaited in order, some in flight at a time.

A connection that breaks is made again, and what has no receipt is sent again (`cli.client.sender`); a message without a receipt
after 30 seconds, Apache's sendTimeout, ends it.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cli.admin.arguments import WrongUsage
from cli.client.consume import Tally
from cli.client.errors import ClientError
from cli.client.lasting import LOOK_SECONDS, Notices, attend
from cli.client.schemas import ValueSchema, value_schema
from cli.client.sender import PRODUCER_ID, Role, Sender
from cli.client.topic import partitions_of
from cli.client_configuration import ClientConfiguration
from wire.frames import encode
from wire.generated.pulsar_api_pb2 import BaseCommand, CommandSend, KeyValue, MessageMetadata
from wire.payloads import payload_section

IN_FLIGHT_MAX = 500
SEND_SECONDS_MAX = 30.0
NO_CLUSTER = "__local__"
"""The replication target that names no cluster (ProducerImpl)."""


def produce(
    configuration: ClientConfiguration, values: Mapping[str, Any], _: Callable[[str], None], notices: Notices, tally: Tally
) -> None:
    """ClientError, WrongUsage, OSError for a file."""
    if values["num-produce"] <= 0:
        raise WrongUsage("Number of times need to be positive number.")
    schema = value_schema(values["value-schema"])
    payloads = list(_payloads(values, schema))
    if not payloads:
        raise WrongUsage("Please supply message content with either --messages or --files")
    properties = list(_properties(values.get("properties") or ()))
    topics = partitions_of(values["topic"], configuration)
    sender = Sender(topics[_index(values.get("key"), len(topics))], configuration, notices, Role(schema=schema.schema))
    sender.open()
    try:
        _Run(sender, values, properties, tally).run(payloads)
    finally:
        sender.close()


class _Run:
    """The messages of one call."""

    def __init__(self, sender: Sender, values: Mapping[str, Any], properties: list[KeyValue], tally: Tally) -> None:
        self._sender, self._values, self._properties, self._tally = sender, values, properties, tally

    def run(self, payloads: list[bytes]) -> None:
        begun, count, rate = time.monotonic(), 0, self._values["rate"]
        for _ in range(self._values["num-produce"]):
            for payload in payloads:
                if rate > 0:
                    self._take_receipts_until(begun + count / rate)
                self._send(count, payload)
                count += 1
                while len(self._sender.unanswered) >= IN_FLIGHT_MAX:
                    self._take_receipts(LOOK_SECONDS)
        while self._sender.unanswered:
            self._take_receipts(LOOK_SECONDS)

    def _send(self, sequence: int, payload: bytes) -> None:
        if len(payload) > self._sender.message_bytes_max:
            allowed = self._sender.message_bytes_max
            raise ClientError(
                f"a message of {len(payload)} bytes, more than the {allowed} that the broker allows (maxMessageSize)"
            )
        section = payload_section(self._metadata(sequence, payload), payload)
        command = BaseCommand(type=BaseCommand.SEND, send=CommandSend(producer_id=PRODUCER_ID, sequence_id=sequence))
        frame = encode(command, section)
        self._sender.send(sequence, 1, len(payload), lambda: frame)

    def _metadata(self, sequence: int, payload: bytes) -> MessageMetadata:
        metadata = MessageMetadata(
            producer_name=self._sender.name, sequence_id=sequence, publish_time=time.time_ns() // 1_000_000
        )
        metadata.properties.extend(self._properties)
        metadata.uncompressed_size = len(payload)
        if self._sender.schema_version:
            metadata.schema_version = self._sender.schema_version
        if self._values.get("key") is not None:
            metadata.partition_key = self._values["key"]
        if self._values.get("disable-replication"):
            metadata.replicate_to.append(NO_CLUSTER)
        return metadata

    def _take_receipts_until(self, moment: float) -> None:
        while (seconds := moment - time.monotonic()) > 0:
            self._take_receipts(seconds)

    def _take_receipts(self, seconds: float) -> None:
        attend([self._sender], seconds)
        for each in self._sender.answered():
            self._tally.count += each.messages
        self._tally.resent = self._sender.resent
        waiting = self._sender.unanswered
        if waiting and time.monotonic() - waiting[0].at > SEND_SECONDS_MAX:
            reason = f": {self._sender.reason}" if self._sender.connection is None else ""
            raise ClientError(
                f"{self._sender.topic}: message {waiting[0].sequence + 1} has no receipt after {SEND_SECONDS_MAX:g} s{reason}; "
                f"it and {len(waiting) - 1} after it may be stored, or not"
            )


def _index(key: str | None, partitions: int) -> int:
    """A key has its partition, by Java's hash of a string as in Apache's clients; without one it is any of them."""
    if key is None:
        return time.monotonic_ns() % partitions
    value = 0
    for letter in key:
        value = (31 * value + ord(letter)) & 0xFFFFFFFF
    return (value & 0x7FFFFFFF) % partitions


def _payloads(values: Mapping[str, Any], schema: ValueSchema) -> Iterator[bytes]:
    """A definition in JSON has commas: where a schema is given, each -m is one message."""
    separator = values["separator"] if schema.schema is None or values["value-schema"] == "string" else ""
    for text in values.get("messages") or ():
        yield from map(schema.of_text, text.split(separator) if separator else [text])
    for name in values.get("files") or ():
        for each in name.split(","):
            yield schema.of_file(Path(each).read_bytes())


def _properties(texts: Sequence[str]) -> Iterator[KeyValue]:
    """The properties of texts like k1=v1,k2=v2; the value of a single one may have commas. WrongUsage."""
    for text in texts:
        parts = text.split(",")
        for part in parts if all("=" in each for each in parts) else [text]:
            key, equals, value = part.partition("=")
            if not equals:
                raise WrongUsage(f"--properties {text}: expected KEY=VALUE, or several with commas between them")
            yield KeyValue(key=key, value=value)
