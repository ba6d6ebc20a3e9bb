"""The refusal of an end of a transaction where it has ended the other way. Holds nothing."""

from broker.errors import BrokerError, ServerError
from wire.transactions import TxnAction, TxnId


def require_same_end(txn_id: TxnId, before: TxnAction | None, action: TxnAction, where: str) -> None:
    """`before`: how it has ended, None where it has not, or that is not known. BrokerError(TRANSACTION_CONFLICT)."""
    if before not in (None, action):
        was, be = ("aborted", "committed") if before is TxnAction.ABORT else ("committed", "aborted")
        raise BrokerError(ServerError.TRANSACTION_CONFLICT, f"Transaction {txn_id} was {was} on {where}; it cannot be {be}")
