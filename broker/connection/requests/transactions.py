"""Requests to transaction coordinators: TC_CLIENT_CONNECT_REQUEST, NEW_TXN, ADD_PARTITION_TO_TXN, ADD_SUBSCRIPTION_TO_TXN,
END_TXN. Owns nothing; the coordinators do all.

A transaction that was committed or aborted on this connection is not found there any more, as by Apache. A client that missed
the answer asks again on a new connection, and gets it once more. The owner of a transaction is the principal who opened it,
where there is authentication. Others get "not found", as from Apache (ServerCnx.verifyTxnOwnership); a super-user has the
rights of the owner.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from wire.generated.pulsar_api_pb2 import BaseCommand
from wire.transactions import TxnId

from ...errors import BrokerError, ServerError
from ...security.authorization.authorization import Denied
from ...security.authorization.needs import Kind, Need
from ...security.security import Security
from ...service.topic_name import TopicName
from ...transaction.coordinator_driver import Coordinator
from ...transaction.coordinators import Coordinators
from ...transaction.records import TxnSubscription
from .. import replies
from ..link import Link, Routes
from . import transaction_replies

DISABLED = "Transactions are not enabled."
ENDS_TOLD_MAX = 1000
"""Number of ended transactions for which a connection remembers its answer; an older one is answered once more."""


class Transactions:
    """Requests to coordinators on one connection. `coordinators`: None where transactionCoordinatorEnabled is false."""

    def __init__(self, link: Link, coordinators: Coordinators | None, security: Security | None) -> None:
        self._link, self._coordinators, self._security = link, coordinators, security
        self._ends_told: OrderedDict[TxnId, None] = OrderedDict()

    @property
    def _all(self) -> Coordinators:
        if self._coordinators is None:
            raise BrokerError(ServerError.NOT_ALLOWED, DISABLED)
        return self._coordinators

    def _refusal(self, request_id: int, answer: Callable[[BrokerError], bytes]) -> Callable[[BrokerError], None]:
        """ERROR, not the response of the command, where there are no transactions: so Apache, and its clients end at once."""
        if self._coordinators is None:
            return lambda failure: self._link.answer(replies.error(request_id, failure))
        return lambda failure: self._link.answer(answer(failure))

    def on_connect(self, command: BaseCommand, _: memoryview) -> None:
        asked = command.tc_client_connect_request

        async def work() -> None:
            await self._all.connect(asked.tc_id)
            self._link.answer(transaction_replies.connected(asked.request_id))

        told = self._refusal(asked.request_id, lambda failure: transaction_replies.connected(asked.request_id, failure))
        self._link.run(command, work(), told)

    def on_new(self, command: BaseCommand, _: memoryview) -> None:
        """`txn_ttl_seconds` is in milliseconds, despite its name: clients and Apache's broker agree."""
        asked = command.new_txn

        async def work() -> None:
            caller = self._link.caller
            owner = None if caller is None else caller.principal
            txn_id = await self._all.get(asked.tc_id).open(owner, asked.txn_ttl_seconds)
            self._answer(command, txn_id)

        self._run(command, TxnId(asked.tc_id, 0), work)

    def on_add_partition(self, command: BaseCommand, _: memoryview) -> None:
        asked = command.add_partition_to_txn
        txn_id = _txn_id(asked)

        async def work() -> None:
            coordinator = await self._owned(txn_id)
            await coordinator.add_partitions(txn_id.least, [str(TopicName.parse(name)) for name in asked.partitions])
            self._answer(command, txn_id)

        self._run(command, txn_id, work)

    def on_add_subscription(self, command: BaseCommand, _: memoryview) -> None:
        asked = command.add_subscription_to_txn
        txn_id = _txn_id(asked)

        async def work() -> None:
            coordinator = await self._owned(txn_id)
            named = [TxnSubscription(str(TopicName.parse(each.topic)), each.subscription) for each in asked.subscription]
            await coordinator.add_subscriptions(txn_id.least, named)
            self._answer(command, txn_id)

        self._run(command, txn_id, work)

    def on_end(self, command: BaseCommand, _: memoryview) -> None:
        asked = command.end_txn
        txn_id = _txn_id(asked)

        async def work() -> None:
            coordinator = await self._owned(txn_id)
            if txn_id in self._ends_told:
                raise coordinator.machine.not_found(txn_id.least)
            await coordinator.end(txn_id.least, transaction_replies.action_of(command))
            self._end_told(txn_id)
            self._answer(command, txn_id)

        self._run(command, txn_id, work)

    async def _owned(self, txn_id: TxnId) -> Coordinator:
        """The coordinator of a transaction that this peer may use."""
        coordinator = self._all.get(txn_id.most)
        owner, caller = coordinator.owner(txn_id.least), self._link.caller
        if owner is None or (caller is not None and caller.principal == owner):
            return coordinator
        authorization = None if self._security is None else self._security.authorization
        try:
            if caller is None or authorization is None:
                raise Denied("nobody else may")
            await authorization.require(caller, Need(Kind.SUPER_USER))
        except Denied:
            who = None if caller is None else caller.principal
            text = f"Client ({who}) is neither the owner of the transaction {txn_id} nor a super user"
            raise BrokerError(ServerError.TRANSACTION_NOT_FOUND, text) from None
        return coordinator

    def _end_told(self, txn_id: TxnId) -> None:
        self._ends_told[txn_id] = None
        if len(self._ends_told) > ENDS_TOLD_MAX:
            self._ends_told.popitem(last=False)

    def _run(self, command: BaseCommand, txn_id: TxnId, work: Callable[[], Any]) -> None:
        request_id = transaction_replies.request_id(command)
        told = self._refusal(request_id, lambda failure: transaction_replies.answer(command, txn_id, failure))
        self._link.run(command, work(), told)

    def _answer(self, command: BaseCommand, txn_id: TxnId) -> None:
        self._link.answer(transaction_replies.answer(command, txn_id))


def _txn_id(asked: Any) -> TxnId:
    return TxnId(asked.txnid_most_bits, asked.txnid_least_bits)


ROUTES: Routes[Transactions] = {
    BaseCommand.TC_CLIENT_CONNECT_REQUEST: Transactions.on_connect,
    BaseCommand.NEW_TXN: Transactions.on_new,
    BaseCommand.ADD_PARTITION_TO_TXN: Transactions.on_add_partition,
    BaseCommand.ADD_SUBSCRIPTION_TO_TXN: Transactions.on_add_subscription,
    BaseCommand.END_TXN: Transactions.on_end,
}
