"""Transactions as a command-line tool uses them: a coordinator that opens, registers and ends them. Blocking.

The coordinators are the partitions of a topic of Apache's (SystemTopicNames.TRANSACTION_COORDINATOR_ASSIGN): the broker
that serves partition 3 has coordinator 3. A refused request raises ClientError with the reason.
"""

from collections.abc import Callable
from typing import Any

from cli.client.errors import RefusedByBroker
from cli.client.topic import connection_of, partitions_of
from cli.client_configuration import ClientConfiguration
from wire.generated.pulsar_api_pb2 import BaseCommand, ServerError
from wire.transactions import TxnAction, TxnId

_NO_COORDINATOR = (ServerError.TransactionCoordinatorNotFound, ServerError.NotAllowedError, ServerError.ServiceNotReady)
COORDINATORS = "persistent://pulsar/system/transaction_coordinator_assign"


class Coordinator:
    """One of them, over a connection of its own: the one of number `turn`, counted round."""

    def __init__(self, configuration: ClientConfiguration, turn: int) -> None:
        assigned = partitions_of(COORDINATORS, configuration)
        self._id = turn % len(assigned)
        self._connection = connection_of(assigned[self._id], configuration)
        try:
            asked = BaseCommand(type=BaseCommand.TC_CLIENT_CONNECT_REQUEST)
            asked.tc_client_connect_request.request_id = self._connection.request_id()
            asked.tc_client_connect_request.tc_id = self._id
            _accepted(self._connection.ask(asked, BaseCommand.TC_CLIENT_CONNECT_RESPONSE).tc_client_connect_response)
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        self._connection.close()

    def open(self, timeout_ms: int) -> TxnId:
        asked = BaseCommand(type=BaseCommand.NEW_TXN)
        asked.new_txn.request_id, asked.new_txn.tc_id = self._connection.request_id(), self._id
        asked.new_txn.txn_ttl_seconds = timeout_ms  # whatever its name
        answer = self._connection.ask(asked, BaseCommand.NEW_TXN_RESPONSE).new_txn_response
        _accepted(answer)
        return TxnId(answer.txnid_most_bits, answer.txnid_least_bits)

    def add_topics(self, txn: TxnId, topics: list[str]) -> None:
        """Registers the topics to which the transaction publishes."""

        def fill(command: Any) -> None:
            command.partitions.extend(topics)

        self._ask(txn, "add_partition_to_txn", fill)

    def add_subscriptions(self, txn: TxnId, subscriptions: list[tuple[str, str]]) -> None:
        """Registers the subscriptions, by topic and name, in which the transaction acknowledges."""

        def fill(command: Any) -> None:
            for topic, name in subscriptions:
                command.subscription.add(topic=topic, subscription=name)

        self._ask(txn, "add_subscription_to_txn", fill)

    def end(self, txn: TxnId, action: TxnAction) -> None:
        def fill(command: Any) -> None:
            command.txn_action = action

        self._ask(txn, "end_txn", fill)

    def _ask(self, txn: TxnId, name: str, fill: Callable[[Any], None]) -> None:
        asked = BaseCommand(type=name.upper())
        command = getattr(asked, name)
        command.request_id = self._connection.request_id()
        command.txnid_most_bits, command.txnid_least_bits = txn
        fill(command)
        answer = self._connection.ask(asked, BaseCommand.Type.Value(f"{name.upper()}_RESPONSE"))
        _accepted(getattr(answer, f"{name}_response"))


def _accepted(response: Any) -> None:
    if response.HasField("error"):
        told = response.message or ServerError.Name(response.error)
        raise RefusedByBroker(f"the transaction coordinator refuses: {told}{_advice(response.error)}", response.error)


def _advice(code: int) -> str:
    """The likely cause of a coordinator that is not there."""
    return "; is transactionCoordinatorEnabled=true set for the brokers?" if code in _NO_COORDINATOR else ""
