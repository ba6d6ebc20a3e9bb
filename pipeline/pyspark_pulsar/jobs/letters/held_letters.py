"""The subscription of a dead letter topic that says which letters are done: held exclusively, acknowledged one by one."""

from types import TracebackType
from typing import Self

from wire.generated.pulsar_api_pb2 import BaseCommand, CommandAck, CommandSubscribe, MessageIdData, ServerError

from ...client.admin import asked, unacknowledged_of
from ...client.brokers import connection_to, tried_again
from ...client.connection import Connection, Lost, raise_refusal
from ...errors import Refused
from ...holes import Unacknowledged
from ...names import admin_path, cursor_name
from ...options import SourceOptions
from ...positions import Place

_CONSUMER_ID = 1
_ACKNOWLEDGED_AT_ONCE_MAX = 1000
_RANGES_MAX = 1 << 60
"""Each range by itself: letters are looked at a range at a time."""


def is_there(topic: str, subscription: str, options: SourceOptions) -> bool:
    """NoSuchTopic, Refused, Unreachable."""
    found = asked(topic, options.access, f"/admin/v2/{admin_path(topic)}/internalStats")
    return cursor_name(subscription) in found["cursors"]


def left(topic: str, subscription: str, options: SourceOptions) -> Unacknowledged:
    """Entries that the subscription has not acknowledged."""
    return unacknowledged_of(topic, subscription, options.access, options.reads_bookies, _RANGES_MAX)


class HeldLetters:
    """`with` it. Made with the topic's first message where it is not there. Refused, Unreachable: also while another has it."""

    def __init__(self, topic: str, subscription: str, options: SourceOptions) -> None:
        self._topic, self._subscription, self._access = topic, subscription, options.access
        self._connection = self._held()

    def _held(self) -> Connection:
        what = f"subscription {self._subscription} of {self._topic}"
        return tried_again(what, self._access, self._subscribed)

    def _subscribed(self) -> Connection:
        connection = connection_to(self._topic, self._access)
        subscribe = CommandSubscribe(
            topic=self._topic,
            subscription=self._subscription,
            sub_type=CommandSubscribe.Exclusive,
            consumer_id=_CONSUMER_ID,
            request_id=connection.request_id(),
            durable=True,
            initial_position=CommandSubscribe.Earliest,
            force_topic_creation=False,
        )
        try:
            connection.ask(BaseCommand(type=BaseCommand.SUBSCRIBE, subscribe=subscribe), BaseCommand.SUCCESS)
        except BaseException:
            connection.close()
            raise
        return connection

    def acknowledge(self, places: list[Place]) -> None:
        """Acknowledges letters; brokers have stored them when this returns. It asks again where a broker goes away."""
        for start in range(0, len(places), _ACKNOWLEDGED_AT_ONCE_MAX):
            some = places[start : start + _ACKNOWLEDGED_AT_ONCE_MAX]
            tried_again(f"{self._topic} at {some[0]}", self._access, lambda some=some: self._acknowledge(some))  # type: ignore[misc]

    def _acknowledge(self, places: list[Place]) -> None:
        connection, is_done = self._connection, False
        ids = [MessageIdData(ledger_id=each.ledger_id, entry_id=each.entry_id) for each in places]
        try:
            ack = CommandAck(
                consumer_id=_CONSUMER_ID, ack_type=CommandAck.Individual, message_id=ids, request_id=connection.request_id()
            )
            connection.send(BaseCommand(type=BaseCommand.ACK, ack=ack))
            self._await_answer(connection)
            is_done = True
        finally:
            if not is_done:
                connection.close()
                self._connection = self._subscribed()

    def _await_answer(self, connection: Connection) -> None:
        """A topic that moves to another broker closes its consumers: then there is no answer to wait for."""
        until = connection.deadline()
        while (found := connection.command(until)).type != BaseCommand.ACK_RESPONSE:
            raise_refusal(f"{self._topic}: {connection.url}", found)
            if found.type == BaseCommand.CLOSE_CONSUMER:
                raise Lost(f"{connection.url} closed the consumer")
        if found.ack_response.HasField("error"):
            raise Refused(f"{self._topic}: {ServerError.Name(found.ack_response.error)}: {found.ack_response.message}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._connection.close()
