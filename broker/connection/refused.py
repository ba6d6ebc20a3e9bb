"""Transactions: not there yet. Each command gets the error that its clients handle at once instead of waiting."""

from wire.generated.pulsar_api_pb2 import BaseCommand

from ..errors import BrokerError, ServerError
from . import replies
from .link import Link, Routes


class Refused:
    """Of one connection."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def on_transaction(self, command: BaseCommand, _: memoryview) -> None:
        """ERROR, not the response of the command: what Apache does with transactionCoordinatorEnabled=false."""
        request = next(value for field, value in command.ListFields() if field.number == command.type)
        failure = BrokerError(ServerError.NOT_ALLOWED, "Transactions are not enabled.")
        self._link.answer(replies.error(request.request_id, failure))


_TRANSACTIONS = (
    BaseCommand.END_TXN_ON_PARTITION,
    BaseCommand.END_TXN_ON_SUBSCRIPTION,
)
ROUTES: Routes[Refused] = {
    **dict.fromkeys(_TRANSACTIONS, Refused.on_transaction),
}
