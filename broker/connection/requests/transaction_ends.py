"""END_TXN_ON_PARTITION, END_TXN_ON_SUBSCRIPTION: a transaction's coordinator at another broker has decided.

Owns nothing. The topics do all; requests that they no longer need are answered as done (`broker.transaction.here`).
"""

from collections.abc import Coroutine
from typing import Any

from wire.frames import encode
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand
from wire.int64 import signed
from wire.transactions import TxnId

from ...errors import BrokerError, ServerError
from ...transaction.here import ParticipantsHere
from .. import replies
from ..link import Link, Routes
from .transaction_replies import action_of
from .transactions import DISABLED


class TransactionEnds:
    """Ends of transactions that arrive on one connection. `is_enabled`: transactionCoordinatorEnabled."""

    def __init__(self, link: Link, here: ParticipantsHere, *, is_enabled: bool) -> None:
        self._link = link
        self._here = here
        self._is_enabled = is_enabled

    def on_partition(self, command: BaseCommand, _: memoryview) -> None:
        asked = command.end_txn_on_partition

        async def work() -> None:
            await self._here.end_on_partition(asked.topic, _txn_id(asked), action_of(command), _mark(asked))

        self._run(command, asked.request_id, work())

    def on_subscription(self, command: BaseCommand, _: memoryview) -> None:
        asked = command.end_txn_on_subscription
        name = asked.subscription

        async def work() -> None:
            action = action_of(command)
            await self._here.end_on_subscription(name.topic, name.subscription, _txn_id(asked), action, _mark(asked))

        self._run(command, asked.request_id, work())

    def _run(self, command: BaseCommand, request_id: int, work: Coroutine[Any, Any, None]) -> None:
        """ERROR, not the response of the command, where there are no transactions, as Apache."""
        if not self._is_enabled:
            work.close()
            self._link.answer(replies.error(request_id, BrokerError(ServerError.NOT_ALLOWED, DISABLED)))
            return

        async def answered() -> None:
            await work
            self._link.answer(_answer(command, None))

        self._link.run(None, answered(), lambda failure: self._link.answer(_answer(command, failure)))


def _txn_id(asked: api.CommandEndTxnOnPartition | api.CommandEndTxnOnSubscription) -> TxnId:
    return TxnId(asked.txnid_most_bits, asked.txnid_least_bits)


def _mark(asked: api.CommandEndTxnOnPartition | api.CommandEndTxnOnSubscription) -> int:
    """-1 where none is said."""
    if not asked.HasField("txnid_least_bits_of_low_watermark"):
        return -1
    return signed(asked.txnid_least_bits_of_low_watermark)


def _answer(command: BaseCommand, failure: BrokerError | None) -> bytes:
    told: api.CommandEndTxnOnPartitionResponse | api.CommandEndTxnOnSubscriptionResponse
    if command.type == BaseCommand.END_TXN_ON_PARTITION:
        one = command.end_txn_on_partition
        told = api.CommandEndTxnOnPartitionResponse(request_id=one.request_id)
        told.txnid_most_bits, told.txnid_least_bits = one.txnid_most_bits, one.txnid_least_bits
        frame = BaseCommand(type=BaseCommand.END_TXN_ON_PARTITION_RESPONSE)
    else:
        other = command.end_txn_on_subscription
        told = api.CommandEndTxnOnSubscriptionResponse(request_id=other.request_id)
        told.txnid_most_bits, told.txnid_least_bits = other.txnid_most_bits, other.txnid_least_bits
        frame = BaseCommand(type=BaseCommand.END_TXN_ON_SUBSCRIPTION_RESPONSE)
    if failure is not None:
        told.error, told.message = replies.wire_error(failure.code), failure.message
    if isinstance(told, api.CommandEndTxnOnPartitionResponse):
        frame.end_txn_on_partition_response.CopyFrom(told)
    else:
        frame.end_txn_on_subscription_response.CopyFrom(told)
    return encode(frame)


ROUTES: Routes[TransactionEnds] = {
    BaseCommand.END_TXN_ON_PARTITION: TransactionEnds.on_partition,
    BaseCommand.END_TXN_ON_SUBSCRIPTION: TransactionEnds.on_subscription,
}
