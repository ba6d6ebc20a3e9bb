"""Whether a broker has anything left to deliver: behind the last message of a topic may lie markers and aborted transactions.

Asked over a connection of its own: what a reader's connection brings meanwhile must not be missed.
"""

from wire.generated.pulsar_api_pb2 import BaseCommand, CommandSubscribe, MessageIdData

from ..errors import NoSuchTopic, NoTransactions, Refused
from ..names import admin_path
from ..options import Access
from ..positions import LATEST, Place
from .admin import asked
from .brokers import connection_to
from .connection import Connection
from .last_message import last_message, place_of

_CONSUMER_ID = 1


def is_nothing_left(topic: str, start: Place, last: Place, access: Access) -> bool:
    """Whether no message is left from `start` to `last`, and none held back by an open transaction. Lost, Refused."""
    readable = readable_until(topic, access)
    return readable is not None and readable >= last and _last_message(topic, start, access) < start


def readable_until(topic: str, access: Access) -> Place | None:
    """The last entry before the first open transaction, which holds back later ones; None where the broker does not tell."""
    try:
        path = admin_path(topic).removeprefix("persistent/")
        found = asked(topic, access, f"/admin/v3/transactions/transactionBufferStats/{path}")
    except NoTransactions:
        return LATEST
    except (NoSuchTopic, Refused):
        return None  # messages that are held back must not be skipped
    ledger, _, entry = str(found["maxReadPosition"]).partition(":")
    return Place(int(ledger), int(entry))


def _last_message(topic: str, start: Place, access: Access) -> Place:
    """The newest that consumers get."""
    connection = connection_to(topic, access)
    try:
        connection.ask(_reader(topic, start, connection), BaseCommand.SUCCESS)
        return place_of(last_message(connection, _CONSUMER_ID).last_message_id)
    finally:
        connection.close()


def _reader(topic: str, start: Place, connection: Connection) -> BaseCommand:
    subscribe = CommandSubscribe(
        topic=topic,
        subscription=f"pipeline-look-{id(connection):x}",
        sub_type=CommandSubscribe.Exclusive,
        consumer_id=_CONSUMER_ID,
        request_id=connection.request_id(),
        durable=False,
        force_topic_creation=False,
        start_message_id=MessageIdData(ledger_id=start.ledger_id, entry_id=start.entry_id, batch_index=0),
    )
    return BaseCommand(type=BaseCommand.SUBSCRIBE, subscribe=subscribe)
