"""Failures that end a connection, and the one place where a failure becomes an error for the client."""

import logging

from managed_ledger.contract import ManagedLedgerError, ManagedLedgerTerminated
from metadata.store import MetadataError
from wire.errors import RemoteError

from ..errors import BrokerError, ServerError

log = logging.getLogger(__name__)


class ProtocolViolation(RemoteError):
    """A readable command that the protocol has no answer for: one log line, and the connection ends. Other connections are not
    affected.
    """


def to_broker_error(failure: Exception) -> BrokerError:
    """Returns the error of a failed request. An unforeseen error is logged with its trace, and sent without it."""
    match failure:
        case BrokerError():
            return failure
        case ManagedLedgerTerminated():
            return BrokerError(ServerError.TOPIC_TERMINATED, f"The topic is terminated: {failure}")
        case ManagedLedgerError():
            return BrokerError(ServerError.PERSISTENCE, str(failure) or type(failure).__name__)
        case MetadataError():
            return BrokerError(ServerError.METADATA, str(failure) or type(failure).__name__)
        case _:
            log.error("a request failed with an unexpected error", exc_info=failure)
            return BrokerError(ServerError.UNKNOWN, f"Internal error: {type(failure).__name__}")
