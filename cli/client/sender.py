"""A producer that outlives its connections: what has no receipt is kept, and sent again in its order on the next connection.

A message that was stored while its receipt was lost is stored twice then, unless the broker deduplicates; `resent` counts what
may be. Producer name and sequence ids stay the same, so that deduplication sees it.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from cli.client.connection import PulsarConnection
from cli.client.errors import ClientError, Lost, RefusedByBroker, is_passing
from cli.client.lasting import Lasting, Notices
from cli.client_configuration import ClientConfiguration
from wire.client_end import Received
from wire.generated.pulsar_api_pb2 import BaseCommand, CommandProducer, ProducerAccessMode, Schema, ServerError

PRODUCER_ID = 1
ACCESS_MODES = {
    "Shared": ProducerAccessMode.Shared,
    "Exclusive": ProducerAccessMode.Exclusive,
    "ExclusiveWithFencing": ProducerAccessMode.ExclusiveWithFencing,
    "WaitForExclusive": ProducerAccessMode.WaitForExclusive,
}

ABOUT_A_MESSAGE = frozenset({ServerError.ChecksumError, ServerError.NotAllowedError})
"""Refusals after which the next message may be taken."""


class Unanswered(NamedTuple):
    """A frame without a receipt yet. `at`: when it was sent for the first time; `frame` makes it, again if need be."""

    sequence: int
    messages: int
    size_bytes: int
    at: float
    frame: Callable[[], bytes]


class Role(NamedTuple):
    """The name, access mode and schema of a producer."""

    name: str = ""
    access_mode: str = "Shared"
    schema: Schema | None = None


class Sender(Lasting):
    """`send` puts on its way; `answered` yields what has its receipt. The caller bounds what is unanswered."""

    def __init__(self, topic: str, configuration: ClientConfiguration, notices: Notices, role: Role = Role()) -> None:  # noqa: B008
        super().__init__(topic, configuration, notices)
        self._role = role
        self.name = role.name
        self.schema_version = b""
        self.unanswered: deque[Unanswered] = deque()
        self.resent = 0
        self.message_bytes_max = 5 << 20
        self._epoch = 0
        self._topic_epoch: int | None = None

    def introduce(self, connection: PulsarConnection, *, again: bool) -> None:
        self._epoch += again
        command = CommandProducer(topic=self.topic, producer_id=PRODUCER_ID, request_id=connection.request_id())
        command.epoch, command.producer_access_mode = self._epoch, ACCESS_MODES[self._role.access_mode]
        if self.name:
            command.producer_name, command.user_provided_producer_name = self.name, bool(self._role.name)
        if self._topic_epoch is not None:
            command.topic_epoch = self._topic_epoch
        if self._role.schema is not None:
            command.schema.CopyFrom(self._role.schema)
        asked = BaseCommand(type=BaseCommand.PRODUCER, producer=command)
        success = connection.ask(asked, BaseCommand.PRODUCER_SUCCESS).producer_success
        while not success.producer_ready:  # another one has the topic: it comes again when that one is gone
            success = connection.answer(BaseCommand.PRODUCER_SUCCESS, timeout_seconds=None).producer_success
        self.name, self.schema_version = success.producer_name, success.schema_version
        if success.HasField("topic_epoch"):
            self._topic_epoch = success.topic_epoch
        self.message_bytes_max = connection.message_bytes_max
        for each in self.unanswered:
            connection.send_bytes(each.frame())
            self.resent += each.messages

    def send(self, sequence: int, messages: int, size_bytes: int, frame: Callable[[], bytes]) -> None:
        """Kept from here on until its receipt, whatever becomes of the connection."""
        self.unanswered.append(Unanswered(sequence, messages, size_bytes, time.monotonic(), frame))
        if self.connection is not None:
            try:
                self.connection.send_bytes(frame())
            except ClientError as error:
                self.lose(error)

    def answered(self) -> Iterator[Unanswered]:
        """Yield the messages that have their receipt, of the answers that are there. ClientError that will not pass."""
        try:
            for received in self.connection.arrived() if self.connection is not None else ():
                done = self._taken(received)
                if done is not None:
                    yield done
        except ClientError as error:
            self.lose(error)

    def forget_oldest(self, error: ClientError) -> bool:
        """Gives up the oldest message without a receipt. False where the error is about the producer, not about a message."""
        if not self.unanswered or (isinstance(error, RefusedByBroker) and error.code not in ABOUT_A_MESSAGE):
            return False
        self.unanswered.popleft()
        return True

    def _taken(self, received: Received) -> Unanswered | None:
        command = received.command
        match command.type:
            case BaseCommand.SEND_RECEIPT:
                return self._receipt(command.send_receipt.sequence_id)
            case BaseCommand.SEND_ERROR:
                raise self._refused(command)
            case BaseCommand.CLOSE_PRODUCER:
                raise Lost("the broker closed the producer: its topic moves, or was unloaded")
            case BaseCommand.ERROR:
                raise RefusedByBroker(f"{self.topic}: {command.error.message}", command.error.error)
        return None

    def _receipt(self, sequence: int) -> Unanswered | None:
        """Receipts come in the order of what was sent; one of before a new connection may come late."""
        if not self.unanswered or sequence < self.unanswered[0].sequence:
            return None
        if sequence > self.unanswered[0].sequence:
            raise Lost(f"a receipt for message {sequence}, where {self.unanswered[0].sequence} is the next: receipts were lost")
        return self.unanswered.popleft()

    def _refused(self, command: BaseCommand) -> ClientError:
        about = command.send_error
        told = f"{self.topic}: message {about.sequence_id} is refused: {about.message or ServerError.Name(about.error)}"
        error = RefusedByBroker(told, about.error)
        return Lost(told) if is_passing(error, was_there=True) else error
