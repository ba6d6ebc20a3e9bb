"""`pulsar-client consume` and `read`: messages as they come, printed in Apache's form, one JSON line each with --json.

Several partitions or topics are taken one after the other's messages: one connection each, looked at in turn. Connections that
break are made again (`cli.client.lasting`); it ends with the number of messages, when its time is over, or with Ctrl-C.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from cli.admin.arguments import WrongUsage
from cli.admin.commands.message_ids import position
from cli.client.errors import ClientError
from cli.client.lasting import LOOK_SECONDS, Notices, attend
from cli.client.pattern import TopicPattern
from cli.client.schemas import TopicSchemas, read_value
from cli.client.shown import Origin, as_json, as_text, content_of, value_text
from cli.client.subscription import MASK, Arrival, Reading, Subscription
from cli.client.topic import PARTITION, partitions_of
from cli.client_configuration import ClientConfiguration
from wire.errors import RemoteError
from wire.generated.pulsar_api_pb2 import CommandSubscribe
from wire.received import Message, Undecodable, decoded

QUEUE_DEFAULT = 1000
CONFIRM_SECONDS_MAX = 30.0
TELL_EVERY = 1000
"""With --hide-content a line is printed for so many messages."""
TYPES = {"Exclusive": 0, "Shared": 1, "Failover": 2, "Key_Shared": 3}
POSITIONS = {"Latest": 0, "Earliest": 1}
Write = Callable[[str], None]


class Tally:
    """The number of messages that came, or were acknowledged; told when it is interrupted too. `resent` may be stored twice."""

    def __init__(self) -> None:
        self.count = 0
        self.resent = 0


def consume(
    configuration: ClientConfiguration, values: Mapping[str, Any], write: Write, notices: Notices, tally: Tally
) -> None:
    """All that is told whole is acknowledged. ClientError."""
    about = CommandSubscribe(
        subscription=values["subscription-name"],
        sub_type=TYPES[values["subscription-type"]],  # type: ignore[arg-type]
        durable=values["subscription-mode"] == "Durable",
        initial_position=POSITIONS[values["subscription-position"]],  # type: ignore[arg-type]
        replicate_subscription_state=bool(values["replicated"]),
    )
    _Run(configuration, values, about, write, notices, tally, acknowledges=True).run()


def read(configuration: ClientConfiguration, values: Mapping[str, Any], write: Write, notices: Notices, tally: Tally) -> None:
    """Reads from a message on, without a subscription that stays."""
    ledger, entry = position(values["start-message-id"])
    about = reader(ledger, entry, values["start-message-id-inclusive"])
    _Run(configuration, values, about, write, notices, tally, acknowledges=False).run()


def reader(ledger: int, entry: int, is_inclusive: bool) -> CommandSubscribe:
    """A subscription that does not stay, behind this entry, or at it."""
    about = CommandSubscribe(subscription=f"reader-{time.time_ns():x}", sub_type=CommandSubscribe.Exclusive, durable=False)
    if is_inclusive and ledger >= 0 and entry != (1 << 63) - 1:
        entry -= 1
    about.start_message_id.ledger_id, about.start_message_id.entry_id = ledger & MASK, entry & MASK
    return about


class _Arrived(NamedTuple):
    """An entry, and whose it is."""

    by: Subscription
    arrival: Arrival


class _Run:
    """The subscriptions of one call, and what is done with each entry."""

    def __init__(
        self,
        configuration: ClientConfiguration,
        values: Mapping[str, Any],
        about: CommandSubscribe,
        write: Write,
        notices: Notices,
        tally: Tally,
        *,
        acknowledges: bool,
    ) -> None:
        self._configuration, self._values, self._about = configuration, values, about
        self._write, self._notices, self._tally = write, notices, tally
        self._acknowledges = acknowledges
        self._wanted, self._rate = values["num-messages"], values["rate"]
        if self._wanted < 0:
            raise WrongUsage("Number of messages should be zero or positive.")
        self._schemas = TopicSchemas(configuration) if values["schema-type"] == "auto_consume" else None
        self._pattern = TopicPattern(values["topic"], configuration) if values.get("regex") else None
        self._members: dict[str, Subscription] = {}
        self._begun = time.monotonic()

    def run(self) -> None:
        try:
            self._subscribe(self._topics())
            self._begun = time.monotonic()
            for arrived in self._arrived():
                if not self._take(arrived):
                    break
            self._confirm()
        finally:
            for member in self._members.values():
                member.close()

    def _topics(self) -> Sequence[str]:
        return self._pattern.topics() if self._pattern else partitions_of(self._values["topic"], self._configuration)

    def _subscribe(self, topics: Sequence[str]) -> None:
        for topic in topics:
            if topic not in self._members:
                reading = Reading(
                    self._values["queue-size"] or QUEUE_DEFAULT,
                    self._acknowledges,
                    from_ms=max(0, self._values.get("start-timestamp", 0)),
                    includes_start=bool(self._values.get("start-message-id-inclusive")),
                )
                member = Subscription(topic, self._about, reading, self._configuration, self._notices)
                member.open()
                self._members[topic] = member

    def _arrived(self) -> Iterator[_Arrived]:
        """Without end. ClientError that will not pass."""
        while True:
            if self._pattern is not None and self._pattern.is_due():
                self._follow(self._pattern)
            members = list(self._members.values())
            if members:
                attend(members, LOOK_SECONDS)
            else:
                time.sleep(LOOK_SECONDS)
            for member in members:
                for arrival in member.arrivals():
                    yield _Arrived(member, arrival)

    def _follow(self, pattern: TopicPattern) -> None:
        """New topics that fit are taken in, those that are gone are left."""
        found = pattern.topics_now()
        if found is None:
            return
        for topic in self._members.keys() - set(found):
            self._members.pop(topic).close()
        self._subscribe(found)

    def _take(self, arrived: _Arrived) -> bool:
        """Tells the messages of an entry; False when that was the last."""
        arrival = arrived.arrival
        found = _decoded(arrival, arrived.by.topic)
        origin = _origin(arrived)
        told = 0
        for message in found.messages:
            is_over = message.publish_time > self._values.get("end-timestamp", message.publish_time)
            if is_over or (self._wanted and self._tally.count >= self._wanted):
                arrived.by.done(arrival, found.permits, whole=False)
                return False
            self._tell(message, origin)
            told += 1
            self._pace()
        arrived.by.done(arrival, found.permits, whole=told == len(found.messages))
        return not (self._wanted and self._tally.count >= self._wanted)

    def _pace(self) -> None:
        if self._rate > 0:
            time.sleep(max(0.0, self._begun + self._tally.count / self._rate - time.monotonic()))

    def _tell(self, message: Message, origin: Origin) -> None:
        values = self._values
        self._tally.count += 1
        if values["json"]:
            self._write(as_json(message, origin, self._content(message, origin), hide_content=values["hide-content"]))
        elif not values["hide-content"]:
            content = self._content(message, origin)
            text = content if isinstance(content, str) else value_text(content)
            self._write(as_text(message, origin, text, with_metadata=values["print-metadata"]))
        elif self._tally.count % TELL_EVERY == 0:
            self._write(f"Received {self._tally.count} messages")

    def _content(self, message: Message, origin: Origin) -> Any:
        """Text, or what the topic's schema makes of the payload."""
        hexadecimal = self._values["hex"]
        if self._schemas is None:
            return content_of(message.payload, hexadecimal=hexadecimal)
        found = read_value(self._schemas.find(origin.topic, message.schema_version), message.payload)
        value = content_of(found.value, hexadecimal=hexadecimal) if isinstance(found.value, bytes) else found.value
        return {"value": value, "type": found.java_type} if found.java_type and not self._values["json"] else value

    def _confirm(self) -> None:
        """Waits until the acknowledgements are stored. ClientError when they are not in some time."""
        deadline = time.monotonic() + CONFIRM_SECONDS_MAX
        members = list(self._members.values())
        for member in members:
            member.flush()
        while not all(member.is_confirmed for member in members):
            if time.monotonic() > deadline:
                raise ClientError(
                    f"acknowledgements were not confirmed in {CONFIRM_SECONDS_MAX:g} s: the last messages may come again"
                )
            attend(members, LOOK_SECONDS)
            for member in members:
                for _ in member.arrivals():
                    pass  # more than was asked for: it stays in the subscription


def _decoded(arrival: Arrival, topic: str) -> Any:
    try:
        return decoded(arrival.section, [word & MASK for word in arrival.about.ack_set])
    except (RemoteError, Undecodable) as error:
        ledger, entry = arrival.place
        raise ClientError(f"{topic}: the message {ledger}:{entry} cannot be read: {error}") from None


def _origin(arrived: _Arrived) -> Origin:
    place = arrived.arrival.about.message_id
    _, has_partition, number = arrived.by.topic.rpartition(PARTITION)
    partition = int(number) if has_partition and number.isdigit() else -1
    return Origin(arrived.by.topic, place.ledger_id, place.entry_id, partition, arrived.arrival.about.redelivery_count)
