"""A durable subscription that stands where a stream is: what the stream has not read yet is backlog, and brokers keep it.

Moved by cumulative acknowledgements alone, over a connection that asks for no messages; it never goes back.
"""

from collections.abc import Mapping
from functools import partial

from wire.generated.pulsar_api_pb2 import BaseCommand, CommandAck, CommandSubscribe, MessageIdData

from ..options import Access
from ..positions import Place
from .brokers import connection_to, tried_again
from .connection import Connection

_CONSUMER_ID = 1


class Mirror:
    """Subscription of one stream. It remembers the places it has set: a topic that did not move costs nothing."""

    def __init__(self, subscription: str, access: Access) -> None:
        self._subscription, self._access = subscription, access
        self._there: dict[str, Place] = {}

    def follow(self, places: Mapping[str, Place]) -> None:
        """Everything before these places is done. Makes the subscription where there is none. Refused, Unreachable.

        At the first entry of a ledger it stays at the one before, until the stream is farther.
        """
        for topic, place in places.items():
            if self._there.get(topic) != place:
                tried_again(f"subscription {self._subscription} of {topic}", self._access, partial(self._move, topic, place))
                self._there[topic] = place

    def _move(self, topic: str, place: Place) -> None:
        connection = connection_to(topic, self._access)
        try:
            connection.ask(_subscribed(topic, self._subscription, connection), BaseCommand.SUCCESS)
            if place.entry_id > 0:
                connection.ask(_done_before(place, connection), BaseCommand.ACK_RESPONSE)
        finally:
            connection.close()


def _subscribed(topic: str, subscription: str, connection: Connection) -> BaseCommand:
    asked = CommandSubscribe(
        topic=topic,
        subscription=subscription,
        sub_type=CommandSubscribe.Failover,  # a driver that is gone and not known to be does not keep the next one out
        consumer_id=_CONSUMER_ID,
        request_id=connection.request_id(),
        durable=True,
        initial_position=CommandSubscribe.Earliest,
        force_topic_creation=False,
    )
    return BaseCommand(type=BaseCommand.SUBSCRIBE, subscribe=asked)


def _done_before(place: Place, connection: Connection) -> BaseCommand:
    ack = CommandAck(
        consumer_id=_CONSUMER_ID,
        ack_type=CommandAck.Cumulative,
        message_id=[MessageIdData(ledger_id=place.ledger_id, entry_id=place.entry_id - 1)],
        request_id=connection.request_id(),
    )
    return BaseCommand(type=BaseCommand.ACK, ack=ack)
