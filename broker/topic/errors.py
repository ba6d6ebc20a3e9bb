"""Errors of topics as clients get them: failures of the managed ledger, and refusals of a topic. Holds nothing."""

from broker.errors import BrokerError, ServerError
from managed_ledger.contract import (
    InvalidCursorPosition,
    ManagedLedgerError,
    ManagedLedgerExcluded,
    ManagedLedgerFenced,
    ManagedLedgerNotFound,
    ManagedLedgerTerminated,
)
from wire.transactions import TxnAction, TxnId

_CODES: tuple[tuple[type[ManagedLedgerError], ServerError], ...] = (
    (ManagedLedgerTerminated, ServerError.TOPIC_TERMINATED),
    (ManagedLedgerFenced, ServerError.SERVICE_NOT_READY),
    (ManagedLedgerNotFound, ServerError.TOPIC_NOT_FOUND),
    (InvalidCursorPosition, ServerError.NOT_ALLOWED),
    (ManagedLedgerExcluded, ServerError.NOT_ALLOWED),
    (ManagedLedgerError, ServerError.PERSISTENCE),
)


def broker_error(error: ManagedLedgerError) -> BrokerError:
    """The code decides whether a client tries again: SERVICE_NOT_READY and PERSISTENCE it does, the others it does not."""
    code = next(code for kind, code in _CODES if isinstance(error, kind))
    return BrokerError(code, str(error) or type(error).__name__)


def no_room(topic: str, reason: str) -> BrokerError:
    """Has the one code at which Apache's clients fail their waiting messages, by name, and still come back by themselves."""
    message = f"{topic} takes no messages until there is room: {reason}"
    return BrokerError(ServerError.PRODUCER_BLOCKED_QUOTA_EXCEEDED_EXCEPTION, message)


def topic_unavailable() -> BrokerError:
    """Apache's TopicFencedException: the client looks the topic up again."""
    return BrokerError(ServerError.SERVICE_NOT_READY, "Topic is temporarily unavailable")


def require_same_end(txn_id: TxnId, before: TxnAction | None, action: TxnAction, where: str) -> None:
    """`before`: how it has ended, None where it has not, or that is not known. BrokerError(TRANSACTION_CONFLICT)."""
    if before not in (None, action):
        was, be = ("aborted", "committed") if before is TxnAction.ABORT else ("committed", "aborted")
        raise BrokerError(ServerError.TRANSACTION_CONFLICT, f"Transaction {txn_id} was {was} on {where}; it cannot be {be}")
