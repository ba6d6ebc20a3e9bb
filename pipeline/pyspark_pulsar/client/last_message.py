"""The newest message that consumers of a topic get, asked over a consumer's connection; message ids as places."""

from wire.generated.pulsar_api_pb2 import (
    BaseCommand,
    CommandGetLastMessageId,
    CommandGetLastMessageIdResponse,
    MessageIdData,
)

from ..positions import Place
from .connection import Connection


def last_message(connection: Connection, consumer_id: int) -> CommandGetLastMessageIdResponse:
    """Id of the last message, and the position of the consumer's subscription. Lost, Refused."""
    asked = CommandGetLastMessageId(consumer_id=consumer_id, request_id=connection.request_id())
    command = BaseCommand(type=BaseCommand.GET_LAST_MESSAGE_ID, get_last_message_id=asked)
    return connection.ask(command, BaseCommand.GET_LAST_MESSAGE_ID_RESPONSE).get_last_message_id_response


def place_of(message_id: MessageIdData) -> Place:
    """-1 for what the protocol can only say as 2**64 - 1: there is none."""
    return Place(_signed(message_id.ledger_id), _signed(message_id.entry_id))


def _signed(number: int) -> int:
    return number - (1 << 64) if number >= 1 << 63 else number
