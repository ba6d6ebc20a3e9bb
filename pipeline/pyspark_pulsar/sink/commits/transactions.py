"""Transactions over the client protocol: opened, extended by topics, ended. One coordinator, one connection."""

from collections.abc import Callable
from typing import Any, TypeVar

from wire.generated.pulsar_api_pb2 import (
    BaseCommand,
    CommandAddPartitionToTxn,
    CommandEndTxn,
    CommandNewTxn,
    CommandTcClientConnectRequest,
    ServerError,
    TxnAction,
)

from ...client.admin import asked
from ...client.brokers import connection_to, tried_again
from ...client.connection import Connection, Lost
from ...errors import NoSuchTopic, Refused
from ...names import admin_path
from ...options import Access
from ..entries import TxnId
from ..topics import partition_count

_ASSIGN = "persistent://pulsar/system/transaction_coordinator_assign"
_ENDED = {ServerError.TransactionNotFound, ServerError.InvalidTxnStatus, ServerError.TransactionConflict}
_LASTING = _ENDED | {ServerError.NotAllowedError, ServerError.AuthorizationError, ServerError.AuthenticationError}

_Result = TypeVar("_Result")


class HasEnded(Exception):
    """The coordinator does not know the transaction (any more), or it ended the other way."""


def coordinators(access: Access) -> int:
    """Number of coordinators. Refused where there are none."""
    try:
        found = partition_count(_ASSIGN, access, creates=False)
    except NoSuchTopic:
        found = 0
    if not found:
        raise Refused(
            f"{access.service_url}: there are no transactions (transactionCoordinatorEnabled=true turns them on in brokers); "
            "without them guarantee=transactions cannot be kept"
        )
    return found


class TransactionClient:
    """Client of one coordinator. `close` at the end. Refused, Unreachable; Lost is handled inside."""

    def __init__(self, coordinator: int, access: Access) -> None:
        self._coordinator, self._access = coordinator, access
        self._connection: Connection | None = None

    def open(self, timeout_ms: int) -> TxnId:
        """One that the coordinator aborts after that time."""

        def work(connection: Connection) -> TxnId:
            # milliseconds, whatever the field's name is: clients and brokers agree
            request = CommandNewTxn(request_id=connection.request_id(), txn_ttl_seconds=timeout_ms, tc_id=self._coordinator)
            command = BaseCommand(type=BaseCommand.NEW_TXN, new_txn=request)
            found = connection.ask(command, BaseCommand.NEW_TXN_RESPONSE).new_txn_response
            _check(found, "a transaction cannot be opened")
            return TxnId(found.txnid_most_bits, found.txnid_least_bits)

        return self._asked("transactions", work)

    def add(self, txn_id: TxnId, topic: str) -> None:
        """Before the first message to that topic."""

        def work(connection: Connection) -> None:
            request = CommandAddPartitionToTxn(
                request_id=connection.request_id(),
                txnid_most_bits=txn_id.most,
                txnid_least_bits=txn_id.least,
                partitions=[topic],
            )
            command = BaseCommand(type=BaseCommand.ADD_PARTITION_TO_TXN, add_partition_to_txn=request)
            found = connection.ask(command, BaseCommand.ADD_PARTITION_TO_TXN_RESPONSE).add_partition_to_txn_response
            _check(found, f"{topic} cannot take part in transaction {txn_id.most}:{txn_id.least}")

        try:
            self._asked(topic, work)
        except HasEnded as error:
            raise Refused(f"{error}; was its time up? transactionTimeoutMs says how long a task may take") from None

    def end(self, txn_id: TxnId, commits: bool) -> None:
        """Asked twice is fine. HasEnded when it is unknown or ended the other way."""

        def work(connection: Connection) -> None:
            request = CommandEndTxn(
                request_id=connection.request_id(),
                txnid_most_bits=txn_id.most,
                txnid_least_bits=txn_id.least,
                txn_action=TxnAction.COMMIT if commits else TxnAction.ABORT,
            )
            command = BaseCommand(type=BaseCommand.END_TXN, end_txn=request)
            _check(
                connection.ask(command, BaseCommand.END_TXN_RESPONSE).end_txn_response, f"transaction {txn_id} cannot be ended"
            )

        self._asked(f"transaction {txn_id.most}:{txn_id.least}", work)

    def _asked(self, what: str, work: Callable[[Connection], _Result]) -> _Result:
        return tried_again(what, self._access, lambda: self._tried(work))

    def _tried(self, work: Callable[[Connection], _Result]) -> _Result:
        """A connection that failed is not used again."""
        connection = self._connection or self._connected()
        try:
            self._connection = None
            result = work(connection)
        except HasEnded:
            self._connection = connection
            raise
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return result

    def _connected(self) -> Connection:
        connection = connection_to(f"{_ASSIGN}-partition-{self._coordinator}", self._access)
        try:
            request = CommandTcClientConnectRequest(request_id=connection.request_id(), tc_id=self._coordinator)
            command = BaseCommand(type=BaseCommand.TC_CLIENT_CONNECT_REQUEST, tc_client_connect_request=request)
            found = connection.ask(command, BaseCommand.TC_CLIENT_CONNECT_RESPONSE).tc_client_connect_response
            _check(found, f"coordinator {self._coordinator} is not there")
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _check(answer: Any, what: str) -> None:
    """A field `error` of 0 is UnknownError: whether it is there is what counts."""
    if not answer.HasField("error"):
        return
    said = f"{what}: {ServerError.Name(answer.error)}: {answer.message}"
    if answer.error in _ENDED:
        raise HasEnded(said)
    raise Refused(said) if answer.error in _LASTING else Lost(said)


def is_aborted(txn_id: TxnId, topic: str, access: Access) -> bool:
    """Whether a topic counts what the transaction wrote to it as aborted."""
    path = admin_path(topic).removeprefix("persistent/")
    told = asked(topic, access, f"/admin/v3/transactions/transactionInBufferStats/{path}/{txn_id.most}/{txn_id.least}")
    return bool(told.get("aborted"))
