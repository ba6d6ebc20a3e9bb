"""Schemas and transactions: not there yet. Each command gets the error that its clients handle at once instead of waiting."""

from wire.generated.pulsar_api_pb2 import BaseCommand

from ..errors import BrokerError, ServerError
from ..service.topic_name import TopicName
from . import replies
from .link import Link, Routes
from .requests import refuse_schema


class Refused:
    """Of one connection."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def on_get_schema(self, command: BaseCommand, _: memoryview) -> None:
        """TopicNotFound is how clients are told that a topic has no schema."""
        asked = command.get_schema
        failure = BrokerError(ServerError.TOPIC_NOT_FOUND, "Topic not found or no-schema")
        if asked.HasField("schema_version") and not asked.schema_version:
            failure = BrokerError(ServerError.INCOMPATIBLE_SCHEMA, "Empty schema version")
        else:
            try:
                TopicName.parse(asked.topic)
            except BrokerError as invalid:
                failure = invalid
        self._link.answer(replies.no_schema(asked.request_id, failure.code, failure.message))

    def on_get_or_create_schema(self, command: BaseCommand, _: memoryview) -> None:
        """Bytes (what retry and dead letters bring) get the empty version: "the topic has no schema".

        For any other, IncompatibleSchema fails the message that brought it; other errors are tried again for ever.
        """
        request = command.get_or_create_schema
        try:
            refuse_schema(request.schema)
        except BrokerError as refusal:
            self._link.answer(replies.schema_refused(request.request_id, refusal.code, refusal.message))
        else:
            self._link.answer(replies.empty_schema_version(request.request_id))

    def on_transaction(self, command: BaseCommand, _: memoryview) -> None:
        """ERROR, not the response of the command: what Apache does with transactionCoordinatorEnabled=false."""
        request = next(value for field, value in command.ListFields() if field.number == command.type)
        failure = BrokerError(ServerError.NOT_ALLOWED, "Transactions are not enabled.")
        self._link.answer(replies.error(request.request_id, failure))


_TRANSACTIONS = (
    BaseCommand.TC_CLIENT_CONNECT_REQUEST,
    BaseCommand.NEW_TXN,
    BaseCommand.ADD_PARTITION_TO_TXN,
    BaseCommand.ADD_SUBSCRIPTION_TO_TXN,
    BaseCommand.END_TXN,
    BaseCommand.END_TXN_ON_PARTITION,
    BaseCommand.END_TXN_ON_SUBSCRIPTION,
)
ROUTES: Routes[Refused] = {
    BaseCommand.GET_SCHEMA: Refused.on_get_schema,
    BaseCommand.GET_OR_CREATE_SCHEMA: Refused.on_get_or_create_schema,
    **dict.fromkeys(_TRANSACTIONS, Refused.on_transaction),
}
