"""The answers to clients' requests to transaction coordinators, as frames. Pure."""

from typing import Any

from wire.frames import encode
from wire.generated import pulsar_api_pb2 as api
from wire.generated.pulsar_api_pb2 import BaseCommand
from wire.transactions import TxnAction, TxnId

from ...errors import BrokerError, ServerError
from ..replies import wire_error

_RESPONSES: dict[int, tuple[Any, str, Any]] = {
    BaseCommand.NEW_TXN: (BaseCommand.NEW_TXN_RESPONSE, "new_txn_response", api.CommandNewTxnResponse),
    BaseCommand.ADD_PARTITION_TO_TXN: (
        BaseCommand.ADD_PARTITION_TO_TXN_RESPONSE,
        "add_partition_to_txn_response",
        api.CommandAddPartitionToTxnResponse,
    ),
    BaseCommand.ADD_SUBSCRIPTION_TO_TXN: (
        BaseCommand.ADD_SUBSCRIPTION_TO_TXN_RESPONSE,
        "add_subscription_to_txn_response",
        api.CommandAddSubscriptionToTxnResponse,
    ),
    BaseCommand.END_TXN: (BaseCommand.END_TXN_RESPONSE, "end_txn_response", api.CommandEndTxnResponse),
}
"""Response to each command: its type, the field that holds it, and its message."""


def _body_of(command: BaseCommand) -> Any:
    """The part that its type names."""
    return next(value for field, value in command.ListFields() if field.number == command.type)


def request_id(command: BaseCommand) -> int:
    """Request id of any command that has one."""
    body = _body_of(command)
    return int(body.request_id)


def action_of(command: BaseCommand) -> TxnAction:
    """BrokerError without an action, or with an unknown one: neither is a wish to commit. Apache ends the connection."""
    body = _body_of(command)
    if not body.HasField("txn_action"):
        raise BrokerError(ServerError.NOT_ALLOWED, f"{BaseCommand.Type.Name(command.type)} without an action")
    return TxnAction(body.txn_action)


def answer(command: BaseCommand, txn_id: TxnId, failure: BrokerError | None = None) -> bytes:
    """Answer to a command; `txn_id` is always in it."""
    kind, name, response = _RESPONSES[command.type]
    told = response(request_id=request_id(command), txnid_most_bits=txn_id.most, txnid_least_bits=txn_id.least)
    if failure is not None:
        told.error, told.message = wire_error(failure.code), failure.message
    return encode(BaseCommand(type=kind, **{name: told}))


def connected(asked_id: int, failure: BrokerError | None = None) -> bytes:
    """Answer to TC_CLIENT_CONNECT_REQUEST."""
    told = api.CommandTcClientConnectResponse(request_id=asked_id)
    if failure is not None:
        told.error, told.message = wire_error(failure.code), failure.message
    return encode(BaseCommand(type=BaseCommand.TC_CLIENT_CONNECT_RESPONSE, tc_client_connect_response=told))
