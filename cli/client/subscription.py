"""A consumer that outlives its connections: it subscribes again, gives its permits again, acknowledges again what needs it.

No message is told twice because a connection broke: what was told while its acknowledgement was not confirmed is kept, and
passed over when it comes again. A reader goes on behind what it told last.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from cli.client.connection import PulsarConnection
from cli.client.errors import ClientError, Lost, RefusedByBroker
from cli.client.lasting import Lasting, Notices
from cli.client_configuration import ClientConfiguration
from wire.client_end import Received
from wire.errors import RemoteError
from wire.generated.pulsar_api_pb2 import (
    BaseCommand,
    CommandAck,
    CommandFlow,
    CommandMessage,
    CommandSeek,
    CommandSubscribe,
    MessageIdData,
)
from wire.payloads import message_metadata, split_section

CONSUMER_ID = 1
MASK = (1 << 64) - 1
ACKS_MAX = 1000
"""Entries in one command of acknowledgements."""
GROUPS_MAX = 100
"""Commands of acknowledgements without an answer; beyond it no more permits are given."""
LATEST = (1 << 63) - 1
Place = tuple[int, int]
"""Ledger and entry."""


class Arrival(NamedTuple):
    """An entry as it came."""

    about: CommandMessage
    section: bytes

    @property
    def place(self) -> Place:
        return self.about.message_id.ledger_id, self.about.message_id.entry_id


@dataclass(frozen=True, slots=True)
class Reading:
    """Manner of reading a subscription. `acknowledges`: else it only reads.

    queue: permits. from_ms: begin at a publish time, 0: where the subscription is. includes_start: a reader that begins at the
    latest message is given that too.
    """

    queue: int
    acknowledges: bool
    from_ms: int = 0
    ack_delay_seconds: float = 0.0
    includes_start: bool = False


class Subscription(Lasting):
    """`arrivals` yields what came; each is `done` when its messages are told."""

    def __init__(
        self,
        topic: str,
        about: CommandSubscribe,
        reading: Reading,
        configuration: ClientConfiguration,
        notices: Notices,
    ) -> None:
        super().__init__(topic, configuration, notices)
        self._about = CommandSubscribe()
        self._about.CopyFrom(about)
        self._about.topic, self._about.consumer_id = topic, CONSUMER_ID
        self._reading, self._taken = reading, 0
        self._unsent: list[Place] = []
        self._unsent_since = 0.0
        self._unconfirmed: dict[Place, None] = {}
        self._groups: dict[int, list[Place]] = {}
        self.repeated = 0
        """Entries that came again after they were told, and were passed over."""

    @property
    def is_confirmed(self) -> bool:
        """Every acknowledgement is stored."""
        return not self._unconfirmed

    def introduce(self, connection: PulsarConnection, *, again: bool) -> None:
        self._subscribe(connection)
        if not again and self._reading.from_ms > 0:
            self._seek(connection)
            self._subscribe(connection)
        elif not again and self._begins_at_latest:
            self._hold_place(connection)
        self._taken = 0
        self._groups.clear()
        self._unsent = list(self._unconfirmed)
        self._send_acks(connection, everything=True)
        self._flow(connection, self._reading.queue)

    def _subscribe(self, connection: PulsarConnection) -> None:
        self._about.request_id = connection.request_id()
        connection.ask(BaseCommand(type=BaseCommand.SUBSCRIBE, subscribe=self._about), BaseCommand.SUCCESS)

    def _seek(self, connection: PulsarConnection) -> None:
        """The broker sends the subscription's consumers away before it answers."""
        seek = CommandSeek(
            consumer_id=CONSUMER_ID, request_id=connection.request_id(), message_publish_time=self._reading.from_ms
        )
        connection.ask(BaseCommand(type=BaseCommand.SEEK, seek=seek), BaseCommand.SUCCESS)
        connection.waiting.clear()

    @property
    def _begins_at_latest(self) -> bool:
        return not self._about.durable and self._about.start_message_id.ledger_id == LATEST

    def _hold_place(self, connection: PulsarConnection) -> None:
        """The end as it is now has its number: what is published while there is no connection is read afterwards."""
        asked = BaseCommand(type=BaseCommand.GET_LAST_MESSAGE_ID)
        asked.get_last_message_id.consumer_id, asked.get_last_message_id.request_id = CONSUMER_ID, connection.request_id()
        answer = connection.ask(asked, BaseCommand.GET_LAST_MESSAGE_ID_RESPONSE).get_last_message_id_response
        close = BaseCommand(type=BaseCommand.CLOSE_CONSUMER)
        close.close_consumer.consumer_id, close.close_consumer.request_id = CONSUMER_ID, connection.request_id()
        connection.ask(close, BaseCommand.SUCCESS)
        connection.waiting.clear()
        last, start = answer.last_message_id, self._about.start_message_id
        start.ledger_id, start.entry_id = last.ledger_id, (last.entry_id - self._reading.includes_start) & MASK
        self._subscribe(connection)

    def arrivals(self) -> Iterator[Arrival]:
        """Yield the entries that are there, without waiting; due acknowledgements go out. ClientError that will not pass."""
        try:
            for received in self.connection.arrived() if self.connection is not None else ():
                arrival = self._arrival(received)
                if arrival is not None:
                    yield arrival
            self._go_on()
        except ClientError as error:
            self.lose(error)

    def _go_on(self) -> None:
        """Acknowledgements that are due go out, and the permits of what was taken are given again."""
        if self.connection is not None:
            self._send_acks(self.connection, everything=False)
            if self._taken * 2 >= self._reading.queue and len(self._groups) < GROUPS_MAX:
                self._flow(self.connection, self._taken)
                self._taken = 0

    def _arrival(self, received: Received) -> Arrival | None:
        command = received.command
        match command.type:
            case BaseCommand.MESSAGE:
                arrival = Arrival(command.message, received.section)
                if arrival.place not in self._unconfirmed:
                    return arrival
                self.repeated += 1
                self._taken += _permits(received.section)
            case BaseCommand.ACK_RESPONSE:
                self._confirm(command)
            case BaseCommand.CLOSE_CONSUMER:
                raise Lost("the broker closed the consumer: its topic moves, or was unloaded")
            case BaseCommand.ERROR:
                raise RefusedByBroker(f"{self.topic}: {command.error.message}", command.error.error)
        return None

    def done(self, arrival: Arrival, messages: int, *, whole: bool = True) -> None:
        """The messages of an entry are told: `messages` is how many permits it took. One of which only a part was told is
        not acknowledged, as with Apache's client: it comes again to the next consumer.
        """
        self._taken += messages
        if not self._reading.acknowledges or not self._about.durable:
            self._about.start_message_id.ledger_id, self._about.start_message_id.entry_id = arrival.place
        if self._reading.acknowledges and whole:
            if not self._unsent:
                self._unsent_since = time.monotonic()
            self._unsent.append(arrival.place)
            self._unconfirmed[arrival.place] = None
        try:
            self._go_on()
        except ClientError as error:
            self.lose(error)

    def flush(self) -> None:
        """Acknowledgements that wait for company go out now."""
        if self.connection is not None:
            try:
                self._send_acks(self.connection, everything=True)
            except ClientError as error:
                self.lose(error)

    def _send_acks(self, connection: PulsarConnection, *, everything: bool) -> None:
        is_due = time.monotonic() - self._unsent_since >= self._reading.ack_delay_seconds or len(self._unsent) >= ACKS_MAX
        if not self._unsent or not (everything or is_due):
            return
        for start in range(0, len(self._unsent), ACKS_MAX):
            places = self._unsent[start : start + ACKS_MAX]
            ack = CommandAck(consumer_id=CONSUMER_ID, ack_type=CommandAck.Individual, request_id=connection.request_id())
            ack.message_id.extend(MessageIdData(ledger_id=ledger, entry_id=entry) for ledger, entry in places)
            self._groups[ack.request_id] = places
            connection.send(BaseCommand(type=BaseCommand.ACK, ack=ack))
        self._unsent = []

    def _confirm(self, command: BaseCommand) -> None:
        answer = command.ack_response
        if answer.HasField("error"):
            raise RefusedByBroker(f"{self.topic}: acknowledging is refused: {answer.message}", answer.error)
        for place in self._groups.pop(answer.request_id, ()):
            self._unconfirmed.pop(place, None)

    def _flow(self, connection: PulsarConnection, permits: int) -> None:
        flow = CommandFlow(consumer_id=CONSUMER_ID, message_permits=permits)
        connection.send(BaseCommand(type=BaseCommand.FLOW, flow=flow))


def _permits(section: bytes) -> int:
    """The number of messages that the broker counts in an entry."""
    try:
        metadata = message_metadata(split_section(section))
    except RemoteError:  # it was told before, so that it could be read then
        return 1
    return metadata.num_messages_in_batch if metadata.HasField("num_messages_in_batch") else 1
